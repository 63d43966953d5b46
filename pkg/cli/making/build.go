package making

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/console"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/execute"
	"slipway.build/pkg/make/plan"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/patch"
)

// makeFlags are the flags of the subcommands that make something.
type makeFlags struct {
	platforms  string
	output     string
	dryRun     bool
	everywhere bool
	cache      cacheFlags
}

func (f *makeFlags) add(o commands, c *cobra.Command, otherwise string) {
	flags := c.Flags()
	flags.StringVar(&f.platforms, "platform", o.Getenv("KUBE_BUILD_PLATFORMS"),
		"platforms, as in \"linux/arm64 darwin/arm64\" (default $KUBE_BUILD_PLATFORMS, else "+otherwise+")")
	flags.StringVarP(&f.output, "output", "o", "", "also copy the results to this folder")
	flags.BoolVarP(&f.dryRun, "dry-run", "n", false, "print what would be done, and why; do nothing")
	flags.BoolVar(&f.everywhere, "all-platforms", false, "for every platform of the catalog")
	o.MemoryFlag(c)
	f.cache.add(o, c)
	_ = c.RegisterFlagCompletionFunc("platform", o.complete("platforms"))
}

func newBuild(o commands) *cobra.Command {
	var f makeFlags
	c := &cobra.Command{
		Use:   "build [component...]",
		Short: "Compile components",
		Long: `build compiles components, by name (kubectl) or path (cmd/kubectl), or everything that a server, a node and a
client need. Binaries go to _output/local/bin/OS/ARCH, the host's also to _output/bin; with --road=container to
_output/dockerized/bin/OS/ARCH, with --road=bazel to _output/bazel/bin/OS/ARCH.`,
		Example:           "  slipway build kubectl --platform darwin/arm64\n  slipway build kubelet kubeadm --output /usr/local/bin",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: o.complete("components"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.make(c, f, plan.Request{What: strings.Join(args, " ")})
		},
	}
	f.add(o, c, "the host's")
	return c
}

