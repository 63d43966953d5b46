package plan

import (
	"cmp"
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/make/compile"
	"slipway.build/pkg/make/describe"
	"slipway.build/pkg/make/image"
	"slipway.build/pkg/make/license"
	"slipway.build/pkg/make/pack"
	"slipway.build/pkg/make/relink"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/source"
)

// A builder makes the actions of one graph of a content.
type builder struct {
	*Project
	ctx      context.Context
	graph    *action.Graph
	modules  map[string]*goModule // already read, by folder
	compiler compile.Compiler
}

func (p *Project) builder(ctx context.Context) *builder {
	b := &builder{Project: p, ctx: ctx, graph: &action.Graph{Root: p.Root, State: State}, modules: map[string]*goModule{}}
	links := relink.Links{Folder: filepath.Join(p.Root, filepath.FromSlash(State), "links")}
	b.compiler = compile.Compiler{Root: p.Root, Measured: b.graph.Measured, Links: links}
	return b
}

// actions adds all actions of a content.
func (b *builder) actions(c *content) error {
	if len(c.images)+len(c.tarballs)+len(c.notices) > 0 {
		b.sources()
	}
	if len(c.tarballs)+len(c.images) > 0 {
		b.compiler.Cache = b.ArchiveCache() // the binaries will be packed
	}
	for _, bin := range c.binaries {
		if err := b.compile(bin); err != nil {
			return err
		}
	}
	for _, n := range c.notices {
		if err := b.notice(n); err != nil {
			return err
		}
	}
	for _, base := range c.bases {
		b.add(debian.Action(b.Root, b.Settings.Debian, b.packages(base)))
	}
	for _, im := range c.images {
		b.add(image.Action(b.Root, b.ArchiveCache(), b.image(im)))
	}
	if len(c.images) > 0 {
		b.add(image.LayoutAction(b.Root, layout(c)))
	}
	for _, t := range c.tarballs {
		at, err := b.place(t)
		if err != nil {
			return err
		}
		b.add(pack.Action(t.Spec, at))
	}
	if c.inputs != nil {
		b.inputs(c.inputs)
	}
	return nil
}

// packages describes the tar file of a base's Debian packages.
func (p *Project) packages(base baseOn) debian.Spec {
	return debian.Spec{
		Name:   base.name,
		OS:     base.on.OS,
		Arch:   base.on.Arch,
		Dir:    slashed(sourceDir, "images", base.name),
		Output: slashed(stage, "debian", base.name, base.on.Dash()+".tar"),
	}
}

// image describes an image. A component's image is labeled with the release's version, commit and date. Another project's image is
// labeled with those of its catalog entry, so that its digest stays the same from commit to commit.
func (b *builder) image(im imageOn) image.Spec {
	archive, tag := imageFiles(im.on, im.Image)
	s := image.Spec{
		Name: im.File(),
		Program: image.Program{
			Title:      im.Title,
			User:       im.User,
			Entrypoint: im.Entrypoint,
			Arguments:  im.Arguments,
			SetUID:     im.SetUID,
			OS:         im.on.OS,
			Arch:       im.on.Arch,
			Version:    b.Stamp.Version,
			Revision:   b.Stamp.Commit,
			Created:    b.Stamp.Date.UTC(),
		},
		Base:        im.Base,
		Bases:       slashed(sourceDir, "images"),
		Tag:         b.imageTag(im.Image),
		ArchiveTags: b.imageTags(im.Image, im.on.Arch),
		Tags:        b.indexTags(im.Image),
		Archive:     archive,
		SHA512:      archiveSHA512(im.on, im.Image),
		DockerTag:   tag,
		Part:        imagePart(im.on, im.Image),
	}
	if im.Addon() {
		s.Version, s.Revision, s.Source, s.Created = im.Version, im.Revision, im.Source, im.Created.UTC()
	}
	for _, bin := range im.binaries {
		s.Binaries = append(s.Binaries, image.Binary{Name: bin.Name, File: b.binary(im.on, bin)})
	}
	if b.hasPackages(im.Base) { // no SPDX expression names the licenses of Debian packages
		s.Packages = b.packages(baseOn{im.Base, im.on}).Output
		return s
	}
	for _, name := range im.notices {
		s.LicenseNames = append(s.LicenseNames, licenseNames(name, im.on))
	}
	return s
}

