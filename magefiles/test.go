//go:build mage

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/magefile/mage/sh"

	"slipway.build/pkg/cli/generate"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/cli/tests"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/tree/catalog"
)

// Test runs the unit tests, or those of WHAT=./pkg/mechanism/archive, or Kubernetes' own: WHAT=k8s.io/kubernetes/pkg/scheduler/...
// With ROAD=container, it runs the tree's in the build container. It adds the flags in KUBE_RACE=-race and KUBE_TIMEOUT=-timeout=20m.
func Test(ctx context.Context) error {
	what, own, err := words()
	if err != nil {
		return err
	}
	if !own {
		return slipway(ctx, "test", what...)
	}
	if os.Getenv("ROAD") == "container" {
		return orSay(ctx, "run", "--", "make", "test")
	}
	if len(what) == 0 {
		return goTest("./...", "-timeout=10m", "-vet=off") // make verify vets the tree, for which all that it imports has to be read, too
	}
	return goTest("./...", "-timeout=10m")
}

// TestIntegration builds real releases and tests them; with WHAT=k8s.io/kubernetes/test/integration/scheduler/..., it runs Kubernetes' own
// integration tests with the release's etcd.
func TestIntegration(ctx context.Context) error {
	what, own, err := words()
	if err != nil {
		return err
	}
	if !own {
		return slipway(ctx, "test", append([]string{"--integration"}, what...)...)
	}
	return goTest("./pkg/make/kubecross ./test/integration", "-tags=integration", "-p=1", "-timeout=80m", "-v")
}

// TestCmd runs upstream's kubectl command tests with the tree's programs: all suites, or those of WHAT="namespace kubectl_version".
func TestCmd(ctx context.Context) error {
	return orSay(ctx, append([]string{"test-cmd"}, strings.Fields(os.Getenv("WHAT"))...)...)
}

// Lint looks for mistakes in the code of the tree, or of the packages that WHAT= names, and in what patches change in Kubernetes, for each
// platform of a release or of KUBE_BUILD_PLATFORMS.
func Lint() error {
	args := append([]string{"lint"}, strings.Fields(os.Getenv("WHAT"))...)
	if dryRun() {
		return say("slipway", args...)
	}
	return sh.RunV("_output/bin/slipway", args...) // the program with these targets links no analyzers
}

// Bench measures speed, as ratios of two tasks done in turn, and prints a table.
func Bench() error { return goTool("run", "./test/bench") }

// BenchPeers measures other tools that make the same binaries: GoReleaser, ko, and make with go build and tar.
func BenchPeers() error { return goTool("run", "./test/bench", "-peers") }

// Soak repeats failures and rare cases many times: kills, clones, cold builds. It takes hours, in parts, or runs those of WHAT=; WHAT=list
// prints what each gave last. What has passed at this commit is not run again.
func Soak() error {
	return goTool(append([]string{"run", "./test/soak"}, strings.Fields(os.Getenv("WHAT"))...)...)
}

// Update regenerates the generated files: code, command-line reference, completions, files for make and Bazel; or those that WHAT= names:
// generated-code, generated-files, BUILD-files.
func Update(ctx context.Context) error {
	what, err := generate.UpdatesOf(strings.Fields(os.Getenv("WHAT")))
	if err != nil {
		return err
	}
	for _, name := range what {
		switch {
		case name == generate.Code:
			err = GeneratedFiles(ctx)
		case dryRun():
			err = say("generate", name)
		case name == generate.Files:
			err = generate.UpdateFiles(ctx, ".")
		case name == generate.BuildFiles:
			err = generate.UpdateBuildFiles(ctx, ".")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// GeneratedFiles generates the code of API packages: deep copies, defaults, conversions, OpenAPI definitions, clients.
func GeneratedFiles(ctx context.Context) error { return slipway(ctx, "generate") }

// UpdateDebianLocks updates images/*/debian.lock to the versions of Debian's packages and security fixes on the mirrors.
func UpdateDebianLocks(ctx context.Context) error {
	if dryRun() {
		return say("generate", "images/*/debian.lock")
	}
	return generate.DebianLocks(ctx, ".", debian.SourcesFrom(os.Getenv), os.Stdout)
}

// Verify checks formatting, lints, spelling, and that generated files are up to date; or only what WHAT= names: WHAT="gofmt staticcheck".
func Verify(ctx context.Context) error { return verify(ctx, strings.Fields(os.Getenv("WHAT"))) }

// QuickVerify checks what takes seconds: formatting, spelling, shell scripts, and most generated files.
func QuickVerify(ctx context.Context) error { return verify(ctx, generate.QuickChecks()) }

func verify(ctx context.Context, names []string) error {
	checks, err := generate.ChecksOf(names)
	if err != nil {
		return err
	}
	if dryRun() {
		return say("check", strings.Join(checks, " "))
	}
	return generate.Verify(ctx, ".", checks, os.Stdout)
}

// words returns those of WHAT=, and whether the packages that they name are the toolchain's.
func words() (what []string, own bool, err error) {
	what = strings.Fields(os.Getenv("WHAT"))
	if len(what) == 0 {
		return nil, true, nil
	}
	own, err = tests.OfTree(".", what)
	return what, own, err
}

// goTest tests the packages that WHAT= names, or else the given ones.
func goTest(packages string, flags ...string) error {
	chosen, err := session.TestFlags(os.Getenv)
	if err != nil {
		return err
	}
	args := slices.Concat([]string{"test"}, flags, chosen)
	what := strings.Fields(os.Getenv("WHAT"))
	if len(what) == 0 {
		what = strings.Fields(packages)
	}
	args = append(args, what...)
	if dryRun() {
		return say("go", args...)
	}
	env, err := likeMake()
	if err != nil {
		return err
	}
	return sh.RunWithV(env, "go", args...)
}

// likeMake returns the settings with which make compiles the toolchain, except for those that the environment has, so that tests link what
// it has compiled already.
func likeMake() (map[string]string, error) {
	c, err := catalog.Load(".")
	if err != nil {
		return nil, err
	}
	env := map[string]string{"GOTOOLCHAIN": c.Own().Version, "GOFLAGS": "-trimpath -buildvcs=false", "CGO_ENABLED": "0"}
	if strings.Contains(os.Getenv("KUBE_RACE"), "-race") {
		delete(env, "CGO_ENABLED") // the race detector needs cgo
	}
	for name := range env {
		if os.Getenv(name) != "" {
			delete(env, name)
		}
	}
	return env, nil
}

// goTool runs the Go on PATH, with the user's settings, or, for the target slipway, with those of a release, which make sets.
func goTool(args ...string) error {
	if dryRun() {
		return say("go", args...)
	}
	return sh.RunV("go", args...)
}

// say prints what a target would do.
func say(what string, args ...string) error {
	_, err := fmt.Println(what, strings.Join(args, " "))
	return err
}
