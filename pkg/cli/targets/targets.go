// Package targets has the targets of make. A function's comment is its target's help, and QuickRelease is `make quick-release`.
//
// Mage links them into the program that make runs: magefiles of a tree import this package, and may add targets of their own.
// Package cli does the work.
//
// # What must never be in here
//
// More than the words of a command line, and what a variable of make means for it.
package targets

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"strings"

	"slipway.build/pkg/cli"
	"slipway.build/pkg/cli/generate"
	"slipway.build/pkg/cli/packer"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/cli/tests"
	"slipway.build/pkg/make/relink"
	"slipway.build/pkg/tree/self"
)

//go:embed *.go
var sources embed.FS

// tree is the one in the current folder, where make runs mage.
var tree = generate.Tree{Root: ".", Targets: sources}

// Mage writes main, so what comes first in it is here. A variable with a value that means nothing stops every target before it begins.
func init() {
	packer.Hook()
	relink.Main()
	if err := session.CheckVariables(os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, "slipway:", err)
		os.Exit(2)
	}
	session.SayUnread(os.Getenv, os.Stderr)
}

// All compiles the components for this machine, or those that WHAT= names.
func All(ctx context.Context) error {
	return slipway(ctx, "build", strings.Fields(os.Getenv("WHAT"))...)
}

// Component compiles one component for this machine: make kubectl. `slipway catalog` lists them.
func Component(ctx context.Context, name string) error {
	return tree.Goal(name, slipway(ctx, "build", name))
}

// Cross compiles the components for every platform, or those of KUBE_BUILD_PLATFORMS=.
func Cross(ctx context.Context) error {
	return slipway(ctx, "build", append(strings.Fields(os.Getenv("WHAT")), "--all-platforms")...)
}

// Slipway compiles the slipway command into _output/bin. Without symbols for debuggers, it is linked in two thirds of the time.
func Slipway() error {
	return tests.Go("build", "-ldflags=-s", "-o", "_output/bin/slipway", self.Module)
}

// Clean removes everything that was made: _output, and what the tree has in a container engine. The Go caches stay.
func Clean(ctx context.Context) error { return slipway(ctx, "clean") }

// Help lists the targets.
func Help() error {
	if name := os.Getenv("WHAT"); name != "" {
		return tree.HelpFor(os.Stdout, name)
	}
	return tree.Help(os.Stdout)
}

// slipway runs a subcommand of slipway. Under `make -n`, the subcommand only prints its plan.
func slipway(ctx context.Context, command string, args ...string) error {
	if tests.DryRun() {
		args = append(args, "--dry-run")
	}
	return run(ctx, append([]string{command}, args...)...)
}

// orSay runs a subcommand of slipway that has no plan. Under `make -n`, it prints the command line.
func orSay(ctx context.Context, args ...string) error {
	if tests.DryRun() {
		return tests.Say("slipway", args...)
	}
	return run(ctx, args...)
}

// run runs a subcommand of slipway. What it has printed of its error is not printed again.
func run(ctx context.Context, args ...string) error {
	err := cli.Run(ctx, std(), args...)
	if exit, ok := errors.AsType[*cli.ExitError](err); ok && exit.Shown {
		os.Exit(exit.Code)
	}
	return err
}

// std returns this process's IO for subcommands.
func std() session.IO {
	s := session.Std()
	s.StaleForBazel = generate.StaleForBazel
	return s
}
