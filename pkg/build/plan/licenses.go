package plan

import (
	"cmp"
	"context"
	"path"
	"path/filepath"
	"slices"

	"slipway.build/pkg/build/license"
	"slipway.build/pkg/build/toolchain"
	"slipway.build/pkg/tree/catalog"
)

// shipped lists the components that share one LICENSES folder with those of a set, and names them. The test set has its own
// folder, as it links many more modules.
func (b *builder) shipped(set catalog.Set, platform catalog.Platform) (name string, binaries []catalog.Binary) {
	name, sets := "components", []catalog.Set{catalog.Server, catalog.Node, catalog.Client}
	if set == catalog.Test {
		name, sets = "test", []catalog.Set{catalog.Test}
	}
	seen := map[string]bool{}
	for _, s := range sets {
		holds := b.Catalog.BinariesFor(s, platform)
		if s == catalog.Test {
			holds = append(holds, b.inImages(s, platform)...)
		}
		for _, bin := range holds {
			if !seen[bin.Name] && b.Catalog.IsComponent(bin) {
				seen[bin.Name] = true
				binaries = append(binaries, bin)
			}
		}
	}
	return name, binaries
}

// inImages lists the binaries in the images of a set's tarball.
func (b *builder) inImages(set catalog.Set, platform catalog.Platform) []catalog.Binary {
	var binaries []catalog.Binary
	for _, im := range b.Catalog.ImagesFor(set, platform) {
		for _, name := range im.Binaries() {
			bin, _ := b.Catalog.Binary(name) // guaranteed by catalog.Load
			binaries = append(binaries, bin)
		}
	}
	return binaries
}

// A group is the binaries of one module that share a LICENSES folder.
type group struct {
	license.Group
	module   string
	binaries []catalog.Binary
}

// components is the group of the release's own binaries that a set ships.
func (b *builder) components(set catalog.Set, platform catalog.Platform) group {
	name, binaries := b.shipped(set, platform)
	return group{license.Group{Name: name, OS: platform.OS, Arch: platform.Arch}, b.Catalog.Module, binaries}
}

// addons are the groups of other projects' binaries that a set ships.
func (b *builder) addons(set catalog.Set, platform catalog.Platform) []group {
	shipped := map[string]bool{} // by name
	for _, bin := range append(b.Catalog.BinariesFor(set, platform), b.inImages(set, platform)...) {
		shipped[bin.Name] = true
	}
	var groups []group
	for _, bin := range b.Catalog.Binaries {
		if !shipped[bin.Name] || b.Catalog.IsComponent(bin) {
			continue
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.module == bin.Module })
		if i < 0 {
			i = len(groups)
			name := license.Group{Name: path.Base(bin.Module), OS: platform.OS, Arch: platform.Arch}
			groups = append(groups, group{Group: name, module: bin.Module})
		}
		groups[i].binaries = append(groups[i].binaries, bin)
	}
	return groups
}

// licenses plans the LICENSES folder of a set's tarball, and returns where it is made. It covers every component that a
// release ships for the platform, so it is the same for all requests.
func (b *builder) licenses(set catalog.Set, platform catalog.Platform) (string, error) {
	return b.licensesOf(b.components(set, platform), platform)
}

// addonLicenses plans the licenses of the other projects whose programs a set's tarball holds: a folder for each.
func (b *builder) addonLicenses(set catalog.Set, platform catalog.Platform) ([]content, error) {
	var holds []content
	for _, g := range b.addons(set, platform) {
		dir, err := b.licensesOf(g, platform)
		if err != nil {
			return nil, err
		}
		holds = append(holds, content{from: dir + "/", to: "LICENSES/" + g.Name})
	}
	return holds, nil
}

