package plan

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/make/debrpm"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/target"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/input"
)

// A resolver turns a request into targets.
type resolver struct {
	*target.Build
	graph *action.Graph

	targets []target.Target // what the request makes: each once, after what it needs, until plan sorts them
	wanted  []target.File   // the requested files; a release has its own list
	images  []*target.Image // for the layout
	release *target.Release
	inputs  *input.List
	absent  []string
	seen    map[string]bool // IDs of targets

	generated []*target.Generated
}

func newResolver(p *project.Project, req Request) *resolver {
	g := &action.Graph{Root: p.Root, State: project.State}
	return &resolver{Build: target.NewBuild(p, g, req.Tars || req.Images), graph: g, seen: map[string]bool{}}
}

// add adds a target once, after its needs.
func (r *resolver) add(t target.Target) {
	if t == nil || r.seen[t.ID()] {
		return
	}
	r.seen[t.ID()] = true
	for _, need := range t.Needs() {
		r.add(need)
	}
	r.targets = append(r.targets, t)
}

// want adds a target that the request asks for.
func (r *resolver) want(t target.File) {
	r.add(t)
	r.wanted = append(r.wanted, t)
}

// resolve adds what a request makes.
func (r *resolver) resolve(ctx context.Context, req Request) error {
	platforms := platforms(r.Catalog, req)
	if req.Inputs {
		var err error
		if r.inputs, err = listInputs(ctx, r.Project, req); err != nil {
			return err
		}
	}
	switch {
	case req.Tars:
		return r.resolveRelease(ctx, platforms, req)
	case req.Images:
		for _, on := range platforms {
			for _, im := range r.Catalog.ImagesFor(catalog.Server, on) {
				r.want(r.image(on, im))
			}
		}
		if len(r.images) == 0 {
			return &NotForError{"an image", platforms, r.Catalog.Sets[catalog.Server]}
		}
		r.add(&target.Layout{Images: r.images})
	case req.API:
		api := r.api()
		if api == nil {
			return errors.New("release.yaml lacks kube-apiserver or etcd, which say what the API is")
		}
		r.want(api)
	case req.Inputs:
		r.want(&target.Inputs{List: r.inputs})
	default:
		return r.components(req.What, platforms, len(req.Platforms) == 0 && !req.Everywhere)
	}
	return nil
}

// components adds the components that WHAT names, for each platform that they are released for. If the request names no platform
// (own), the developer's machine gets every component, released for it or not, as with `go build`.
func (r *resolver) components(what string, platforms []catalog.Platform, own bool) error {
	requested := r.Catalog.Default()
	if what != "" {
		var err error
		if requested, err = r.Catalog.Match(what); err != nil {
			return err
		}
	}
	built := map[string]bool{}
	for _, on := range platforms {
		for _, bin := range requested {
			if own || slices.Contains(r.Catalog.PlatformsOf(bin), on) {
				r.want(r.BinaryOf(on, bin))
				built[bin.Name] = true
			}
		}
	}
	for _, bin := range requested {
		if what != "" && !built[bin.Name] {
			return &NotForError{bin.Name, platforms, r.Catalog.PlatformsOf(bin)}
		}
	}
	return nil
}

// resolveRelease adds the tarballs for some platforms, those that are the same for all, and the release's description.
func (r *resolver) resolveRelease(ctx context.Context, platforms []catalog.Platform, req Request) error {
	sets := []catalog.Set{catalog.Server, catalog.Node, catalog.Client}
	if req.TestSet {
		sets = append(sets, catalog.Test)
	}
	if req.Addons {
		sets = append(sets, catalog.Addons)
	}
	sources := target.SourceTarball()
	tarballs := []*target.Tarball{sources}
	for _, on := range platforms {
		for _, set := range sets {
			if r.has(set, on) {
				tarballs = append(tarballs, r.setTarball(set, on, sources))
			}
		}
	}
	full := &target.Tarball{Name: catalog.FullTarball, Top: top, Version: true}
	for _, name := range target.Optional {
		if target.Has(r.Project, name) {
			full.Members = append(full.Members, target.Source(name, strings.TrimSuffix(name, "/"), false))
		} else {
			r.absent = append(r.absent, name)
		}
	}
	tarballs = append(tarballs, &target.Tarball{
		Name: catalog.ManifestsTarball, Top: top, Version: true,
		Members: []target.Member{target.Source("release/manifests/", "manifests", true)},
	}, full)
	if req.TestSet && len(r.Catalog.Sets[catalog.Test]) > 0 {
		tarballs = append(tarballs, target.PortableTestTarball())
	}
	if api := r.api(); req.API && api != nil {
		tarballs = append(tarballs, api.Tarball(top))
	}
	for _, t := range tarballs {
		r.add(t)
	}
	if req.Packages {
		for _, on := range platforms {
			for _, p := range r.Catalog.PackagesFor(on) {
				for _, format := range debrpm.Formats() {
					r.add(r.pkg(on, p, format))
				}
			}
		}
	}
	if r.inputs != nil {
		r.add(&target.Inputs{List: r.inputs})
	}
	if len(r.images) > 0 {
		r.add(&target.Layout{Images: r.images})
	}
	for _, t := range r.binaryInfo(tarballs) {
		r.add(t)
	}
	sets = slices.DeleteFunc(sets, func(set catalog.Set) bool {
		return !slices.ContainsFunc(platforms, func(on catalog.Platform) bool { return r.has(set, on) })
	})
	var err error
	if r.release, err = target.NewRelease(ctx, r.Project, slices.Clone(r.targets), sets); err == nil {
		r.add(r.release)
	}
	return err
}

