// Package packer makes a release inside Bazel. It is package plan as a command, which a repository rule of Bazel compiles, or which is this
// program under another name (packer.bzl).
//
//	packer digests -tree DIR -to FILE NAME…                        in a repository rule: what the sources of these names hold
//	packer licenses -tree DIR -digests FILE -environment FILE -platform linux/amd64 -to FILE NAME…
//	                                                               in an action, in the tree, with Go and modules
//	packer third_party …                                                likewise
//	packer sources -tree DIR -status FILE -to FILE                 in an action, in the tree
//	packer release -platform linux/amd64 -sources FILE -status FILE -licenses FILE -third_party FILE
//	    -binary LABEL=FILE… -to DIR NAME…
//
// The last one runs in a sandbox and needs only these files. DIR can be a file of the tree, or a link to one.
//
// # What must never be in here
//
// What a release holds.
package packer

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/stamp"
)

// Hook runs Main in a program that was started under the name packer. Programs that are linked into a workspace for Bazel begin with it.
func Hook() {
	if filepath.Base(os.Args[0]) == "packer" {
		Main()
	}
}

// Main is the program. It does not return.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, stamp.ErrNotRelease) {
		err = fmt.Errorf("%w: add --config=release", err)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "packer:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// arguments has the flags of all subcommands.
type arguments struct {
	tree, to, status, sources, licenses, thirdParty, digests, environment string

	platform catalog.Platform
	binaries map[string]string // by label
	want     []byte            // the digests that Bazel has seen
	names    []string
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("no subcommand: want licenses, digests, third_party, sources or release")
	}
	a := arguments{binaries: map[string]string{}}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&a.tree, "tree", "", "a folder or file of the tree")
	flags.StringVar(&a.to, "to", "", "what to make")
	flags.StringVar(&a.status, "status", "", "file: the workspace status")
	flags.StringVar(&a.sources, "sources", "", "file: the source tarball")
	flags.StringVar(&a.licenses, "licenses", "", "file: what the subcommand licenses made")
	flags.StringVar(&a.thirdParty, "third_party", "", "file: what the subcommand third_party made")
	flags.StringVar(&a.digests, "digests", "", "file: what the subcommand digests made")
	flags.StringVar(&a.environment, "environment", "", "file: a JSON object of variables, instead of this process's environment")
	flags.TextVar(&a.platform, "platform", catalog.Platform{}, "the release's platform")
	flags.Func("binary", "label=file: what Bazel made", func(value string) error {
		label, file, ok := strings.Cut(value, "=")
		if !ok {
			return errors.New("not of the form label=file")
		}
		a.binaries[label] = file
		return nil
	})
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	a.names = flags.Args()
	switch args[0] {
	case "licenses":
		return a.inTree(ctx, licenses)
	case "digests":
		return digests(ctx, a)
	case "third_party":
		return a.inTree(ctx, thirdParty)
	case "sources":
		return packSources(ctx, a)
	case "release":
		return makeRelease(ctx, a)
	}
	return fmt.Errorf("unknown subcommand %q: want licenses, digests, third_party, sources or release", args[0])
}

// digests lists what sources hold, for the keys of actions that work in the tree.
func digests(ctx context.Context, a arguments) error {
	p, err := project.Open(ctx, a.tree, project.Settings{}, os.Getenv)
	if err != nil {
		return err
	}
	lines, err := p.Digests(ctx, a.names)
	if err != nil {
		return err
	}
	return os.WriteFile(a.to, lines, 0o644)
}

// packSources makes the source tarball. Bazel names files of the tree by links, so the tree is where a link leads.
func packSources(ctx context.Context, a arguments) error {
	status, err := os.ReadFile(a.status)
	if err != nil {
		return err
	}
	tree, err := filepath.EvalSymlinks(a.tree)
	if err != nil {
		return err
	}
	return write(a.to, func(w io.Writer) error { return project.PackSources(ctx, w, tree, status, getenv) })
}

// getenv returns a variable of the action's environment, or the home folder, where git looks for the folders that the user trusts.
func getenv(key string) string {
	value := os.Getenv(key)
	if key != "HOME" || value != "" {
		return value
	}
	if u, err := user.Current(); err == nil {
		return u.HomeDir
	}
	return ""
}

// write makes a file with the output of a function.
func write(name string, to func(io.Writer) error) error {
	return atomicfile.Write(name, 0o644, func(f io.Writer) error {
		w := bufio.NewWriterSize(f, 1<<20)
		if err := to(w); err != nil {
			return err
		}
		return w.Flush()
	})
}
