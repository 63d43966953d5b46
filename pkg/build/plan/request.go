package plan

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/catalog"
)

// A Request names what to make.
type Request struct {
	// What is WHAT=: components by name or path. Empty means every component of the server, node and client sets.
	What string
	// Platforms narrow the sets' own; empty means all of them for Everywhere, else the host's.
	Platforms  []catalog.Platform
	Everywhere bool

	Images  bool // the component images too
	Tars    bool // and the tarballs with their checksums
	TestSet bool // and the test set's
}

// A Plan is what a request makes, and how.
type Plan struct {
	Graph   *action.Graph
	Results []Result         // the files that the request is for
	Release *release.Release // what release.json will say, without digests; nil if no release is made
}

// A Result is a file that a request is for.
type Result struct {
	Path string // relative to the tree's root
	Name string // among the results: of what is made for several platforms, with a folder
}

// IsResult reports whether a file, by its path relative to the root, is a result.
func (p *Plan) IsResult(path string) bool {
	return slices.ContainsFunc(p.Results, func(r Result) bool { return r.Path == path })
}

// Plan plans a request. It resolves what the request makes, and then describes how each part of that is made, once.
func (p *Project) Plan(ctx context.Context, req Request) (*Plan, error) {
	c, err := p.resolve(req)
	if err != nil {
		return nil, err
	}
	b := p.builder(ctx)
	if err := b.actions(c); err != nil {
		return nil, err
	}
	planned := &Plan{Graph: b.graph}
	if p.made {
		if err := b.leaveOut(c.others(p.Catalog)); err != nil {
			return nil, err
		}
	}
	if !req.Tars {
		planned.Results = p.results(c)
		return planned, nil
	}
	described := p.describe(c)
	b.release(described)
	planned.Release = &described.Release
	for _, a := range described.Release.Artifacts {
		if a.Path != "" {
			planned.Results = append(planned.Results, Result{slashed(Tars, a.Path), a.Path})
		}
	}
	planned.Results = append(planned.Results, Result{slashed(Tars, release.File), release.File})
	return planned, nil
}

// results are the files that a request for images or binaries is for.
func (p *Project) results(c *content) []Result {
	var results []Result
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
