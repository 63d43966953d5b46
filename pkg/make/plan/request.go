package plan

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/input"
)

// A Request names what to make.
type Request struct {
	// What selects components by name or path, as WHAT= does. Empty means all of the server, node and client sets.
	What string
	// Platforms narrow those of the sets. Empty means all of them with Everywhere, else the host's.
	Platforms  []catalog.Platform
	Everywhere bool

	Images  bool // also the component images
	Tars    bool // also the tarballs and their checksums
	TestSet bool // also the test set's tarballs

	Inputs bool               // also the tarball of the tree and everything that it is made of; without Tars, only that
	Hosts  []catalog.Platform // whose Go it has; empty means those of the platforms that release.yaml pins a Go for

	// NoHosts leaves the Go out.
	NoHosts bool

	// PatchesLater looks at patches only when they are applied, which takes the code of modules: a cache may have what is made of it.
	PatchesLater bool
}

// A Plan is what a request makes, and how.
type Plan struct {
	Graph   *action.Graph
	Results []Result         // the files that the request asks for
	Release *release.Release // the content of release.json, without digests; nil if no release is made
	Inputs  *input.List      // what the tarball of inputs has besides the tree; nil if it is not made
}

// A Result is a file that a request asks for.
type Result struct {
	Path string // relative to the tree's root
	Name string // unique among the results; has a folder if the file is made for several platforms
}

// Wanted returns the paths of what has to be here after the request was carried out: the results, and the layout of images beside their
// archives, relative to the tree's root.
func (p *Plan) Wanted() []string {
	wanted := []string{}
	for _, r := range p.Results {
		wanted = append(wanted, r.Path)
		if strings.HasPrefix(r.Path, Images+"/") {
			wanted = append(wanted, Layout)
		}
	}
	return wanted
}

// IsResult reports whether a file, by its path relative to the root, is a result.
func (p *Plan) IsResult(path string) bool {
	return slices.ContainsFunc(p.Results, func(r Result) bool { return r.Path == path })
}

// Plan plans a request. It resolves what the request makes, then describes how each part is made, once.
func (p *Project) Plan(ctx context.Context, req Request) (*Plan, error) {
	c, err := p.resolve(req)
	if err != nil {
		return nil, err
	}
	if req.Inputs {
		if c.inputs, err = p.listInputs(ctx, req); err != nil {
			return nil, err
		}
	}
	if len(c.images)+len(c.tarballs) > 0 || c.inputs != nil {
		if err := p.checkSources(c); err != nil {
			return nil, err
		}
	}
	if !p.made && !req.PatchesLater {
		if err := p.CheckPatches(ctx); err != nil {
			return nil, err
		}
	}
	b := p.builder(ctx)
	b.graph.Folders = binaryFolders(p.road, p.Roads.Local())
	if err := b.actions(c); err != nil {
		return nil, err
	}
	planned := &Plan{Graph: b.graph, Inputs: c.inputs}
	if p.made {
		if err := b.leaveOut(c.others(p.Catalog)); err != nil {
			return nil, err
		}
	}
	if !req.Tars {
		planned.Results = p.results(c)
		return planned, nil
	}
	if planned.Release, err = b.release(c); err != nil {
		return nil, err
	}
	for _, a := range planned.Release.Artifacts {
		if a.Path != "" {
			planned.Results = append(planned.Results, Result{slashed(Tars, a.Path), a.Path})
		}
	}
	for _, name := range append(provenance.Files(planned.Release), release.File) {
		planned.Results = append(planned.Results, Result{slashed(Tars, name), name})
	}
	return planned, nil
}

// results returns the files that a request for images, binaries or inputs asks for.
func (p *Project) results(c *content) []Result {
	var results []Result
	if c.inputs != nil {
		return []Result{{slashed(Tars, input.Tarball), input.Tarball}}
	}
	for _, im := range c.images {
		archive, _ := imageFiles(im.on, im.Image)
		results = append(results, Result{archive, slashed(im.on.Arch, path.Base(archive))})
	}
	if len(c.images) > 0 {
		return results
	}
	for _, bin := range c.binaries {
		results = append(results, Result{p.binary(bin.on, bin.Binary), programName(bin.on, bin.Binary)})
	}
	return results
}

// A NotForError says that a component is built for none of the platforms asked for.
type NotForError struct {
	Component string
	Asked     []catalog.Platform
	For       []catalog.Platform
}

func (e *NotForError) Error() string {
	return fmt.Sprintf("%s is not built for %s; it is for %s", e.Component, enumerate(e.Asked), enumerate(e.For))
}

func enumerate(platforms []catalog.Platform) string {
	names := make([]string, len(platforms))
	for i, p := range platforms {
		names[i] = p.String()
	}
	return strings.Join(names, ", ")
}

// BadRequest marks the error as the request's fault: see package badrequest.
func (*NotForError) BadRequest() {}
