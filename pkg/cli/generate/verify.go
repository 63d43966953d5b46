package generate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"slipway.build/pkg/cli"
	"slipway.build/pkg/cli/console"
	"slipway.build/pkg/cli/making"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/maintain/kubetest"
	"slipway.build/pkg/make/policy"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/self"
)

// A check is one step of make verify.
type check struct {
	name  string
	quick bool                                                          // takes seconds
	ours  bool                                                          // about the code of slipway, which other trees do not have
	run   func(ctx context.Context, t Tree) (problem string, err error) // without a problem or an error, the check passes
	// tool is a program that the check needs and that go.mod does not provide. If it is missing, the check is skipped and
	// Verify says so; in CI (CI=true) the check fails.
	tool string
}

// misspelled are words that are misspelled on purpose.
var misspelled = []string{
	"licence",  // in the names of many license files
	"platfrom", // a flag that tests get wrong
}

// diff matches the beginning of a file's differences: gazelle ends with the same exit code for these and for a failure.
var diff = regexp.MustCompile(`(?m)^\+\+\+ `)

// The components' module is not vetted: its mains have a few lines each, which a build compiles anyway, and vet would first spend
// minutes on all of Kubernetes.
var checks = []check{
	{name: Files, quick: true, run: func(ctx context.Context, t Tree) (string, error) {
		names, err := t.outdated(ctx)
		if len(names) == 0 {
			return "", err
		}
		return "not up to date, run make update: " + strings.Join(names, " "), err
	}},
	{name: Code, run: func(ctx context.Context, t Tree) (string, error) {
		var out bytes.Buffer
		err := cli.Run(ctx, session.IO{Out: &out, Err: &out, Getenv: os.Getenv}, "generate", "--check", "-C", t.Root)
		if err == nil {
			return "", nil
		}
		if _, stale := errors.AsType[*making.StaleError](err); stale {
			return "not up to date, run make generated_files:\n" + out.String(), err
		}
		return out.String(), err
	}},
	{name: "locks", quick: true, run: func(_ context.Context, t Tree) (string, error) { return checkLocks(t.Root) }},
	{name: "pipelines", quick: true, run: func(_ context.Context, t Tree) (string, error) { return t.checkPipelines() }},
	{name: "licenses", run: func(ctx context.Context, t Tree) (string, error) {
		var out bytes.Buffer
		io := session.IO{Out: &out, Err: &out, Getenv: os.Getenv}
		err := making.CheckLicenses(ctx, &session.Session{IO: io, Dir: t.Root, Mode: console.Plain})
		if err == nil {
			return "", nil
		}
		if _, refused := errors.AsType[*policy.Error](err); refused {
			return "", err
		}
		return out.String(), err
	}},
	{name: "patches", run: func(ctx context.Context, t Tree) (string, error) {
		patched, err := kubetest.Patched(t.Root)
		if err != nil || !patched {
			return "", err
		}
		// This program may be that with make's targets, which links no analyzers.
		return problemsOf("go", "run", self.Module, "lint", "--platform", catalog.Host().String())(ctx, t)
	}},
	{name: "gofmt", quick: true, run: func(ctx context.Context, t Tree) (string, error) {
		names, err := tracked(ctx, t.Root, "*.go")
		if err != nil {
			return "", err
		}
		out, err := output(ctx, t.Root, "gofmt", append([]string{"-l"}, names...)...)
		if err == nil && out != "" {
			out = "not formatted, run gofmt -w:\n" + out
		}
		return out, err
	}},
	{name: "go-vet", ours: true, run: problemsOf("go", "vet", "-tags=integration,soak", "./...")},
	{name: "go-vet-magefiles", run: problemsOf("go", "tool", "mage", "-d", "magefiles", "-w", ".", "-l")},
	{name: "staticcheck", ours: true, run: problemsOf("go", "tool", "staticcheck", "-tags=integration,soak", "./...")},
	{name: "shellcheck", quick: true, tool: "shellcheck", run: overTracked("shellcheck", "*.sh", ".ci/run", "images/kube-cross/add-user",
		"images/kube-cross/install-packages",
		"images/kube-cross/rootfs/usr/local/bin/*")},
	{name: BuildFiles, ours: true, run: func(ctx context.Context, t Tree) (string, error) {
		stale, err := staleBuildFiles(ctx, t.Root)
		if stale != "" {
			stale = "not up to date, run make update:\n" + stale
		}
		return stale, err
	}},
	{name: "misspell", quick: true, ours: true, run: overTracked("go tool misspell -error -locale US -i "+strings.Join(misspelled, ","),
		":(exclude,glob)**/LICENSE", ":(exclude,glob)**/go.sum", ":(exclude,glob)**/debian.lock")}, // texts of others
	{name: "buildifier", quick: true, ours: true, run: overTracked("go tool buildifier -mode=check", "*.bzl", "*.bazel", "WORKSPACE")},
}