// has reports whether a release has a set for a platform. A tree may have no addons: a bump to an older Go can leave out all.
func (r *resolver) has(set catalog.Set, on catalog.Platform) bool {
	return r.Catalog.SetHas(set, on) && (set != catalog.Addons || len(r.Catalog.ImagesFor(set, on)) > 0)
}

// api returns the files that say what the API is, or nil if the catalog lacks what makes them. They are the same for all platforms, so
// the programs are those for this machine, whatever the release is for.
func (r *resolver) api() *target.API {
	server, etcd, ok := r.Catalog.APIPrograms()
	if !ok {
		return nil
	}
	return &target.API{Server: r.BinaryOf(catalog.Host(), server), Etcd: r.BinaryOf(catalog.Host(), etcd)}
}

// runtimeDefaults is the folder of a tree, which may lack it, with the configuration of containerd.
const runtimeDefaults = "release/defaults/containerd/"

// top is the folder in tarballs that has everything in it.
const top = "kubernetes"

// setTarball returns kubernetes-SET-OS-ARCH.tar.gz, and records its images for the layout.
func (r *resolver) setTarball(set catalog.Set, on catalog.Platform, sources *target.Tarball) *target.Tarball {
	t := &target.Tarball{Name: catalog.Tarball(set, on), Top: top, On: on}
	add := func(members ...target.Member) { t.Members = append(t.Members, members...) }
	binaries := r.Catalog.BinariesFor(set, on)
	for _, bin := range binaries {
		add(r.BinaryOf(on, bin).Member(bin.FolderIn(set)))
	}
	if set == catalog.Client {
		t.Also = append(t.Also, &target.LicenseNames{Group: r.componentGroup(set, on)})
		for _, group := range r.projectGroups(on, binaries) {
			t.Also = append(t.Also, &target.LicenseNames{Group: group})
		}
		return t
	}
	t.Version = true
	add((&target.LicenseTexts{Group: r.componentGroup(set, on)}).Member("LICENSES"), sources.Member())
	if set == catalog.Node {
		return t
	}
	some := slices.Clone(binaries)
	copyrights := &target.Copyrights{Name: "debian", On: on}
	if set != catalog.Server {
		copyrights.Name += "-" + string(set)
	}
	for _, im := range r.Catalog.ImagesFor(set, on) {
		made := r.image(on, im)
		add(made.Members(imageFolder(set, im))...)
		for _, bin := range made.Binaries {
			some = append(some, bin.Binary)
		}
		copyrights.Add(made.Packages)
	}
	for _, group := range r.projectGroups(on, some) {
		add((&target.LicenseTexts{Group: group}).Member(path.Join("LICENSES", group.Name)))
	}
	if len(copyrights.Of) > 0 {
		add(copyrights.Member("LICENSES/debian"))
	}
	switch set {
	case catalog.Server:
		add(target.Source("release/manifests/addons/", "addons", true))
		if target.Has(r.Project, runtimeDefaults) {
			add(target.Source(runtimeDefaults, "addons/containerd", true))
		}
	case catalog.Addons:
		for _, a := range r.Catalog.Addons {
			add(target.Source(a.Folder()+"/", target.AddonFolder(a), true))
		}
		t.AddModuleFiles(r.Catalog.Addons)
	}
	return t
}

// imageFolder returns the folder of a tarball that holds an image.
func imageFolder(set catalog.Set, im catalog.Image) string {
	switch {
	case set == catalog.Test:
		return "test/images"
	case set == catalog.Addons, im.Versioned():
		return "addons/images"
	}
	return "server/bin"
}

// image returns an image with its binaries and licenses, and records it for the layout.
func (r *resolver) image(on catalog.Platform, im catalog.Image) *target.Image {
	t := &target.Image{Image: im, On: on, Packages: r.PackagesOf(im.Base, on)}
	var binaries []catalog.Binary
	for _, name := range im.Binaries() {
		bin, _ := r.Catalog.Binary(name) // catalog.Load guarantees that it exists
		binaries = append(binaries, bin)
		t.Binaries = append(t.Binaries, r.BinaryOf(on, bin))
	}
	groups := r.projectGroups(on, binaries)
	if slices.ContainsFunc(binaries, r.Catalog.IsComponent) {
		groups = slices.Insert(groups, 0, r.componentGroup(cmp.Or(im.Set, catalog.Server), on))
	}
	for _, group := range groups {
		t.Licenses = append(t.Licenses, &target.LicenseNames{Group: group})
	}
	r.images = append(r.images, t)
	return t
}

