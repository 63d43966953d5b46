package bump

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	goversion "go/version"

	"golang.org/x/mod/modfile"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// toGo moves to a version of Go, or to the newest patch of the pinned one.
func (p *preparation) toGo(version string) step {
	return func(ctx context.Context) (err error) {
		if version == "" {
			if version, err = p.proxy.newestGo(ctx, p.catalog.Go.Version); err != nil {
				return err
			}
		}
		if err := p.moveGo(ctx, version, ""); err != nil {
			return err
		}
		if p.compileGo != version {
			return errors.New(strings.Join(p.Notes, "; "))
		}
		for _, pr := range append(p.projects, project{folder: p.catalog.Module, goLine: p.was.Go}) {
			if goversion.Compare("go"+pr.goLine, version) > 0 {
				return fmt.Errorf("%s/go.mod asks for Go %s, which is newer than %s", pr.folder, pr.goLine, version)
			}
		}
		return nil
	}
}

// commonHosts lists the hosts that people build on. release.yaml may have more.
var commonHosts = []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"}

// moveGo makes a Go the one that compiles, with its sums for all hosts. If it is not available for this machine, the pinned one stays.
func (p *preparation) moveGo(ctx context.Context, version, why string) error {
	pinned := p.catalog.Go
	hosts := append(slices.Collect(maps.Keys(pinned.Sums)), toolchain.Host())
	hosts = slices.Compact(slices.Sorted(slices.Values(append(hosts, commonHosts...))))
	if version == pinned.Version && len(pinned.Sums) == len(hosts) {
		return nil
	}
	p.Say("fetching " + version)
	prefix := "v0.0.1-" + version + "."
	var modules []requirement
	for _, host := range hosts {
		modules = append(modules, requirement{Path: "golang.org/toolchain", Version: prefix + host})
	}
	all, err := p.proxy.fetch(ctx, modules...)
	var unavailable unavailableError
	if err != nil && !errors.As(err, &unavailable) {
		return err
	}
	sums := map[string]string{}
	for _, g := range all {
		sums[strings.TrimPrefix(g.Version, prefix)] = g.Sum
	}
	switch {
	case sums[toolchain.Host()] == "" && version != pinned.Version:
		p.note("%s is not available for %s (%s), so %s stays: %s", version, toolchain.Host(), why, pinned.Version, unavailable[0].reason)
		return nil
	case sums[toolchain.Host()] == "", version == pinned.Version && maps.Equal(sums, pinned.Sums):
		return nil
	}
	if without := slices.DeleteFunc(hosts, func(host string) bool { return sums[host] != "" }); len(without) > 0 {
		p.note("%s is not available for %s: release.yaml has no sum for it, and people there need to install it themselves", version,
			strings.Join(without, ", "))
	}
	p.move("Go", pinned.Version, version, why)
	p.compileGo = version
	p.docs[pinned.Version] = version
	moved := p.catalog.Go
	moved.Version, moved.Sums = version, sums
	return p.setGo(ctx, moved)
}

// setGo writes the Go that compiles, and, if that is too old for slipway itself, the one that compiles slipway.
func (p *preparation) setGo(ctx context.Context, t catalog.Toolchain) error {
	if err := p.draft.SetToolchain("go", "", t); err != nil {
		return err
	}
	slipway, err := module.Load(p.Root, ".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if own := p.catalog.Own(); err == nil && goversion.Compare(t.Version, "go"+slipway.Go) < 0 {
		p.move("Go of slipway itself", "", own.Version, t.Version+" is too old for it")
		return p.draft.SetToolchain("toolchain", "The Go that compiles slipway itself, for which the components' is too old.", own)
	}
	if err := p.draft.DropToolchain("toolchain"); err != nil {
		return err
	}
	if goversion.Compare(t.Version, p.hostGo.Version) > 0 { // it may have to read a newer go.mod
		p.hostGo, err = toolchain.Find(ctx, toolchain.Pin{Version: t.Version, Sums: t.Sums}, p.Say)
		return err
	}
	return nil
}

// followGoLine gives the go line of the components' module to the modules below images/ that have the same now: those with
// programs of our own. A project with patches stays in its version, see fitProject.
func (p *preparation) followGoLine(language string) error {
	if language == p.was.Go {
		return nil
	}
	p.move("go line", p.was.Go, language, "")
	for i, pr := range p.projects {
		if pr.goLine != p.was.Go || p.patched(pr.folder) {
			continue
		}
		p.projects[i].goLine = language
		if err := p.editGoMod(pr.folder, func(f *modfile.File) error { return f.AddGoStmt(language) }); err != nil {
			return err
		}
	}
	return nil
}
