package making

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/plan"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/catalog"
)

func newCatalog(o commands) *cobra.Command {
	var artifacts, quick bool
	var platforms string
	c := &cobra.Command{
		Use:   "catalog [components|platforms|images|tarballs]",
		Short: "List what can be built, and for which platforms",
		Long: `catalog lists what release/release.yaml declares: components with the platforms they are built for, images, tarballs.
With the name of a list, it prints only that list, one name per line, for scripts; with --json, everything.

With --artifacts, it lists the artifacts of a release before it is made: the names, kinds and platforms that its
release.json will have. --quick and --platform choose the release, as for "slipway release".`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"components", "platforms", "images", "tarballs"},
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case artifacts && len(args) > 0:
				return badrequest.Mark(fmt.Errorf("--artifacts lists a release, but %s lists the catalog: choose one", args[0]))
			case artifacts:
				return o.printArtifacts(c.Context(), makeFlags{platforms: platforms, everywhere: !quick}, plan.Request{Tars: true, TestSet: !quick})
			case c.Flags().Changed("quick") || c.Flags().Changed("platform"):
				return badrequest.Mark(errors.New("--quick and --platform choose a release: add --artifacts"))
			}
			_, declared, err := o.Catalog()
			if err != nil {
				return err
			}
			if o.JSON {
				return o.PrintJSON(declared)
			}
			if len(args) == 0 {
				return o.printCatalog(declared)
			}
			for _, name := range list(declared, args[0]) {
				if _, err := fmt.Fprintln(o.Out, name); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&artifacts, "artifacts", false, "list the artifacts of a release")
	c.Flags().BoolVar(&quick, "quick", o.IsOn(session.FastBuild),
		"with --artifacts: the release of the host's linux platform, without the test set "+
			"(default $KUBE_FASTBUILD)")
	c.Flags().StringVar(&platforms, "platform", o.Getenv("KUBE_BUILD_PLATFORMS"),
		"with --artifacts: the release of these platforms (default $KUBE_BUILD_PLATFORMS)")
	_ = c.RegisterFlagCompletionFunc("platform", o.complete("platforms"))
	return c
}

// printArtifacts lists the artifacts of a release before it is made.
func (o commands) printArtifacts(ctx context.Context, f makeFlags, req plan.Request) error {
	_, planned, err := o.plan(ctx, f, req)
	if err != nil {
		return err
	}
	type artifact struct {
		Name     string            `json:"name"`
		Kind     release.Kind      `json:"kind"`
		Platform platform.Platform `json:"platform,omitzero"`
		Path     string            `json:"path,omitempty"`
		Of       []string          `json:"of,omitempty"`
		Action   string            `json:"action"`
	}
	var artifacts []artifact
	for _, a := range planned.Release.Artifacts {
		artifacts = append(artifacts, artifact{a.Name, a.Kind, a.Platform, a.Path, a.Of, a.Action})
	}
	return o.Answer(artifacts, func(w io.Writer) error {
		return session.WriteTable(w, "ARTIFACT\tKIND\tPLATFORM", func(row func(...string)) {
			for _, a := range artifacts {
				on := ""
				if a.Platform != (platform.Platform{}) {
					on = a.Platform.String()
				}
				row(a.Name, string(a.Kind), on)
			}
		})
	})
}

// list returns one of the catalog's lists.
func list(c *catalog.Catalog, name string) []string {
	var names []string
	switch name {
	case "components":
		for _, b := range c.Binaries {
			names = append(names, b.Name)
		}
	case "platforms":
		for _, p := range c.AllPlatforms() {
			names = append(names, p.String())
		}
	case "images":
		for _, im := range c.Images {
			names = append(names, im.Name)
		}
		names = slices.Compact(names) // of some there are several versions
	case "tarballs":
		names = c.Tarballs(c.AllPlatforms())
	}
	return names
}

func (o commands) printCatalog(c *catalog.Catalog) error {
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "Kubernetes %s, compiled by %s\n\nCOMPONENT\tSETS\tPLATFORMS\n", c.Kubernetes, c.Go.Version)
	for _, b := range c.Binaries {
		var sets []string
		for _, s := range b.Sets {
			sets = append(sets, string(s))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", b.Name, strings.Join(sets, " "), grouped(c.PlatformsOf(b)))
	}
	fmt.Fprintf(w, "\nIMAGE\tBASE\tSET\tPLATFORMS\n")
	for _, im := range c.Images {
		name, set := im.Name, cmp.Or(im.Set, catalog.Server)
		if set == catalog.Test {
			name += ":" + im.Version
		}
		var platforms []catalog.Platform
		for _, p := range c.Sets[catalog.Server] {
			if c.SetHas(set, p) {
				platforms = append(platforms, p)
			}
		}
		fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\n", c.Registry, name, im.Base, set, grouped(platforms))
	}
	return w.Flush()
}

// grouped writes platforms as the shell's braces do: linux/{amd64,arm64} darwin/arm64.
func grouped(platforms []catalog.Platform) string {
	var order []string
	archs := map[string][]string{}
	for _, p := range platforms {
		if archs[p.OS] == nil {
			order = append(order, p.OS)
		}
		archs[p.OS] = append(archs[p.OS], p.Arch)
	}
	for i, os := range order {
		if a := archs[os]; len(a) == 1 {
			order[i] = os + "/" + a[0]
		} else {
			order[i] = os + "/{" + strings.Join(a, ",") + "}"
		}
	}
	return strings.Join(order, " ")
}

// complete completes the names of one of the catalog's lists.
func (o commands) complete(name string) cobra.CompletionFunc {
	return session.Complete(func() ([]string, error) {
		_, c, err := o.Catalog()
		if err != nil {
			return nil, err
		}
		return list(c, name), nil
	})
}
