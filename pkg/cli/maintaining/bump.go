package maintaining

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"

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
	c := &cobra.Command{
		Use:   "bump [version | name[@version]...]",
		Short: "Move the tree to another version of Kubernetes, or of something else",
		Long: `bump moves the tree to another version of Kubernetes with all that belongs together: cmd/go.mod with the staging
modules, go.sum files, Go with its sums, pause, etcd, CoreDNS and CNI plugins as Kubernetes names them, the images for
tests, generated files, and the versions in README.md, docs/, images/ and release/. It ends with a table of what moved
from where to where.

  slipway bump                    the newest patch of the tree's minor
  slipway bump v1.36.4            this version, newer or older
  slipway bump go                 the newest patch of the pinned Go, without the rest
  slipway bump go@go1.26.8        this one
  slipway bump etcd coredns       as the tree's Kubernetes names them
  slipway bump metrics-server     the newest that the pinned Go can compile; others below images/ likewise
  slipway bump debian             the Debian packages, and security fixes to them, that the mirrors have now

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
			return action.Locked(c.Context(), root, project.State, o.NoteWaiting, func() error {
				if err := o.undoBump(c.Context(), root); err != nil { // that this one waited for, and that was killed
					return err
				}
				report, err := bump.Run(c.Context(), bump.Options{
					Root: root, Targets: args, DryRun: dryRun,
					Debian: debian.SourcesFrom(o.Getenv), LocksBy: "`make update-debian-locks`", Getenv: o.Getenv,
					Say: o.Say,
				})
				if err != nil {
					return err
				}
				return o.Answer(report, func(io.Writer) error { return o.showBump(report, dryRun) })
			})
		},
	}
	c.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "print what would change; change nothing")
	return c
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
	if len(b.Patches) > 0 {
		fmt.Fprintln(o.Out)
	}
	if err := session.WriteTable(o.Out, "PATCH\tNOW", func(row func(...string)) {
		for _, p := range b.Patches {
			now := p.Verdict
			if p.Offset != 0 {
				now += ", moved by " + lines(p.Offset)
			}
			row(p.Name, now)
		}
	}); err != nil {
		return err
	}
	next := ", make quick-release builds them"
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
