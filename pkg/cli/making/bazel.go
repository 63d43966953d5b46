package making

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/bazel"
	"slipway.build/pkg/make/patched"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/road"
	bazelroad "slipway.build/pkg/make/road/bazel"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/child"
)

func newBazel(o commands) *cobra.Command {
	var deps, output string
	c := &cobra.Command{
		Use:   "bazel [flags] [--] command [argument...]",
		Short: "Run the pinned Bazel in the tree",
		Long: `bazel runs the Bazel that .bazelversion pins, at the top of the tree: the one on PATH (bazel or bazelisk) if it has that
version, else one in a root file system of Debian packages. The root is made at first use, takes 2 GB in the user's cache
folder, and needs mmdebstrap, and either root or unprivileged user namespaces.

rules_go, gazelle and the rule sets that they need come from Bazel's registry if Bazel is on PATH, and from Debian
packages and Go modules if it is in such a root, unless --deps says otherwise. Bazel uses the Go that release.yaml pins, and
--config=release stamps the version that "slipway version" prints. The exit code is Bazel's.

With --output, the files that a build makes are also copied to that folder, unless the tree changed during the build.`,
		Example: "  slipway bazel -- build //cmd/...\n  slipway bazel -- build --config=release " +
			"--platforms=//build/bazel/platforms:linux_arm64 //cmd/kubectl\n" +
			"  slipway bazel --output dist -- build --config=release //release:release-tars\n  slipway bazel -- shutdown",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.bazel(c.Context(), bazel.Deps(deps), output, args)
		},
	}
	c.Flags().StringVar(&deps, "deps", "", "where rule sets come from: registry, offline, local-registry (default as above)")
	c.Flags().StringVarP(&output, "output", "o", "", "also copy the files that the command build makes to this folder")
	c.Flags().SetInterspersed(false) // flags after the command are Bazel's
	return c
}

// bazel runs Bazel with this process's terminal.
func (o commands) bazel(ctx context.Context, deps bazel.Deps, output string, args []string) error {
	command := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") }) // after startup options
	if output != "" && (command < 0 || args[command] != "build") {
		return badrequest.Mark(fmt.Errorf("--output is for Bazel's command build, not for %s", strings.Join(args, " ")))
	}
	p, err := o.Open(ctx)
	if err != nil {
		return err
	}
	compiles := command >= 0 && slices.Contains([]string{"build", "run", "test"}, args[command])
	if compiles {
		if err := (&bazelroad.Road{}).CheckOptions(p.Settings.Build); err != nil {
			return err
		}
	}
	list, err := prepareBazel(ctx, p)
	if err != nil {
		return err
	}
	if compiles {
		if err := checkConfig(p, list); err != nil {
			return err
		}
	}
	b, err := p.Roads.Bazel(ctx, deps, o.Say)
	if err != nil {
		return err
	}
	if o.Verbose > 0 {
		o.Say(b.How)
	}
	if output == "" {
		return o.runBazel(ctx, b, args)
	}
	events, err := os.MkdirTemp("", "slipway-bazel-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(events)
	file := filepath.Join(events, "events.json")
	args = slices.Insert(slices.Clone(args), command+1, bazelroad.EventOptions(file)...)
	if err := o.runBazel(ctx, b, args); err != nil {
		return err
	}
	if err := p.Unchanged(ctx); err != nil {
		return err
	}
	return o.takeOutputs(file, output)
}

// prepareBazel makes the patched modules, and Bazel's workspace if that is not the tree.
func prepareBazel(ctx context.Context, p *project.Project) (*patched.List, error) {
	_, program := project.Targets(p.Root)
	list, err := patched.Make(ctx, p.Root, program, p.Go, p.Generator, p.Catalog, p.Catalog.Module)
	if err == nil && bazel.Workspace(p.Root) != p.Root && p.Roads.Stale != nil {
		_, err = p.Roads.Stale(ctx)
	}
	return list, err
}

// checkConfig returns an error if Bazel would compile modules without the tree's patches.
func checkConfig(p *project.Project, list *patched.List) error {
	spec := road.Spec{Module: p.Catalog.Module}
	if len(list.Modules) > 0 {
		spec.ModFile = path.Join(patched.Dir(p.Catalog.Module), patched.ModFile)
	}
	return bazelroad.CheckConfig(p.Root, spec)
}

// BazelPatterns returns Bazel's patterns for the packages in WHAT=, in the tree that dir lies in.
func BazelPatterns(ctx context.Context, s session.IO, dir string, words []string) ([]string, error) {
	root, err := project.FindRoot(dir)
	if err != nil {
		return nil, err
	}
	workspace := bazel.Workspace(root)
	if workspace != root {
		o := session.Session{IO: s, Dir: root}
		p, err := o.Open(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := prepareBazel(ctx, p); err != nil {
			return nil, err
		}
	}
	return bazelroad.Patterns(workspace, words)
}

func (o commands) runBazel(ctx context.Context, b *bazel.Bazel, args []string) error {
	c := b.Command(ctx, args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, o.Out, o.Err
	child.Interrupt(c, time.Minute) // Bazel then stops its actions, and keeps the finished ones
	err := child.Run(c, syscall.SIGINT, nil)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return session.CommandError{Err: fmt.Errorf("bazel: %w", err), Code: exit.ExitCode()}
	}
	return err
}

// takeOutputs reads a build's events, copies the files that it made to a folder, and prints their names.
func (o commands) takeOutputs(events, dir string) error {
	f, err := os.Open(events)
	if err != nil {
		return err
	}
	defer f.Close()
	made, err := bazelroad.Outputs(f)
	if err != nil {
		return fmt.Errorf("read what Bazel built: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	from := map[string]string{} // by name
	for _, label := range slices.Sorted(maps.Keys(made)) {
		top := filepath.Dir(made[label][0]) // which all of the target's files are below
		for _, file := range made[label] {
			for !strings.HasPrefix(file, top+string(filepath.Separator)) {
				top = filepath.Dir(top)
			}
		}
		for _, file := range made[label] {
			name, err := filepath.Rel(top, file)
			if err != nil {
				return err
			}
			if other, ok := from[name]; ok && other != file {
				return fmt.Errorf("--output: two files are named %s: %s and %s: build one of them", name, other, file)
			}
			from[name] = file
		}
	}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		to := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(to), 0o755)
		if err == nil {
			err = atomicfile.Copy(from[name], to)
		}
		if err == nil {
			err = os.Chmod(to, 0o755) // Bazel makes everything executable and read-only
		}
		if err != nil {
			return fmt.Errorf("--output: %w", err)
		}
		fmt.Fprintln(o.Out, to)
	}
	return nil
}