// layout describes the OCI image layout of all images.
func layout(c *content) image.LayoutSpec {
	s := image.LayoutSpec{Output: Layout}
	for _, im := range c.images {
		s.Parts = append(s.Parts, imagePart(im.on, im.Image))
	}
	return s
}

// place says where a tarball is made, and which members it has that are not files of the tree.
func (b *builder) place(t tarball) (at pack.Place, err error) {
	at = pack.Place{Root: b.Root, Tarballs: Tars, Sums: sums512, Cache: b.ArchiveCache()}
	switch t.Name {
	case catalog.SourceTarball:
		at.Inputs, at.Code = b.tree.Files, source.Code.String()
		at.List = b.sourceList()
	case catalog.PortableTestTarball:
		at.Inputs, at.List, err = b.testManifests()
	}
	return at, err
}

// notice adds the actions that gather license texts.
func (b *builder) notice(n notice) error {
	if len(n.bases) > 0 {
		s := debian.CopyrightSpec{Name: n.name, OS: n.on.OS, Arch: n.on.Arch, Output: noticeDir(n.name, n.on)}
		for _, base := range n.bases {
			s.Bases = append(s.Bases, b.packages(baseOn{base, n.on}))
		}
		b.add(debian.CopyrightAction(b.Root, s))
		return nil
	}
	module, err := b.module(n.binaries[0].Module)
	if err != nil {
		return err
	}
	group := license.Group{Name: n.name, OS: n.on.OS, Arch: n.on.Arch}
	texts := license.Texts{Own: sourceDir + "/LICENSE", Declared: b.Catalog.Licenses}
	if b.licensed != "" && module.Name == b.Catalog.Module {
		texts.Gathered = b.licensed
	} else {
		list := b.listing(group, module, n)
		b.add(license.ListAction(b.Root, b.Go, list))
		texts.Packages, texts.Module, texts.ModuleFiles, texts.GoVersion = list.Output, module.Name, module.inputs, b.Catalog.Go.Version
	}
	if n.names {
		b.add(license.NamesAction(b.Root, b.Go, license.NamesSpec{Group: group, Texts: texts, Output: licenseNames(n.name, n.on)}))
	}
	if !n.texts {
		return nil
	}
	modules := license.ModulesSpec{Group: group, Output: moduleList(n.name, n.on)}
	for _, bin := range n.binaries {
		modules.Binaries = append(modules.Binaries, b.binary(n.on, bin))
	}
	b.add(license.ModulesAction(b.Root, modules))
	b.add(license.Action(b.Root, b.Go, license.Spec{Group: group, Texts: texts, Modules: modules.Output, Patches: b.patchesOf(module),
		Output: noticeDir(n.name, n.on)}))
	return nil
}

// listing describes the list of packages that a notice's binaries are compiled from. Build information in a binary names modules
// only, and a license may lie in the folder of a package. The sources are not inputs: an edit below the imports must not make the Go
// command list everything again.
func (b *builder) listing(group license.Group, module *goModule, n notice) license.ListSpec {
	c := b.compileSpec(n.on, module)
	c.LDFlags, c.Options.LDFlags = "", "" // the list does not depend on the stamp
	s := license.ListSpec{
		Group:       group,
		Module:      module.Name,
		ModuleFiles: module.inputs,
		GoVersion:   b.Catalog.Go.Version,
		GoFlags:     b.Settings.Build.GoFlags,
		Flags:       c.BuildFlags(),
		Levels:      toolchain.Levels(),
		Output:      packageList(n.name, n.on),
	}
	for _, bin := range n.binaries {
		if bin.IsTest() {
			s.Tests = append(s.Tests, bin.Test)
		} else {
			s.Mains = append(s.Mains, bin.Package)
		}
		s.Heads = append(s.Heads, module.Heads(cmp.Or(bin.Package, bin.Test)))
	}
	return s
}

// packageList returns where the list of packages of a group of binaries is.
func packageList(group string, on catalog.Platform) string {
	return slashed(stage, "packages", group, on.Dash()+".json")
}

