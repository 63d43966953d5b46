package project

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/make/gitsource"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/self"
)

// ListInputs lists what the releases for some platforms are made of: modules, Go toolchains (see [Project.HostGo]; nil for none), and
// Debian packages.
func (p *Project) ListInputs(ctx context.Context, platforms []catalog.Platform, toolchains []module.Pinned) (*input.List, error) {
	files, err := p.sourceNames(ctx)
	if err != nil {
		return nil, err
	}
	var locks, goarchs []string
	for _, im := range p.Catalog.Images {
		if p.HasPackages(im.Base) {
			locks = append(locks, path.Join("images", im.Base))
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

// HasPackages reports whether a base of images has files of Debian packages.
func (p *Project) HasPackages(base string) bool {
	if base == "" {
		return false
	}
	_, err := os.Stat(p.Abs(path.Join("images", base, debian.RequestFile)))
	return err == nil
}

// Toolchains returns the Go toolchains that may compile the release: one for each pinned host.
func (p *Project) Toolchains() []release.Input {
	var inputs []release.Input
	for host, sum := range p.Catalog.Go.Sums {
		goos, goarch, _ := strings.Cut(host, "-")
		inputs = append(inputs, release.Input{
			Kind: release.Toolchain, Name: release.ToolchainModule, Version: "v0.0.1-" + p.Catalog.Go.Version + "." + host,
			Platform: platform.Platform{OS: goos, Arch: goarch}, Sum: sum,
		})
	}
	slices.SortFunc(inputs, func(a, b release.Input) int { return cmp.Compare(a.Version, b.Version) })
	return inputs
}

// SourceInputs returns the commit that Kubernetes' modules are made of, as an input of a release, if the tree names one.
func (p *Project) SourceInputs() ([]release.Input, error) {
	s := p.Catalog.Source
	if s == (catalog.Source{}) {
		return nil, nil
	}
	taken, err := gitsource.Taken(p.Root, p.Catalog.Kubernetes)
	if err != nil {
		return nil, err
	}
	in := release.Input{Kind: release.Repository, Name: s.Repository, Version: s.Ref, Commit: s.Commit, Tree: s.Tree}
	for _, m := range taken {
		in.Changes = append(in.Changes, m.Path)
	}
	slices.Sort(in.Changes)
	in.Changes = slices.Compact(in.Changes)
	return []release.Input{in}, nil
}

// Slipway returns the running slipway, as an input of the release. Tree is the digest of the files of the tree.
func (p *Project) Slipway(ctx context.Context, tree string) (release.Input, error) {
	s, err := self.Read(ctx, p.Root, p.getenv)
	if err != nil {
		return release.Input{}, err
	}
	in := release.Input{Kind: release.Tool, Name: s.Module.Path, Version: s.Module.Version.Version, Sum: s.Module.Sum, Replaces: s.Replaces}
	if in.Sum == "" {
		in.Name, in.Version, in.Commit, in.Tree = self.Module, strings.TrimSpace("folder "+s.Folder), s.Commit, s.Tree
		switch {
		case s.Folder == ".":
			in.Commit, in.Tree = p.Stamp.Commit, tree
		case s.Folder == "":
			in.Tree = recipe.All()
		}
		if s.Dirty {
			in.Version += ", dirty"
		}
	}
	for _, m := range s.Linked {
		in.Libraries = append(in.Libraries, release.Library{Name: m.Path, Version: m.Version, Sum: m.Sum})
	}
	return in, nil
}

// fips returns the version of Go's cryptographic module that the tree selects. It is zero if the tree selects none.
func (p *Project) fips(g *toolchain.Go) (module.Pinned, error) {
	if p.Catalog.Go.FIPS == "" {
		return module.Pinned{}, nil
	}
	m, err := g.FIPS(p.Catalog.Go.FIPS)
	if err == nil {
		return m, nil
	}
	d, failed := catalog.ReadDraft(p.Root)
	if failed != nil {
		return m, failed
	}
	return m, fmt.Errorf("%s: fips: %w", p.Abs(d.Where("go", "fips")), err)
}

// FIPS returns the version of Go's cryptographic module that the tree selects, which must be one.
func (p *Project) FIPS(ctx context.Context) (module.Pinned, error) {
	g, err := p.Go(ctx, nil)
	if err != nil {
		return module.Pinned{}, err
	}
	return p.fips(g)
}

// HasFIPS reports whether the programs of a Go module of the tree are compiled with the selected version of Go's cryptographic module.
func (p *Project) HasFIPS(folder string) bool {
	return p.Catalog.Go.FIPS != "" && (folder == p.Catalog.Module || p.Catalog.Go.FIPSProjects)
}

// HostGo returns, as modules for some hosts, the Go that compiles the components, and the Go that compiles slipway if it is a different
// version. If hosts is empty, the hosts are those platforms for which release.yaml pins every such Go, or, if there are none, all hosts
// for which it does.
func (p *Project) HostGo(platforms, hosts []catalog.Platform) ([]module.Pinned, error) {
	pins := []toolchain.Pin{p.pin}
	if own := p.Catalog.Own(); own.Version != p.pin.Version {
		pins = append(pins, toolchain.Pin{Version: own.Version, Sums: own.Sums})
	}
	var pinned []catalog.Platform
	for _, in := range p.Toolchains() {
		if !slices.ContainsFunc(pins, func(pin toolchain.Pin) bool { return pin.Sums[in.Platform.Dash()] == "" }) {
			pinned = append(pinned, in.Platform)
		}
	}
	if len(hosts) == 0 {
		hosts = slices.DeleteFunc(slices.Clone(pinned), func(host catalog.Platform) bool { return !slices.Contains(platforms, host) })
	}
	if len(hosts) == 0 {
		hosts = pinned
	}
	var released []module.Pinned
	for _, pin := range pins {
		for _, host := range hosts {
			m, ok := pin.Released(host.Dash())
			if !ok {
				return nil, badrequest.Mark(fmt.Errorf("release.yaml has no sum of %s for %s; it has %s", pin.Version, host,
					catalog.Enumerate(pinned)))
			}
			released = append(released, m)
		}
	}
	return released, nil
}
