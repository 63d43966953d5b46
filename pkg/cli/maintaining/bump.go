package maintaining

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/maintain/bump"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/tree/patch"
)

func newBump(o commands) *cobra.Command {
	var dryRun bool
	var from string
	c := &cobra.Command{
		Use:   "bump [version | name[@version]...]",
		Short: "Move the tree to another version of Kubernetes, or of something else",
		Long: `bump moves the tree to another version of Kubernetes with all that belongs together: cmd/go.mod with the staging
modules, go.sum files, Go with its sums, pause, etcd, CoreDNS and CNI plugins as Kubernetes names them, the images for
tests, generated files, and the versions in README.md, docs/, images/ and release/. It ends with a table of what moved
from where to where.

  slipway bump                    the newest patch of the tree's minor
  slipway bump v1.36.4            this version, newer or older, of a minor that slipway supports (slipway version --json)
  slipway bump v1.37.3 --from https://git.example/kubernetes
                                  the tag v1.37.3 of upstream's repository or of a fork, instead of the module proxy's
  slipway bump v1.37.3-0.acme.1 --from ../kubernetes#fix
                                  a branch or commit, under a version of its own
  slipway bump go                 the newest patch of the pinned Go, without the rest
  slipway bump go@go1.26.8        this one
  slipway bump etcd coredns       as the tree's Kubernetes names them
  slipway bump metrics-server     the newest that the pinned Go can compile; others below images/ likewise
  slipway bump debian             the Debian packages, and security fixes to them, that the mirrors have now
  slipway bump slipway            the newest toolchain
  slipway bump slipway v0.3.0     this one

With --from, slipway makes the modules of Kubernetes of a commit, as upstream's release does: k8s.io/kubernetes and those of its staging
folder, with the sums that a module proxy has of the same tag. release.yaml names the commit, and builds elsewhere make them
again. A commit without a tag needs a version, which must be a pre-release. Only what is committed in a folder counts. The next bump of
Kubernetes without --from returns to the module proxy.

A bump of slipway moves its version in go.mod, and merges what has changed in the files that slipway init laid out into yours: files
that you have not changed are replaced. Where both have changed the same lines, the file has both, as git merge leaves them, and bump exits
with 1. Versions of what a release is made of stay.

The new tree is prepared in a copy, and replaces the old one only when it is whole. What is not available is named
before anything changes. If slipway is killed meanwhile, the next command undoes the bump with git.

So a tree that is not a git repository is refused, and one in which tracked files have changes that are not committed.
Untracked files stay as they are.`,
		ValidArgsFunction: session.Complete(o.movable),
		RunE: func(c *cobra.Command, args []string) error {
			root, err := project.FindRoot(o.Dir)
			if err != nil {
				return err
			}
			return o.locked(c.Context(), root, func() error {
				report, err := bump.Run(c.Context(), bump.Options{
					Root: root, Targets: args, From: from, DryRun: dryRun,
					Debian: debian.SourcesFrom(o.Getenv), LocksBy: "`make update-debian-locks`", Getenv: o.Getenv,
					Say: o.Say,
				})
				if err != nil {
					return err
				}
				if err := o.Answer(report, func(io.Writer) error { return o.showBump(report, dryRun) }); err != nil || len(report.Conflicts) == 0 {
					return err
				}
				return fmt.Errorf("conflicts in %s: resolve them, and run make update", strings.Join(report.Conflicts, ", "))
			})
		},
	}
	c.Flags().StringVar(&from, "from", "", "make Kubernetes of `REPO[#REF]`, a git repository at a URL or in a folder")
	c.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "print what would change; change nothing")
	return c
}

// locked calls f with the tree's lock, when a bump that was killed is undone: it may be one that this command waited for.
func (o commands) locked(ctx context.Context, root string, f func() error) error {
	return action.Locked(ctx, root, project.State, o.NoteWaiting, func() error {
		if err := o.undoBump(ctx, root); err != nil {
			return err
		}
		return f()
	})
}

