package plan

import (
	"context"
	"fmt"
	"slices"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/target"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/tree/catalog"
)

// Bazel makes a release inside its own actions, in steps. GatherLicenses, ThirdParty and project.PackSources work in the tree, with the Go
// command, modules, network and git. Pack then packs the release from the unpacked sources, without any of these.
//
// GatherLicenses and PackSources are plain functions, not actions of a graph. A graph skips what its records in _output/.slipway say is
// up to date, and locks the tree. Bazel must do that itself: it decides when its action runs, and discards every file but the declared
// outputs.

// GatherLicenses fills dir with the license files of every module that the components of a release for a platform link.
func GatherLicenses(ctx context.Context, p *project.Project, dir string, on catalog.Platform) error {
	components := newResolver(p, Request{}).componentGroup(catalog.Server, on)
	if len(components.Binaries) == 0 {
		return fmt.Errorf("%s: the release has no binaries for it", on)
	}
	return components.Gather(ctx, p, dir)
}

// ThirdParty plans the part of a release for a platform that comes from other projects, and returns its outputs: files, and folders with
// a final slash. Pack needs them in place.
func ThirdParty(ctx context.Context, p *project.Project, on catalog.Platform) (g *action.Graph, outputs []string, err error) {
	req := Request{Tars: true, Platforms: []catalog.Platform{on}}
	// r plans the whole release, part only its third-party targets. An output of part is needed if an action outside of part reads it.
	r, part := newResolver(p, req), newResolver(p, req)
	if err := r.resolve(ctx, req); err != nil {
		return nil, nil, err
	}
	for _, t := range r.targets {
		if r.ThirdParty(t) {
			part.add(t)
		}
	}
	if _, err := part.plan(func(target.Target) bool { return true }); err != nil {
		return nil, nil, err
	}
	if err := part.CheckModules(); err != nil {
		return nil, nil, err
	}
	rest, err := r.plan(func(t target.Target) bool { return !part.seen[t.ID()] })
	if err != nil {
		return nil, nil, err
	}
	for _, a := range part.graph.Actions {
		for _, out := range a.Outputs {
			needed := slices.ContainsFunc(rest.Graph.Actions, func(reader *action.Action) bool { return slices.Contains(reader.Inputs, out) })
			if a.ID != (&target.Sources{}).ID() && needed {
				outputs = append(outputs, out)
			}
		}
	}
	return part.graph, outputs, nil
}

// Prebuilt names what a release is packed from, besides the sources and the outputs of ThirdParty, which are in the tree.
type Prebuilt struct {
	Binaries map[string]string // files that Bazel made, by label
	Licenses string            // the folder that GatherLicenses filled
	Status   []byte            // the workspace status
}

// Pack plans a release for a platform from a tree of unpacked sources, without compiling anything. It ignores the environment.
func Pack(ctx context.Context, dir string, from Prebuilt, on catalog.Platform) (*Plan, error) {
	p, err := project.OpenSources(ctx, dir, project.SettingsFromStatus(from.Status))
	if err != nil {
		return nil, err
	}
	if p.Road, err = p.Roads.Made(from.Binaries, p.Settings.Build); err != nil {
		return nil, err
	}
	req := Request{Tars: true, Platforms: []catalog.Platform{on}}
	r := newResolver(p, req)
	r.Gathered = from.Licenses
	if err := r.resolve(ctx, req); err != nil {
		return nil, err
	}
	r.graph.Folders = target.CacheFolders(p)
	return r.plan(func(t target.Target) bool { return !r.ThirdParty(t) })
}