// ChecksOf returns the names of checks that WHAT= of make verify has, or of all. The error for another name is a usage error.
func ChecksOf(what []string) ([]string, error) {
	var all []string
	for _, c := range checks {
		all = append(all, c.name)
	}
	return choose(what, all)
}

// QuickChecks returns the names of the checks that take seconds.
func QuickChecks() []string {
	var quick []string
	for _, c := range checks {
		if c.quick {
			quick = append(quick, c.name)
		}
	}
	return quick
}

// Verify runs those of the checks with these names that are about the tree, writes the results to w, and returns an error if a check
// failed.
func (t Tree) Verify(ctx context.Context, names []string, w io.Writer) error {
	chosen := slices.DeleteFunc(slices.Clone(checks), func(c check) bool {
		return !slices.Contains(names, c.name) || c.ours && !self.IsOwn(t.Root)
	})
	return runChecks(ctx, chosen, t, w)
}

func runChecks(ctx context.Context, checks []check, t Tree, w io.Writer) error {
	var failed []error
	for _, c := range checks {
		if c.tool != "" {
			if _, err := exec.LookPath(c.tool); err != nil {
				if os.Getenv("CI") == "true" {
					fmt.Fprintf(w, "FAILED   %s: %s is not installed\n", c.name, c.tool)
					failed = append(failed, fmt.Errorf("%s: %w", c.name, err))
				} else {
					fmt.Fprintf(w, "SKIPPED  %s: %s is not installed\n", c.name, c.tool)
				}
				continue
			}
		}
		problem, err := c.run(ctx, t)
		switch {
		case err != nil || problem != "":
			fmt.Fprintf(w, "FAILED   %s\n", c.name)
			if problem != "" {
				fmt.Fprintln(w, strings.TrimSpace(problem))
			}
			failed = append(failed, errors.Join(fmt.Errorf("%s failed", c.name), err))
		default:
			fmt.Fprintf(w, "ok       %s\n", c.name)
		}
	}
	return errors.Join(failed...)
}

// problemsOf returns a check that runs a command, which fails if it finds a problem.
func problemsOf(name string, args ...string) func(context.Context, Tree) (string, error) {
	return func(ctx context.Context, t Tree) (string, error) {
		out, err := output(ctx, t.Root, name, args...)
		if err == nil {
			return "", nil
		}
		return out, err
	}
}

// overTracked returns a check that runs a command on the matching files that git tracks.
func overTracked(command string, patterns ...string) func(context.Context, Tree) (string, error) {
	return func(ctx context.Context, t Tree) (string, error) {
		names, err := tracked(ctx, t.Root, patterns...)
		if err != nil || len(names) == 0 {
			return "", err
		}
		words := strings.Fields(command)
		return problemsOf(words[0], append(words[1:], names...)...)(ctx, t)
	}
}

// tracked returns files that git tracks or would add.
func tracked(ctx context.Context, root string, patterns ...string) ([]string, error) {
	out, err := output(ctx, root, "git", append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard",
		"--"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range strings.SplitSeq(strings.TrimRight(out, "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(root, name)); name != "" && err == nil {
			names = append(names, name)
		}
	}
	return names, nil
}

func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off") // the tree is no part of a workspace that somebody has
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return string(out), err
}
