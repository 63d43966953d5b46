package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"slipway.build/pkg/build/road"
	"slipway.build/pkg/mechanism/action"
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

// Graph plans a request.
func (p *Project) Graph(ctx context.Context, req Request) (*action.Graph, error) {
	b := p.builder(ctx)
	b.packs = req.Tars || req.Images
	if req.Images || req.Tars {
		b.sources()
	}
	platforms := p.platforms(req)
	var err error
	switch {
	case req.Tars:
		err = b.release(platforms, req.TestSet)
	case req.Images:
		err = b.images(platforms)
	default:
		err = b.binaries(req.What, platforms, len(req.Platforms) == 0 && !req.Everywhere)
	}
	if err != nil {
		return nil, err
	}
	b.layout()
	for _, bin := range b.targets {
		if err := road.CheckBinary(b.roadOf(bin.Module), roadBinary(bin)); err != nil {
			return nil, err
		}
	}
	return b.graph, nil
}

// platforms are the ones that a request is about.
func (p *Project) platforms(req Request) []catalog.Platform {
	switch {
	case len(req.Platforms) > 0:
		return req.Platforms
	case req.Everywhere:
		return p.Catalog.AllPlatforms()
	case req.Tars || req.Images:
		return []catalog.Platform{p.serverHost()}
	default:
		return []catalog.Platform{catalog.Host()}
	}
}

// serverHost is the linux platform of this machine, or linux/amd64 where a server cannot run on its architecture.
func (p *Project) serverHost() catalog.Platform {
	host := catalog.Platform{OS: "linux", Arch: catalog.Host().Arch}
	if !p.Catalog.SetHas(catalog.Server, host) {
		host.Arch = "amd64"
	}
	return host
}

// A builder collects the actions of one graph.
type builder struct {
	*Project
	ctx     context.Context
	graph   *action.Graph
	modules map[string]*goModule      // that were read, by folder
	batches map[string]*action.Batch  // by ID
	targets map[string]catalog.Binary // by the ID of the action that compiles it
	planned map[string]bool           // IDs of other actions that several tarballs need
	packs   bool                      // binaries are for tarballs or images
	tars    []string                  // names of the tarballs
	parts   []string                  // folders of images, for the layout
	made    []string                  // of other projects: files, and folders with a final slash

	readies map[road.Road]func(context.Context) error // by road, see ready
}

func (p *Project) builder(ctx context.Context) *builder {
	return &builder{
		Project: p,
		ctx:     ctx,
		graph:   &action.Graph{Root: p.Root, State: State},
		modules: map[string]*goModule{},
		batches: map[string]*action.Batch{},
		targets: map[string]catalog.Binary{},
		planned: map[string]bool{},
		readies: map[road.Road]func(context.Context) error{},
	}
}

// first reports whether an action is planned for the first time.
func (b *builder) first(id string) bool {
	planned := b.planned[id]
	b.planned[id] = true
	return !planned
}

func (b *builder) add(a *action.Action) { b.graph.Actions = append(b.graph.Actions, a) }

// binaries plans the compile of what WHAT names, for each platform that it can be built for. A developer's own machine,
// where no platform was asked for, gets every component, as with `go build`, whether or not it is released for it.
func (b *builder) binaries(what string, platforms []catalog.Platform, own bool) error {
	wanted := b.Catalog.Default()
	if what != "" {
		var err error
		if wanted, err = b.Catalog.Match(what); err != nil {
			return err
		}
	}
	built := map[string]bool{}
	for _, platform := range platforms {
		var here []catalog.Binary
		for _, bin := range wanted {
			if own || slices.Contains(b.Catalog.PlatformsOf(bin), platform) {
				here = append(here, bin)
				built[bin.Name] = true
			}
		}
		if err := b.compile(platform, here); err != nil {
			return err
		}
	}
	for _, bin := range wanted {
		if what != "" && !built[bin.Name] {
			return &NotForError{bin.Name, platforms, b.Catalog.PlatformsOf(bin)}
		}
	}
	return nil
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
