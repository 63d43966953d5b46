package plan

import (
	"context"
	"fmt"
	"slices"

	"slipway.build/pkg/make/inputs"
	"slipway.build/pkg/make/pack"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/source"
)

// inputModules is the folder of the modules that a release is made of.
const inputModules = stage + "/inputs/go"

// listInputs lists what the releases for some platforms are made of: modules, the pinned Go for some hosts, and Debian packages.
func (p *Project) listInputs(ctx context.Context, req Request) (*input.List, error) {
	platforms := p.platforms(req)
	files, err := p.sources(ctx)
	if err != nil {
		return nil, err
	}
	var toolchains []module.Pinned
	if !req.NoHosts {
		if toolchains, err = p.released(platforms, req.Hosts); err != nil {
			return nil, err
		}
	}
	var locks, goarchs []string
	for _, im := range p.Catalog.Images {
		if p.hasPackages(im.Base) {
			locks = append(locks, slashed("images", im.Base))
		}
	}
	slices.Sort(locks)
	for _, on := range platforms {
		if p.Catalog.SetHas(catalog.Server, on) {
			goarchs = append(goarchs, on.Arch)
		}
	}
	return input.Read(p.Root, input.ModuleFolders(files), toolchains, slices.Compact(locks), goarchs)
}

// released returns the Go that compiles the components, and the one that compiles slipway itself if that is another, as modules for
// hosts. Without hosts, they are those of the platforms that release.yaml has both for, or else all that it has both for.
func (p *Project) released(platforms, hosts []catalog.Platform) ([]module.Pinned, error) {
	pins := []toolchain.Pin{p.pin}
	if own := p.Catalog.Own(); own.Version != p.pin.Version {
		pins = append(pins, toolchain.Pin{Version: own.Version, Sums: own.Sums})
	}
	var pinned []catalog.Platform
	for _, in := range p.toolchains() {
		if !slices.ContainsFunc(pins, func(pin toolchain.Pin) bool { return pin.Sums[in.Platform.Dash()] == "" }) {
			pinned = append(pinned, in.Platform)
		}
	}
	if len(hosts) == 0 {
		for _, host := range pinned {
			if slices.Contains(platforms, host) {
				hosts = append(hosts, host)
			}
		}
		if len(hosts) == 0 {
			hosts = pinned
		}
	}
	var released []module.Pinned
	for _, pin := range pins {
		for _, host := range hosts {
			m, ok := pin.Released(host.Dash())
			if !ok {
				return nil, badrequest.Mark(fmt.Errorf("release.yaml has no sum of %s for %s; it has %s", pin.Version, host, enumerate(pinned)))
			}
			released = append(released, m)
		}
	}
	return released, nil
}

// inputs adds the actions that make the tarball of the tree and what it is made of.
func (b *builder) inputs(l *input.List) {
	b.add(inputs.ModulesAction(b.Go, inputs.ModulesSpec{Modules: l.Modules, Output: inputModules}))
	b.add(inputs.Action(
		inputs.Spec{Name: input.Tarball, Time: b.Stamp.Date, Tree: b.treeID(), Modules: inputModules, Debian: l.Debian},
		inputs.Place{
			Place: pack.Place{
				Root: b.Root, Tarballs: Tars, Sums: sums512,
				List: b.sourceList(), Inputs: b.tree.Files, Code: source.Code.String(),
			},
			Debian: b.Settings.Debian,
		},
	))
}