// movable returns the names of what can move.
func (o commands) movable() ([]string, error) {
	_, declared, err := o.Catalog()
	if err != nil {
		return nil, err
	}
	return bump.Names(declared), nil
}

func (o commands) showBump(b *bump.Report, dryRun bool) error {
	if err := session.WriteTable(o.Out, "WHAT\tFROM\tTO\tWHY", func(row func(...string)) {
		for _, m := range b.Moves {
			row(m.What, cmp.Or(m.From, "-"), cmp.Or(m.To, "-"), m.Why)
		}
	}); err != nil {
		return err
	}
	if len(b.Overrides) > 0 {
		fmt.Fprintln(o.Out)
	}
	if err := session.WriteTable(o.Out, "OVERRIDE\tNOW", func(row func(...string)) {
		for _, k := range b.Overrides {
			now := "kept"
			if k.Dropped != "" {
				now = "dropped: " + k.Dropped
			}
			row(k.String(), now)
		}
	}); err != nil {
		return err
	}
	if len(b.Patches) > 0 {
		fmt.Fprintln(o.Out)
	}
	if err := session.WriteTable(o.Out, "PATCH\tNOW", func(row func(...string)) {
		for _, p := range b.Patches {
			now := p.Verdict
			if p.Offset != 0 {
				now += ", moved by " + countLines(p.Offset)
			}
			row(p.Name, now)
		}
	}); err != nil {
		return err
	}
	next := ", make quick-release builds them"
	if len(b.Conflicts) > 0 {
		next = ""
	}
	for _, p := range b.Patches {
		if p.Unusable {
			next = ""
			mend := PatchCommand("edit", p.Project) + " resolves it"
			if p.Verdict == patch.NoEffect.String() {
				mend = PatchCommand("drop "+path.Base(p.Name), p.Project) + " removes it"
			}
			fmt.Fprintf(o.Out, "\n%s %s: %s\n%s; until then, builds stop.\n", p.Name, p.Verdict, p.Why, mend)
		}
	}
	for _, note := range b.Notes {
		fmt.Fprintf(o.Out, "\nnote: %s\n", note)
	}
	switch {
	case len(b.Files) == 0:
		fmt.Fprintln(o.Out, "nothing to change")
	case dryRun:
		fmt.Fprintf(o.Out, "\n%s would change:\n", session.Count(len(b.Files), "file"))
		for _, name := range b.Files {
			fmt.Fprintln(o.Out, " ", name)
		}
	default:
		fmt.Fprintf(o.Out, "\n%s changed. git status lists them%s.\n", session.Count(len(b.Files), "file"), next)
	}
	return nil
}

// RecoverBump undoes a bump of the tree that was killed while it put files in place, before a command reads half of them.
func RecoverBump(ctx context.Context, s *session.Session, c *cobra.Command) error {
	o := commands{s}
	if c.Name() == cobra.ShellCompRequestCmd || c.Name() == cobra.ShellCompNoDescRequestCmd || c.Name() == "help" {
		return nil
	}
	root, err := project.FindRoot(o.Dir)
	if err != nil || !bump.Pending(root) {
		return nil // commands that need a tree say so
	}
	return action.Locked(ctx, root, project.State, o.NoteWaiting, func() error { return o.undoBump(ctx, root) })
}

// undoBump undoes an interrupted bump, and says so. The caller holds the tree's lock.
func (o commands) undoBump(ctx context.Context, root string) error {
	title, edited, err := bump.Recover(ctx, root, o.Getenv)
	if err != nil {
		return fmt.Errorf("undo the interrupted bump of this tree: %w", err)
	}
	if title != "" {
		fmt.Fprintf(o.Err, "the interrupted bump to %s is undone\n", title)
	}
	for _, name := range edited {
		fmt.Fprintf(o.Err, "%s was edited since, and stays as it is\n", name)
	}
	return nil
}
