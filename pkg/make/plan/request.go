package plan

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/make/policy"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/target"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/module"
)

// A Request names what to make. Tars, Images, API and Inputs choose what that is: the first that is set. Without them, components are made.
type Request struct {
	// What selects components by name or path, as WHAT= does. Empty means all of the server, node and client sets.
	What string
	// Platforms limits what is made to some platforms. Empty means the default: all platforms if Everywhere is set or only Inputs is, this
	// machine's Linux platform for Tars and Images, and this machine's platform for components.
	Platforms  []catalog.Platform
	Everywhere bool

	Images  bool // the server set's images and their layout
	Tars    bool // a release: tarballs, images, release.json, checksums
	TestSet bool // with Tars: also the test set's tarballs
	Addons  bool // with Tars: also those of addons

	Packages bool // with Tars: also debs and rpms

	API    bool               // the files that say what the API is: in a tarball of the release with Tars, otherwise alone
	Inputs bool               // the tarball of the tree and all its inputs: part of the release with Tars, otherwise alone
	Hosts  []catalog.Platform // hosts whose Go the tarball of inputs has; empty means the default of [project.Project.HostGo]

	// NoHosts leaves Go toolchains out of the inputs.
	NoHosts bool

	// PatchesLater skips the check that patches apply. The check needs the code of modules, which a run may not have to fetch if a cache has
	// the results. A patch that does not apply then fails its action.
	PatchesLater bool
}

// A Plan is what a request makes, and how.
type Plan struct {
	Graph   *action.Graph
	Results []Result         // the files that the request asks for
	Release *release.Release // the content of release.json, without digests; nil if no release is made
	Inputs  *input.List      // what the tarball of inputs has besides the tree; nil if it is not made

	Licensed policy.Subject // what has licenses, and which are allowed

	Absent []string // what the release lacks because the tree does: files, and folders with a final slash

	Generated []*target.Generated // code that is generated from the tree's API packages, by module: for components, theirs
}

// A Result is a file that a request asks for.
type Result struct {
	Path string // relative to the tree's root
	Name string // unique among the results; has a folder if the file is made for several platforms
}

// Wanted returns the paths of what has to be here after the request was carried out: the results, the layout of images beside their
// archives, and generated code, relative to the tree's root.
func (p *Plan) Wanted() []string {
	wanted := []string{}
	for _, r := range p.Results {
		wanted = append(wanted, r.Path)
		if strings.HasPrefix(r.Path, project.Images+"/") {
			wanted = append(wanted, project.Layout)
		}
	}
	for _, g := range p.Generated {
		wanted = append(wanted, g.Outputs()...)
	}
	return wanted
}

// New plans a request.
func New(ctx context.Context, p *project.Project, req Request) (*Plan, error) {
	if !req.PatchesLater {
		if err := p.CheckPatches(ctx); err != nil {
			return nil, err
		}
	}
	r := newResolver(p, req)
	if err := r.resolve(ctx, req); err != nil {
		return nil, err
	}
	r.graph.Folders = target.CacheFolders(p)
	if slices.ContainsFunc(r.targets, func(t target.Target) bool {
		bin, ok := t.(*target.Binary)
		return ok && bin.Module == p.Catalog.Module
	}) {
		r.generate(p.Catalog.Module)
	}
	return r.plan(func(target.Target) bool { return true })
}

// Generate plans the code that is generated from API packages, and nothing else: of the components' module, and of others that are folders
// at the top of the tree.
func Generate(ctx context.Context, p *project.Project) (*Plan, error) {
	if err := p.CheckPatches(ctx); err != nil {
		return nil, err
	}
	r := newResolver(p, Request{})
	found, err := fs.Glob(os.DirFS(p.Root), "*/go.mod")
	if err != nil {
		return nil, err
	}
	r.generate(p.Catalog.Module)
	for _, file := range found {
		r.generate(path.Dir(file))
	}
	return r.plan(func(target.Target) bool { return true })
}

// generate adds the code that is generated in a module, once. No other target needs it: it is compared with what the tree has.
func (r *resolver) generate(module string) {
	g := &target.Generated{Module: module}
	if !r.seen[g.ID()] {
		r.add(g)
		r.generated = append(r.generated, g)
	}
}