// licensesOf plans a folder with the licenses of a group, and returns where it is made.
func (b *builder) licensesOf(g group, platform catalog.Platform) (string, error) {
	dir := b.licenseDir(g)
	spec := license.Spec{Group: g.Group, Modules: slashed(stage, "modules", g.Name, platform.Dash()+".json"), Output: dir}
	if !b.first(license.Action(b.Root, b.Go, spec).ID) {
		return dir, nil
	}
	if err := b.compile(platform, g.binaries); err != nil {
		return "", err
	}
	if g.module != b.Catalog.Module && b.ofOthers(dir+"/") {
		return dir, nil
	}
	modules := license.ModulesSpec{Group: g.Group, Output: spec.Modules}
	for _, bin := range g.binaries {
		modules.Binaries = append(modules.Binaries, b.binary(platform, bin))
	}
	b.add(license.ModulesAction(b.Root, modules))
	var err error
	if spec.Texts, err = b.texts(g, platform); err != nil {
		return "", err
	}
	b.add(license.Action(b.Root, b.Go, spec))
	return dir, nil
}

func (b *builder) licenseDir(g group) string {
	return slashed(stage, "licenses", g.Name, g.OS+"-"+g.Arch)
}

// licenseNames plans the names of the licenses of everything that binaries may link, and returns the files that hold them.
func (b *builder) licenseNames(set catalog.Set, platform catalog.Platform, binaries []catalog.Binary) ([]string, error) {
	var files []string
	for _, g := range append(b.addons(set, platform), b.components(set, platform)) {
		if !slices.ContainsFunc(binaries, func(bin catalog.Binary) bool { return bin.Module == g.module }) {
			continue
		}
		spec := license.NamesSpec{Group: g.Group, Output: slashed(stage, "spdx", g.Name, platform.Dash()+".json")}
		files = append(files, spec.Output)
		if !b.first(license.NamesAction(b.Root, b.Go, spec).ID) {
			continue
		}
		var err error
		if spec.Texts, err = b.texts(g, platform); err != nil {
			return nil, err
		}
		b.add(license.NamesAction(b.Root, b.Go, spec))
	}
	return files, nil
}

// texts says where the license texts of a group are, and plans the list of packages that leads to them.
func (b *builder) texts(g group, platform catalog.Platform) (license.Texts, error) {
	texts := license.Texts{Own: sourceDir + "/LICENSE"}
	switch component := g.module == b.Catalog.Module; {
	case component && b.licensed != "":
		texts.Gathered = filepath.ToSlash(b.licensed)
	case !component && b.others:
		texts.Gathered = b.licenseDir(g)
	default:
		module, err := b.module(g.module)
		if err != nil {
			return texts, err
		}
		list := b.listSpec(g, platform, module)
		if a := license.ListAction(b.Root, b.Go, list); b.first(a.ID) {
			b.add(a)
		}
		texts.Packages, texts.Module, texts.ModuleFiles, texts.GoVersion = list.Output, g.module, module.inputs, b.Catalog.Go.Version
	}
	return texts, nil
}

// listSpec describes the list of packages that a group is compiled from. Build information in a binary names modules only,
// and a license may lie in the folder of a package.
func (b *builder) listSpec(g group, platform catalog.Platform, module *goModule) license.ListSpec {
	c := b.compileSpec(platform, module)
	c.LDFlags, c.Options.LDFlags = "", "" // the list does not depend on the stamp
	spec := license.ListSpec{
		Group:       g.Group,
		Module:      g.module,
		ModuleFiles: module.inputs,
		GoVersion:   b.Catalog.Go.Version,
		GoFlags:     b.Settings.Build.GoFlags,
		Flags:       c.BuildFlags(),
		Levels:      toolchain.Levels(),
		Output:      slashed(stage, "packages", g.Name, platform.Dash()+".json"),
	}
	for _, bin := range g.binaries {
		spec.Heads = append(spec.Heads, module.Heads(cmp.Or(bin.Package, bin.Test)))
		if bin.IsTest() {
			spec.Tests = append(spec.Tests, bin.Test)
		} else {
			spec.Mains = append(spec.Mains, bin.Package)
		}
	}
	return spec
}

// moduleDir returns the folder of a module that another one requires.
func (b *builder) moduleDir(ctx context.Context, of *goModule, path string) (string, error) {
	g, err := b.Go(ctx, nil)
	if err != nil {
		return "", err
	}
	return g.ModuleDir(ctx, of.Dir, path, b.Settings.Build.GoFlags)
}