func newImages(o commands) *cobra.Command {
	var f makeFlags
	c := &cobra.Command{
		Use:   "images",
		Short: "Build the component images",
		Long: `images builds the container images of the components, without a container engine, as archives for
"docker load" and "ctr images import" in _output/release-images/ARCH, and for every platform together as an OCI image layout in
_output/release-images/oci, which skopeo and other tools read.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.make(c, f, plan.Request{Images: true})
		},
	}
	f.add(o, c, "linux on the host's processor")
	return c
}

func newAPI(o commands) *cobra.Command {
	var f makeFlags
	c := &cobra.Command{
		Use:   "api",
		Short: "Write what the API is, as files",
		Long: `api writes OpenAPI documents, from which clients are generated, and discovery documents to _output/api: the files of api/ in
Kubernetes' repository, with what the tree's patches change. They are what the tree's kube-apiserver answers, so it is compiled for the
host, and runs for some seconds on loopback, with an empty etcd.`,
		Example: "  slipway api\n  slipway api --output dist",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.make(c, f, plan.Request{API: true})
		},
	}
	f.add(o, c, "the host's")
	_, _ = c.Flags().MarkHidden("platform"), c.Flags().MarkHidden("all-platforms") // the files are the same for all
	return c
}

func newRelease(o commands) *cobra.Command {
	var f makeFlags
	var quick, testSet, withAddons, withInputs, withAPI, withPackages bool
	var hosts hostFlag
	c := &cobra.Command{
		Use:   "release",
		Short: "Build the release tarballs",
		Long: `release compiles the release's binaries, for every platform of the catalog or those of --platform, builds the component
images, and packs everything into tarballs in _output/release-tars. Beside them are checksums and release.json, which names
everything that the release consists of and was made from. Tarballs of earlier requests are removed from that folder.

With --quick, the release is for the host's linux platform only, without the test set and without the inputs, which
"slipway source" is about. With --addons, it has the tarballs that "slipway cluster add" takes addons from, with --api the files of
"slipway api", and with --packages packages for Debian's and Red Hat's package managers.`,
		Example: "  slipway release --quick\n  slipway release --platform \"linux/amd64 linux/arm64\" --output dist",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if quick && testSet && c.Flags().Changed("test-set") {
				return badrequest.Mark(errors.New("--quick leaves the test set out: leave out --quick or --test-set"))
			}
			f.everywhere = !quick
			withInputs = withInputs && (!quick || c.Flags().Changed("inputs"))
			req := plan.Request{Tars: true, TestSet: testSet && !quick, Addons: withAddons, Inputs: withInputs, API: withAPI,
				Packages: withPackages}
			if err := hosts.apply(&req); err != nil {
				return err
			}
			return o.make(c, f, req)
		},
	}
	f.add(o, c, "all; with --quick linux on the host's processor")
	c.Flags().BoolVar(&quick, "quick", o.IsOn(session.FastBuild),
		"only for the host's linux platform, without the test set (default $KUBE_FASTBUILD)")
	c.Flags().BoolVar(&testSet, "test-set", true, "with e2e.test and the other test binaries")
	c.Flags().BoolVar(&withInputs, "inputs", true, "with kubernetes-inputs.tar, which needs no network to be built; --quick leaves it out "+
		"unless it is asked for")
	c.Flags().BoolVar(&withAddons, "addons", false, "with addons, which a cluster has on request")
	c.Flags().BoolVar(&withAPI, "api", false, "with kubernetes-api.tar.gz, for which kube-apiserver and etcd run for some seconds")
	c.Flags().BoolVar(&withPackages, "packages", o.IsOn(session.Packages), "with the debs and rpms that release.yaml declares, in "+
		"_output/release-tars/packages (default $SLIPWAY_PACKAGES)")
	hosts.add(c)
	_ = c.Flags().MarkHidden("all-platforms")
	return c
}

// make carries out a request, or prints the plan.
func (o commands) make(c *cobra.Command, f makeFlags, req plan.Request) error {
	p, planned, err := o.plan(c.Context(), f, req)
	if err != nil {
		return err
	}
	if f.dryRun {
		return o.PrintPlan(c.Context(), planned.Graph, action.Options{Wanted: planned.Wanted(), NoCachedResults: f.cache.none})
	}
	return o.carryOut(c.Context(), f, req, p, planned)
}

// carryOut makes what was planned for a request.
func (o commands) carryOut(ctx context.Context, f makeFlags, req plan.Request, p *project.Project, planned *plan.Plan) error {
	if o.Now().Before(p.Catalog.Embargo) {
		g, err := p.Go(ctx, nil)
		if err != nil {
			return err
		}
		if program := g.Setting("GOCACHEPROG"); program != "" {
			return fmt.Errorf("the tree is under embargo until %s, and %s might upload what is compiled: unset GOCACHEPROG",
				p.Catalog.Embargo.Format(time.RFC3339), program)
		}
	}
	cache, err := o.openCache(ctx, f.cache, p)
	if err != nil {
		return err
	}
	defer cache.close()
	view := o.View(func(path string) bool {
		return slices.ContainsFunc(planned.Results, func(r plan.Result) bool { return r.Path == path })
	})
	defer view.Close()
	var events []action.Event
	show := cache.begin(f.cache, func(e action.Event) {
		events = append(events, e)
		view.Event(e)
	})
	cache.serve(ctx, p)
	_, program := project.Targets(p.Root)
	out, err := execute.Run(ctx, execute.Options{
		Root: p.Root,
		Plan: func(ctx context.Context) (_ *project.Project, _ *plan.Plan, err error) {
			if p, planned, err = o.plan(ctx, f, req); err == nil {
				cache.serve(ctx, p)
			}
			return p, planned, err
		},
		Output:  f.output,
		Budget:  o.budget(),
		Events:  show,
		Cache:   cache.results(),
		Program: program,

		NoCachedResults: f.cache.none,
	}, p, planned)
	if _, failed := errors.AsType[execute.FailedError](err); failed {
		return session.ShownError{Err: err}
	}
	if err != nil {
		return err
	}
	untidy := out.Untidy
	if out.Worked { // the results are done, even if the picture cannot be drawn
		untidy = errors.Join(untidy, drawTimeline(p, events))
	}
	var noEffect error
	if cache != nil {
		if err := p.RecordPatches(ctx, planned.Graph); session.Is[*patch.NoEffectError](err) {
			noEffect = err
		} else {
			untidy = errors.Join(untidy, err)
		}
	}
	if err := cmp.Or(view.Close(), noEffect); err != nil {
		return err
	}
	o.sayStale(out.Stale)
	if out.Worked && len(planned.Absent) > 0 {
		o.Say(fmt.Sprintf("the tree has no %s, so the release has none", strings.Join(planned.Absent, ", ")))
	}
	if untidy != nil {
		o.Say(fmt.Sprintf("not tidied up: %v", untidy))
	}
	if f.cache.upload {
		if err := cache.keepModules(ctx, p, o.Say); err != nil && ctx.Err() == nil {
			o.Say(fmt.Sprintf("modules are not stored in the cache: %v", err))
		}
		if err := cache.keepTargets(ctx, p.Root); err != nil && ctx.Err() == nil {
			o.Say(fmt.Sprintf("the targets of make are not stored in the cache: %v", err))
		}
	}
	if req.What == "" && !req.Images && !req.Tars && !req.API && !req.Inputs && !o.JSON && o.Mode != console.JSON {
		o.sayLeftOut(p.Catalog)
	}
	return nil
}

// sayLeftOut names the components that are built only if the user names them.
func (o commands) sayLeftOut(c *catalog.Catalog) {
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

func (o commands) plan(ctx context.Context, f makeFlags, req plan.Request) (*project.Project, *plan.Plan, error) {
	p, err := o.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	o.SayIgnored()
	if req.Platforms, err = p.Catalog.Platforms(f.platforms); err != nil {
		return nil, nil, err
	}
	req.Everywhere = f.everywhere
	req.PatchesLater = !f.cache.none && o.cacheURL(f.cache.url, p.Catalog) != ""
	planned, err := plan.New(ctx, p, req)
	return p, planned, err
}

// Programs compiles components for this machine, and returns their paths. Progress goes to standard error.
func Programs(ctx context.Context, s *session.Session, names []string) ([]string, error) {
	aside := *s
	aside.Out, aside.JSON = s.Err, false
	o := commands{&aside}
	req := plan.Request{What: strings.Join(names, " ")}
	p, planned, err := o.plan(ctx, makeFlags{}, req)
	if err != nil {
		return nil, err
	}
	if err := o.carryOut(ctx, makeFlags{}, req, p, planned); err != nil {
		return nil, err
	}
	var files []string
	for _, r := range planned.Results {
		if slices.Contains(names, filepath.Base(r.Path)) {
			files = append(files, filepath.Join(p.Root, filepath.FromSlash(r.Path)))
		}
	}
	return files, nil
}
