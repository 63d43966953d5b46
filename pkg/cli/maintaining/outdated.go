package maintaining

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/maintain/bump"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/tree/catalog"
)

func newOutdated(o commands) *cobra.Command {
	var all bool
	var db string
	c := &cobra.Command{
		Use:   "outdated",
		Short: "List what is behind: Kubernetes, Go, other projects, packages, modules",
		Long: `outdated lists what has a newer version than the tree has: Kubernetes, Go, the other projects, Debian's packages, and the
toolchain's own modules. Bazel and other rule sets are listed, but slipway cannot look up newer ones. "slipway bump" moves
most of them.

SHOULD is the newest patch of the same minor, or the version that the tree's Kubernetes names. NEWEST is the newest
of all. If a version cannot be looked up, NOTE says why. --json prints everything.

With --db, NOTE says which known vulnerabilities of Go, Kubernetes, the other projects and their modules are mended by the version in
SHOULD or, if the tree has that, by the newest. Commands below the table mend others of their modules. slipway vulns says whether a
release has them.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			root, err := project.FindRoot(o.Dir)
			if err != nil {
				return err
			}
			items, err := bump.Outdated(c.Context(), bump.Options{
				Root: root, Debian: debian.SourcesFrom(o.Getenv), DB: db, Say: o.Say,
			})
			if err != nil {
				return err
			}
			return o.Answer(items, func(w io.Writer) error { return showOutdated(w, items, all) })
		},
	}
	c.Flags().StringVar(&db, "db", "", "a database of Go's vulnerabilities: file:///FOLDER or https://HOST")
	c.Flags().BoolVarP(&all, "all", "a", false, "also list what is not behind")
	return c
}

func showOutdated(w io.Writer, items []bump.Item, all bool) error {
	behind, unknown := 0, 0
	if err := session.WriteTable(w, "WHAT\tHAVE\tSHOULD\tNEWEST\tNOTE", func(row func(...string)) {
		for _, i := range items {
			if len(i.Mends) > 0 {
				i.Note = strings.TrimPrefix(i.Note+"; mends "+strings.Join(i.Mends, ", "), "; ")
			}
			known := i.Should != "" || i.Newest != ""
			switch {
			case i.Behind:
				behind++
			case !known:
				unknown++
			}
			if i.Behind || !known || all || i.Kind == "kubernetes" || i.Newest != i.Have && i.Kind != "toolchain" {
				row(i.Name, cmp.Or(i.Have, "-"), cmp.Or(i.Should, "-"), cmp.Or(i.Newest, "-"), i.Note)
			}
		}
	}); err != nil {
		return err
	}
	for _, o := range overridesOf(items) {
		if _, err := fmt.Fprintf(w, "slipway override %s@%s --fixes %s\n", o.Module, o.Version, strings.Join(o.Fixes, ",")); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d of %d behind, %d not known\n", behind, len(items), unknown)
	return err
}

// overridesOf joins the overrides of items: one for each module.
func overridesOf(items []bump.Item) []catalog.Override {
	var all []catalog.Override
	for _, i := range items {
		for _, o := range i.Overrides {
			at := slices.IndexFunc(all, func(a catalog.Override) bool { return a.Module == o.Module })
			if at < 0 {
				all = append(all, o)
				continue
			}
			if semver.Compare(o.Version, all[at].Version) > 0 {
				all[at].Version = o.Version
			}
			all[at].Fixes = slices.Compact(slices.Sorted(slices.Values(slices.Concat(all[at].Fixes, o.Fixes))))
		}
	}
	return all
}
