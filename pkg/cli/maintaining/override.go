package maintaining

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/maintain/bump"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

func newOverride(o commands) *cobra.Command {
	var add catalog.Override
	var drop, list, dryRun bool
	c := &cobra.Command{
		Use:   "override MODULE@VERSION",
		Short: "Raise a Go module above what upstream selected, or take a fork of it",
		Long: `override raises a Go module in the go.mod files of a release that require it: the components' and those of other
projects below images/, or those that --in names. It writes go.mod and go.sum with the go command, declares the override in
release/release.yaml, and ends with a table of what moved: the module, and what follows it.

  slipway override golang.org/x/net@v0.60.0 --fixes CVE-2026-12345
  slipway override golang.org/x/net@v0.60.0 --in etcd --reason 'panics of etcd'
  slipway override go.etcd.io/bbolt@v1.4.3 --with github.com/acme/bbolt@v1.4.3-acme.1
  slipway override golang.org/x/net --drop    back to the version that upstream selects
  slipway override --list                     with the versions that go.mod files have

With --with, another module, a fork, replaces exactly this version, which may be the one that upstream selects.

A version that is lower than a go.mod has is refused, and so is a module that nothing links. slipway bump keeps overrides, and drops
one when upstream selects as much. If upstream selects more than the version that a fork replaces, bump stops.

The tree must be committed, as for slipway bump: all files change, or none does.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: session.Complete(o.overridden),
		RunE: func(c *cobra.Command, args []string) error {
			name, version, hasVersion := strings.Cut(strings.Join(args, ""), "@")
			described := len(add.Fixes)+len(add.In) > 0 || add.Reason+add.With != ""
			switch {
			case list && (drop || described || dryRun || len(args) > 0):
				return badrequest.Mark(errors.New("--list stands alone"))
			case !list && len(args) == 0:
				return badrequest.Mark(errors.New("name a module and its version, such as golang.org/x/net@v0.60.0"))
			case drop && (described || hasVersion):
				return badrequest.Mark(errors.New("--drop takes the path of a module alone"))
			case !drop && !list && version == "":
				return badrequest.Mark(fmt.Errorf("%q has no version: write %s@v1.2.3", args[0], name))
			case list:
				return o.listOverrides()
			}
			root, err := project.FindRoot(o.Dir)
			if err != nil {
				return err
			}
			add.Module, add.Version = name, version
			for i, folder := range add.In {
				add.In[i] = o.folderOf(folder)
			}
			return o.locked(c.Context(), root, func() error {
				options := bump.Options{Root: root, DryRun: dryRun, Getenv: o.Getenv, Say: o.Say}
				change := func(ctx context.Context) (*bump.Report, error) { return bump.Override(ctx, options, add) }
				if drop {
					change = func(ctx context.Context) (*bump.Report, error) { return bump.DropOverride(ctx, options, name) }
				}
				report, err := change(c.Context())
				if err != nil {
					return err
				}
				return o.Answer(report, func(io.Writer) error { return o.showBump(report, dryRun) })
			})
		},
	}
	c.Flags().StringSliceVar(&add.Fixes, "fixes", nil, "vulnerabilities that it fixes, such as CVE-2026-12345")
	c.Flags().StringVar(&add.Reason, "reason", "", "why, in a line")
	c.Flags().StringVar(&add.With, "with", "", "a fork that replaces this version of the module, as MODULE@VERSION")
	c.Flags().StringSliceVar(&add.In, "in", nil, "folders of the go.mod files to raise it in, such as cmd or images/etcd; others stay")
	c.Flags().BoolVar(&drop, "drop", false, "remove the override of the module")
	c.Flags().BoolVar(&list, "list", false, "list the overrides")
	c.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "print what would change; change nothing")
	return c
}

// folderOf returns the folder of a go.mod by its path, or by the name of a project.
func (o commands) folderOf(name string) string {
	_, declared, err := o.Catalog()
	if err != nil || slices.Contains(declared.GoModules(), name) || !slices.Contains(declared.GoModules(), "images/"+name) {
		return path.Clean(name)
	}
	return "images/" + name
}

// overridden returns the modules that have overrides.
func (o commands) overridden() ([]string, error) {
	_, declared, err := o.Catalog()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, ov := range declared.Overrides {
		names = append(names, ov.Module)
	}
	return names, nil
}

// A listed override has the versions that go.mod files have.
type listedOverride struct {
	catalog.Override
	Have map[string]string `json:"have"` // by folder
}

func (o commands) listOverrides() error {
	root, declared, err := o.Catalog()
	if err != nil {
		return err
	}
	all := []listedOverride{}
	for _, ov := range declared.Overrides {
		l := listedOverride{ov, map[string]string{}}
		for _, folder := range declared.GoModules() {
			m, err := module.Load(root, folder)
			if err != nil {
				return err
			}
			if r, ok := m.Require(ov.Module); ok && ov.Covers(folder) {
				l.Have[folder] = r.Code().Version
			}
		}
		all = append(all, l)
	}
	return o.Answer(all, func(w io.Writer) error {
		if len(all) == 0 {
			_, err := fmt.Fprintln(w, "no overrides")
			return err
		}
		return session.WriteTable(w, "MODULE\tVERSION\tIN\tFIXES\tREASON", func(row func(...string)) {
			for _, l := range all {
				var in []string
				for _, folder := range declared.GoModules() {
					switch have := l.Have[folder]; have {
					case "":
					case l.Code().Version:
						in = append(in, folder)
					default:
						in = append(in, folder+" ("+have+")")
					}
				}
				version := strings.TrimPrefix(l.String(), l.Module+" ")
				row(l.Module, version, strings.Join(in, ", "), cmp.Or(strings.Join(l.Fixes, ", "), "-"), cmp.Or(l.Reason, "-"))
			}
		})
	})
}