// pkg returns a package with its binaries and licenses.
func (r *resolver) pkg(on catalog.Platform, p catalog.Package, format debrpm.Format) *target.Package {
	t := &target.Package{Package: p, Format: format, On: on}
	var binaries []catalog.Binary
	for _, name := range p.Binaries {
		bin, _ := r.Catalog.Binary(name) // catalog.Load guarantees that it exists
		binaries = append(binaries, bin)
		t.Binaries = append(t.Binaries, r.BinaryOf(on, bin))
	}
	if slices.ContainsFunc(binaries, r.Catalog.IsComponent) {
		t.Licenses = append(t.Licenses, r.componentGroup(catalog.Server, on))
	}
	t.Licenses = append(t.Licenses, r.projectGroups(on, binaries)...)
	return t
}

// projectGroups returns a group for each third-party project that some binaries belong to, in the catalog's order. It has all programs of
// the project in a release for the platform, so it is the same whichever tarballs are requested.
func (r *resolver) projectGroups(on catalog.Platform, some []catalog.Binary) []*target.Group {
	var groups []*target.Group
	seen := map[string]bool{r.Catalog.Module: true}
	for _, bin := range r.Catalog.Binaries {
		needed := slices.ContainsFunc(some, func(b catalog.Binary) bool { return b.Module == bin.Module })
		if needed && !seen[bin.Module] {
			seen[bin.Module] = true
			groups = append(groups, r.group(path.Base(bin.Module), bin.Module, on, catalog.Sets()...))
		}
	}
	return groups
}

// componentGroup returns the components that share a LICENSES folder with those of a set: every component that a release ships for the
// platform, so the group does not depend on which tarballs are requested. What is made on request, the test set and addons, has groups of
// its own.
func (r *resolver) componentGroup(set catalog.Set, on catalog.Platform) *target.Group {
	if set == catalog.Test || set == catalog.Addons {
		return r.group(string(set), r.Catalog.Module, on, set)
	}
	return r.group("components", r.Catalog.Module, on, catalog.Server, catalog.Node, catalog.Client)
}

// group returns the binaries of a module that the tarballs of some sets hold for a platform, as files or in images.
func (r *resolver) group(name, module string, on catalog.Platform, sets ...catalog.Set) *target.Group {
	g := &target.Group{Name: name, On: on}
	for _, bin := range r.Catalog.Binaries {
		if bin.Module == module && r.ships(bin, on, sets...) {
			g.Binaries = append(g.Binaries, r.BinaryOf(on, bin))
		}
	}
	return g
}

// ships reports whether the tarballs of some sets hold a binary for a platform, as a file or in an image.
func (r *resolver) ships(bin catalog.Binary, on catalog.Platform, sets ...catalog.Set) bool {
	return slices.ContainsFunc(sets, func(set catalog.Set) bool {
		return slices.ContainsFunc(r.Catalog.BinariesFor(set, on), func(b catalog.Binary) bool { return b.Name == bin.Name }) ||
			slices.ContainsFunc(r.Catalog.ImagesFor(set, on), func(im catalog.Image) bool { return slices.Contains(im.Binaries(), bin.Name) })
	})
}

// binaryInfo returns the steps that read the binaries in tarballs and in their images: one for each platform and project. Binaries
// of sets that are made on request have separate ones, so the first does not change when such a set is requested. The tarballs must have
// been added.
func (r *resolver) binaryInfo(tarballs []*target.Tarball) []*target.BinaryInfo {
	held := map[string]bool{}
	for _, t := range tarballs {
		for _, bin := range t.Binaries() {
			held[bin.ID()] = true
		}
	}
	var all []*target.BinaryInfo
	for _, t := range r.targets {
		bin, ok := t.(*target.Binary)
		if !ok || !held[bin.ID()] {
			continue
		}
		name := "components"
		if !r.Catalog.IsComponent(bin.Binary) {
			name = path.Base(bin.Module)
		}
		if !r.ships(bin.Binary, bin.On, catalog.Server, catalog.Node, catalog.Client) {
			set := catalog.Test
			if !r.ships(bin.Binary, bin.On, set) {
				set = catalog.Addons
			}
			name += "-" + string(set)
		}
		i := slices.IndexFunc(all, func(b *target.BinaryInfo) bool { return b.Name == name && b.On == bin.On })
		if i < 0 {
			i = len(all)
			all = append(all, &target.BinaryInfo{Name: name, On: bin.On})
		}
		all[i].Of = append(all[i].Of, bin)
	}
	return all
}