// PackageLists returns a pattern, for filepath.Glob, of the lists of packages that binaries for a platform are compiled of, relative to the
// root. They are there once a release is.
func PackageLists(on catalog.Platform) string { return packageList("*", on) }

// release adds the actions that describe the release, and returns the content of release.json without digests.
func (b *builder) release(c *content) (*release.Release, error) {
	draft, err := b.describe(b.ctx, c)
	if err != nil {
		return nil, err
	}
	sboms, final := b.final(c, draft)
	var summed []describe.File
	for _, f := range draft.Files {
		if path.Dir(f.Path) == Tars {
			summed = append(summed, f)
		}
	}
	for i, f := range final.Files {
		if final.Artifacts[i].Kind == release.SBOM {
			summed = append(summed, f)
		}
	}
	for _, programs := range b.programs(c) {
		b.add(describe.Binaries(b.Root, programs))
	}
	b.add(describe.Draft(b.Root, draft))
	b.add(describe.SBOMs(b.Root, sboms))
	b.add(describe.Checksums(b.Root, Tars, summed, b.Unchanged))
	b.add(describe.Action(b.Root, final))
	described := draft.Release
	described.Artifacts = append(described.Artifacts, final.Artifacts...)
	b.add(describe.Provenance(b.Root, Tars, provenance.Files(&described)))
	return &described, nil
}

func (b *builder) add(a *action.Action) { b.graph.Actions = append(b.graph.Actions, a) }

// leaveOut removes the actions that make a content, which exists already.
func (b *builder) leaveOut(c *content) error {
	other := b.builder(b.ctx)
	if err := other.actions(c); err != nil {
		return err
	}
	b.graph.Actions = without(b.graph.Actions, other.graph.Actions)
	return nil
}

// without returns actions without those of another graph. The copy of the sources, which both have, stays.
func without(actions, others []*action.Action) []*action.Action {
	drop := map[string]bool{}
	for _, a := range others {
		drop[a.ID] = a.ID != sourcesAction
	}
	return slices.DeleteFunc(slices.Clone(actions), func(a *action.Action) bool { return drop[a.ID] })
}

// imageTag returns the tag of an image: its own, or the release's.
func (p *Project) imageTag(im catalog.Image) string { return cmp.Or(im.Version, p.Stamp.ImageTag()) }

// A registryTag says where to find an image: REGISTRY/NAME:TAG.
type registryTag struct{ registry, tag string }

// registryTags returns where an image is found: by the release's own registry and tag, then by those that the user adds.
func (p *Project) registryTags(im catalog.Image) []registryTag {
	own := registryTag{p.Catalog.Registry, p.imageTag(im)}
	users := registryTag{cmp.Or(p.Settings.DockerRegistry, own.registry), cmp.Or(p.Settings.DockerImageTag, own.tag)}
	if im.Addon() { // another project's image keeps its version as its tag
		users.tag = own.tag
	}
	return slices.Compact([]registryTag{own, users})
}

// imageTags returns the names of an image for one platform, in its docker archive.
func (p *Project) imageTags(im catalog.Image, arch string) []string {
	var tags []string
	for _, at := range p.registryTags(im) {
		tags = append(tags, image.Tags(at.registry, im.Name, arch, at.tag)...)
	}
	return tags
}

// indexTags returns the names of an image's index over all its platforms.
func (p *Project) indexTags(im catalog.Image) []string {
	var tags []string
	for _, at := range p.registryTags(im) {
		tags = append(tags, at.registry+"/"+im.Name+":"+at.tag)
	}
	return tags
}

// A goModule is a Go module of the tree, with the files that every compile in it depends on.
type goModule struct {
	*module.Module
	inputs  []string
	modFile string // instead of its go.mod, relative to the root; empty without patches
}

// module reads a module of the tree, once.
func (b *builder) module(name string) (*goModule, error) {
	if m := b.modules[name]; m != nil {
		return m, nil
	}
	m, err := loadModule(b.Root, name)
	if err != nil {
		return nil, err
	}
	if err := b.checkFolders(m.Module); err != nil {
		return nil, err
	}
	b.modules[name] = m
	b.patch(m)
	return m, nil
}