// plan asks each target that include accepts for its actions. Compiles come first: they take longest.
func (r *resolver) plan(include func(target.Target) bool) (*Plan, error) {
	compiles := func(t target.Target) int {
		if _, ok := t.(*target.Binary); ok {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(r.targets, func(a, b target.Target) int { return compiles(a) - compiles(b) })
	for _, t := range r.targets {
		if !include(t) {
			continue
		}
		actions, err := t.Actions(r.Build)
		if err != nil {
			return nil, err
		}
		r.graph.Actions = append(r.graph.Actions, actions...)
	}
	planned := &Plan{Graph: r.graph, Inputs: r.inputs, Generated: r.generated, Absent: r.absent}
	planned.Licensed.Policy = r.Catalog.Licenses
	for _, t := range r.targets {
		switch t := t.(type) {
		case *target.LicenseNames:
			g, err := t.Judged(r.Build)
			if err != nil {
				return nil, err
			}
			planned.Licensed.Groups = append(planned.Licensed.Groups, g)
		case *target.Image:
			if im, ok := t.Judged(); ok {
				planned.Licensed.Images = append(planned.Licensed.Images, im)
			}
		}
	}
	for _, t := range r.wanted {
		path, name := t.File()
		planned.Results = append(planned.Results, Result{path, name})
	}
	if r.release != nil {
		planned.Release = r.release.Description()
		for _, a := range planned.Release.Artifacts {
			if a.Path != "" {
				planned.Results = append(planned.Results, Result{project.Tars + "/" + a.Path, a.Path})
			}
		}
		for _, name := range append(provenance.Files(planned.Release), release.File) {
			planned.Results = append(planned.Results, Result{project.Tars + "/" + name, name})
		}
	}
	return planned, target.CheckSources(r.Project, r.graph.Actions)
}

// PublishModules returns the graph that makes [target.Published] for a release, see [published.Release].
func PublishModules(ctx context.Context, p *project.Project, release string) (*action.Graph, error) {
	if err := p.CheckPatches(ctx); err != nil {
		return nil, err
	}
	g := &action.Graph{Root: p.Root, State: project.State}
	var err error
	g.Actions, err = target.NewBuild(p, g, false).PublishModules(release)
	return g, err
}

// listInputs lists what the releases that a request names are made of.
func listInputs(ctx context.Context, p *project.Project, req Request) (*input.List, error) {
	var toolchains []module.Pinned
	if !req.NoHosts {
		var err error
		if toolchains, err = p.HostGo(platforms(p.Catalog, req), req.Hosts); err != nil {
			return nil, err
		}
	}
	return p.ListInputs(ctx, platforms(p.Catalog, req), toolchains)
}

// platforms returns the platforms that a request makes something for.
func platforms(c *catalog.Catalog, req Request) []catalog.Platform {
	switch {
	case len(req.Platforms) > 0:
		return req.Platforms
	case req.Everywhere, req.Inputs && !req.Tars:
		return c.AllPlatforms()
	case req.Tars || req.Images:
		return []catalog.Platform{serverHost(c)}
	default:
		return []catalog.Platform{catalog.Host()}
	}
}

// serverHost returns the Linux platform of this machine, or linux/amd64 if servers are not built for its architecture.
func serverHost(c *catalog.Catalog) catalog.Platform {
	host := catalog.Platform{OS: "linux", Arch: catalog.Host().Arch}
	if !c.SetHas(catalog.Server, host) {
		host.Arch = "amd64"
	}
	return host
}

// A NotForError says that a component is built for none of the platforms asked for.
type NotForError struct {
	Component string
	Asked     []catalog.Platform
	For       []catalog.Platform
}

func (e *NotForError) Error() string {
	return fmt.Sprintf("%s is not built for %s; it is for %s", e.Component, catalog.Enumerate(e.Asked), catalog.Enumerate(e.For))
}

// BadRequest marks the error as the request's fault: see package badrequest.
func (*NotForError) BadRequest() {}
