package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slipway.build/pkg/build/plan"
	"slipway.build/pkg/cli/console"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/tree/catalog"
)

// makeFlags are the flags of the subcommands that make something.
type makeFlags struct {
	platforms  string
	output     string
	dryRun     bool
	everywhere bool
}

func (f *makeFlags) add(o *options, c *cobra.Command, otherwise string) {
	flags := c.Flags()
	flags.StringVar(&f.platforms, "platform", o.Getenv("KUBE_BUILD_PLATFORMS"), "platforms, as in \"linux/arm64 darwin/arm64\" (default $KUBE_BUILD_PLATFORMS, else "+otherwise+")")
	flags.StringVarP(&f.output, "output", "o", "", "put the results into this folder, too")
	flags.BoolVarP(&f.dryRun, "dry-run", "n", false, "print what would be done, and why; do nothing")
	flags.BoolVar(&f.everywhere, "all-platforms", false, "for every platform of the catalog")
	_ = c.RegisterFlagCompletionFunc("platform", o.completePlatforms)
}

func newBuild(o *options) *cobra.Command {
	var f makeFlags
	c := &cobra.Command{
		Use:   "build [component...]",
		Short: "Compile components",
		Long: `build compiles components, by name (kubectl) or path (cmd/kubectl): all that a server, a node and a client
need, if none is named. Binaries are put in _output/local/bin/OS/ARCH, the host's also in _output/bin; with
--road=container in _output/dockerized/bin/OS/ARCH, with --road=bazel in _output/bazel/bin/OS/ARCH.`,
		Example:           "  slipway build kubectl --platform darwin/arm64\n  slipway build kubelet kubeadm --output /usr/local/bin",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: o.completeComponents,
		RunE: func(c *cobra.Command, args []string) error {
			return o.make(c, f, plan.Request{What: strings.Join(args, " ")}, artifacts{plan.Binaries(o.road), ""})
		},
	}
	f.add(o, c, "the host's")
	return c
}

func newImages(o *options) *cobra.Command {
	var f makeFlags
	c := &cobra.Command{
		Use:   "images",
		Short: "Build the component images",
		Long: `images builds the container images of the components, without a container engine, as archives for
"docker load" and "ctr images import", in _output/release-images/ARCH.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.make(c, f, plan.Request{Images: true}, artifacts{plan.Images, ".tar"})
		},
	}
	f.add(o, c, "linux on the host's processor")
	return c
}

func newRelease(o *options) *cobra.Command {
	var f makeFlags
	var quick, testSet bool
	c := &cobra.Command{
		Use:   "release",
		Short: "Build the release tarballs",
		Long: `release compiles what the release holds, for every platform of the catalog or those of --platform, builds the
component images, and packs everything into tarballs, with checksums, in _output/release-tars.

With --quick it does so for the host's linux platform, without the test set.`,
		Example: "  slipway release --quick\n  slipway release --platform \"linux/amd64 linux/arm64\" --output dist",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if quick && testSet && c.Flags().Changed("test-set") {
				return badrequest.Mark(errors.New("--quick leaves the test set out: leave out --quick or --test-set"))
			}
			f.everywhere = !quick
			return o.make(c, f, plan.Request{Tars: true, TestSet: testSet && !quick}, artifacts{plan.Tars, ""})
		},
	}
	f.add(o, c, "all; with --quick linux on the host's processor")
	c.Flags().BoolVar(&quick, "quick", o.Getenv("KUBE_FASTBUILD") == "true", "only for the host's linux platform, without the test set (default $KUBE_FASTBUILD)")
	c.Flags().BoolVar(&testSet, "test-set", true, "with e2e.test and the other test binaries")
	_ = c.Flags().MarkHidden("all-platforms")
	return c
}

// artifacts are the outputs that a command is for: those in a folder, with a suffix.
type artifacts struct{ folder, suffix string }

func (a artifacts) has(path string) bool {
	return strings.HasPrefix(path, a.folder+"/") && strings.HasSuffix(path, a.suffix)
}

// make plans a request and runs it, or prints the plan.
func (o *options) make(c *cobra.Command, f makeFlags, req plan.Request, wanted artifacts) error {
	ctx := c.Context()
	p, graph, err := o.plan(ctx, f, req)
	if err != nil {
		return err
	}
	if f.dryRun {
		return o.printPlan(ctx, graph)
	}
	view := o.view(wanted.has)
	defer view.Close()
	waited := false
	watch := func(e action.Event) {
		waited = waited || e.Kind == action.Waiting
		view.Event(e)
	}
	return action.Locked(ctx, p.Root, plan.State, watch, func() error {
		if waited { // and the tree may be another by now
			if p, graph, err = o.plan(ctx, f, req); err != nil {
				return err
			}
		}
		if err := o.run(ctx, p, graph, view); err != nil {
			return err
		}
		if req.What == "" && !req.Images && !req.Tars && !o.json && o.mode != console.JSON {
			o.sayLeftOut(p.Catalog)
		}
		if f.output == "" {
			return nil
		}
		return deliver(graph, wanted, f.output)
	})
}

// sayLeftOut names the components that are built only by their names.
func (o *options) sayLeftOut(c *catalog.Catalog) {
	var names []string
	for _, b := range c.Binaries {
		if c.IsComponent(b) && !slices.ContainsFunc(c.Default(), func(d catalog.Binary) bool { return d.Name == b.Name }) {
			names = append(names, b.Name)
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(o.Out, "not built, unless named (make %[2]s, slipway build %[2]s): %[1]s\n", strings.Join(names, ", "), names[0])
	}
}

func (o *options) plan(ctx context.Context, f makeFlags, req plan.Request) (*plan.Project, *action.Graph, error) {
	p, err := o.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	if req.Platforms, err = p.Catalog.Platforms(f.platforms); err != nil {
		return nil, nil, err
	}
	req.Everywhere = f.everywhere
	graph, err := p.Graph(ctx, req)
	return p, graph, err
}

// deliver puts the artifacts of a finished run into a folder of the user's: side by side, or, where they come from
// several folders (of platforms), in folders of the same names.
func deliver(graph *action.Graph, wanted artifacts, dir string) error {
	var files []string // below wanted.folder
	folders := map[string]bool{}
	for _, a := range graph.Actions {
		for _, out := range a.Outputs {
			if wanted.has(out) {
				rel := strings.TrimPrefix(out, wanted.folder+"/")
				files = append(files, rel)
				folders[path.Dir(rel)] = true
			}
		}
	}
	for _, rel := range files {
		to := filepath.Join(dir, path.Base(rel))
		if len(folders) > 1 {
			to = filepath.Join(dir, filepath.FromSlash(rel))
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := atomicfile.Copy(filepath.Join(graph.Root, filepath.FromSlash(wanted.folder), filepath.FromSlash(rel)), to); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	return nil
}