func loadModule(root, name string) (*goModule, error) {
	m, err := module.Load(root, name)
	if err != nil {
		return nil, err
	}
	inputs, err := m.Inputs()
	return &goModule{Module: m, inputs: inputs}, err
}

// ldflags returns the linker flags that stamp a module's binaries with the versions of the modules that they come from. One
// command links all of them, so the flags are the same for all.
func (p *Project) ldflags(m *goModule) string {
	var flags []string
	for _, bin := range p.Catalog.Binaries {
		if bin.Module == m.Name && bin.Stamp != "" {
			flags = append(flags, "-X="+bin.Stamp+"="+m.Version(bin.ImportPath()))
		}
	}
	slices.Sort(flags)
	return strings.Join(slices.Compact(flags), " ")
}

// compileID names the compile of a road for a platform. Each road has records of its own, so changing between two of them is cheap.
func compileID(on catalog.Platform, road road.Road) string {
	return strings.TrimSpace("compile " + on.String() + " " + road.Info().Label)
}

// compile adds the compile of a binary.
func (b *builder) compile(bin program) error {
	module, err := b.module(bin.Module)
	if err != nil {
		return err
	}
	by := b.roadOf(bin.Module)
	s := compile.Spec{
		ID:        compileID(bin.on, by) + " " + bin.Name,
		Batch:     compileID(bin.on, by),
		Output:    b.binary(bin.on, bin.Binary),
		Inputs:    b.sourcesOf(bin.Binary, module),
		Spec:      b.compileSpec(bin.on, module),
		Binary:    roadBinary(bin.Binary),
		Elsewhere: by != b.road,
	}
	if module.Name != b.Catalog.Module {
		s.Batch += " of " + module.Name
	}
	if s.Elsewhere {
		s.Batch += " by the " + by.Info().Name + " road"
	}
	a, err := b.compiler.Action(by, s)
	if err == nil {
		b.add(a)
	}
	return err
}

// compileSpec describes the compile of a module for a platform. Components are stamped with the version of the release, other
// projects' binaries with the version of their module, so that they stay the same from commit to commit.
func (p *Project) compileSpec(platform catalog.Platform, module *goModule) road.Spec {
	s := road.Spec{
		Module:   module.Name,
		ModFile:  module.modFile,
		Platform: platform,
		Tags:     p.Catalog.Tags,
		LDFlags:  p.Stamp.LDFlags(),
		Options:  p.Settings.Build,
	}
	if module.Name != p.Catalog.Module {
		s.LDFlags = p.ldflags(module)
	}
	return s
}

// roadBinary names the package of a binary.
func roadBinary(bin catalog.Binary) road.Binary {
	if bin.IsTest() {
		return road.Binary{Package: bin.Test, Test: true}
	}
	return road.Binary{Package: bin.Package}
}

// sourcesOf lists the inputs of a binary's compile: the module's go.mod and go.sum (which stand for all modules of the
// module cache), the folders of the module that its package needs, and modules replaced by a folder.
func (b *builder) sourcesOf(bin catalog.Binary, module *goModule) []string {
	inputs := slices.Clone(module.inputs)
	for _, dir := range module.Closure(cmp.Or(bin.Package, bin.Test)) {
		inputs = append(inputs, slashed(module.Name, dir)+"/")
	}
	return inputs
}

// kubernetes is the module that has the manifests of e2e tests.
const kubernetes = "k8s.io/kubernetes"

// testManifests returns what the test set needs besides binaries: the manifests that upstream's e2e tests read, from the module that
// the tests are compiled from.
func (b *builder) testManifests() (inputs []string, list pack.List, err error) {
	module, err := b.module(b.Catalog.Module)
	if err != nil {
		return nil, nil, err
	}
	goflags := b.Settings.Build.GoFlags
	if module.modFile != "" {
		goflags = strings.TrimSpace(road.Spec{Module: module.Name, ModFile: module.modFile}.ModFlag() + " " + goflags)
	}
	return module.inputs, pack.Module(b.Go, module.Dir, kubernetes, goflags, "kubernetes",
		"test/e2e/testing-manifests", "test/kubemark", "LICENSE"), nil
}
