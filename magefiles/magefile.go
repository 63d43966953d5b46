//go:build mage

// The targets of make: slipway's, and what only the toolchain's own tree has.
package main

import (
	"os"
	"strings"

	//mage:import
	_ "slipway.build/pkg/cli/targets"

	"slipway.build/pkg/cli/tests"
)

// Bench measures speed, as ratios of two tasks done in turn, and prints a table: of all rows, or of those of WHAT="noop edit".
func Bench() error {
	rows := strings.Join(strings.Fields(os.Getenv("WHAT")), ",")
	return tests.Go("run", "./test/bench", "-rows="+rows)
}

// BenchPeers measures other tools that make the same binaries: GoReleaser, ko, and make with go build and tar.
func BenchPeers() error { return tests.Go("run", "./test/bench", "-peers") }

// Soak repeats failures and rare cases many times: kills, clones, cold builds. It takes hours, in parts, or runs those of WHAT=; WHAT=list
// prints what each gave last. What has passed at this commit is not run again.
func Soak() error {
	return tests.Go(append([]string{"run", "./test/soak"}, strings.Fields(os.Getenv("WHAT"))...)...)
}

// BazelTestIntegration compares what Bazel makes with what the local road makes.
func BazelTestIntegration() error {
	return tests.GoTest("./test/integration", "-tags=integration,soak", "-run=Bazel", "-timeout=60m", "-v")
}
