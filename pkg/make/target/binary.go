package target

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/make/compile"
	"slipway.build/pkg/make/describe"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/catalog"
)

// A Binary is a binary for a platform.
type Binary struct {
	catalog.Binary
	On   catalog.Platform
	Path string // relative to the tree's root
}

// BinaryOf returns a binary for a platform.
func (b *Build) BinaryOf(on catalog.Platform, bin catalog.Binary) *Binary {
	return &Binary{bin, on, path.Join(b.roadOf(bin.Module).Info().Output, on.String(), on.Exe(bin.Name))}
}

func (t *Binary) ID() string               { return "binary " + t.Module + " " + t.Artifact() }
func (t *Binary) Needs() []Target          { return []Target{&PatchedModules{t.Module}} }
func (t *Binary) File() (_, _ string)      { return t.Path, t.Artifact() }
func (t *Binary) action() string           { return "compile " + t.On.String() + " " + t.Name }
func (t *Binary) thirdParty(b *Build) bool { return !b.Catalog.IsComponent(t.Binary) }

// Artifact returns its name in release.json.
func (t *Binary) Artifact() string { return path.Join(t.On.String(), t.On.Exe(t.Name)) }

// Member returns the binary as a member of a tarball's folder.
func (t *Binary) Member(folder string) Member {
	return Member{Of: t, Artifact: t.Artifact(), From: t.Path, To: path.Join(folder, t.On.Exe(t.Name))}
}

// Actions compiles the binary. Each road has records of its own, so changing between two of them is cheap.
func (t *Binary) Actions(b *Build) ([]*action.Action, error) {
	module, err := b.module(t.Module)
	if err != nil {
		return nil, err
	}
	by := b.roadOf(t.Module)
	batch := strings.TrimSpace("compile " + t.On.String() + " " + by.Info().Label)
	s := compile.Spec{
		ID:        batch + " " + t.Name,
		Batch:     batch,
		Output:    t.Path,
		Inputs:    slices.Clone(module.inputs), // go.mod and go.sum stand for all modules of the module cache
		Spec:      b.compileSpec(t.On, module),
		Binary:    road.Binary{Package: cmp.Or(t.Test, t.Package), Test: t.IsTest()},
		Elsewhere: by != b.Road,
		Overrides: b.Catalog.OverridesIn(t.Module),
	}
	for _, dir := range module.Closure(cmp.Or(t.Package, t.Test)) {
		s.Inputs = append(s.Inputs, path.Join(module.Name, dir)+"/")
	}
	if module.Name != b.Catalog.Module {
		s.Batch += " of " + module.Name
	}
	if s.Elsewhere {
		s.Batch += " by the " + by.Info().Name + " road"
	}
	a, err := b.compiler.Action(by, s)
	if err != nil {
		return nil, err
	}
	return one(a)
}

// roadOf returns the road that compiles a module's binaries: the requested one, or, for other projects' modules, always the local
// one.
func (b *Build) roadOf(module string) road.Road {
	if module == b.Catalog.Module {
		return b.Road
	}
	return b.Roads.Local()
}

// CacheFolders returns the name, in caches, of the folders for binaries of roads, which make the same bytes.
func CacheFolders(p *project.Project) map[string]string {
	return map[string]string{p.Road.Info().Output + "/": "binaries/", p.Roads.Local().Info().Output + "/": "binaries/"}
}

// compileSpec describes the compile of a module for a platform. Components are stamped with the version of the release, other
// projects' binaries with the version of their module, so that they stay the same from commit to commit.
func (b *Build) compileSpec(on catalog.Platform, module *goModule) road.Spec {
	s := road.Spec{
		Module:   module.Name,
		ModFile:  module.modFile,
		Platform: on,
		Tags:     b.Catalog.Tags,
		LDFlags:  b.Stamp.LDFlags(),
		Options:  b.Settings.Build,
	}
	if !b.HasFIPS(module.Name) {
		s.Options.FIPS = ""
	}
	if module.Name != b.Catalog.Module {
		s.LDFlags = b.ldflags(module)
	}
	return s
}

// ldflags returns the linker flags that stamp a module's binaries with the versions of the modules that they come from. One
// command links all of them, so the flags are the same for all.
func (b *Build) ldflags(m *goModule) string {
	var flags []string
	for _, bin := range b.Catalog.Binaries {
		if bin.Module == m.Name && bin.Stamp != "" {
			flags = append(flags, "-X="+bin.Stamp+"="+m.Version(bin.ImportPath()))
		}
	}
	slices.Sort(flags)
	return strings.Join(slices.Compact(flags), " ")
}

// BinaryInfo is a step to release.json: a file with what is read from some binaries for a platform.
type BinaryInfo struct {
	Name string
	On   catalog.Platform
	Of   []*Binary
}

func (t *BinaryInfo) ID() string      { return "binaries " + t.On.String() + " " + t.Name }
func (t *BinaryInfo) Needs() []Target { return targets(t.Of) }

func (t *BinaryInfo) path() string {
	return path.Join(project.Stage, "binaries", t.Name, t.On.Dash()+".json")
}

// Actions reads the binaries, and writes the file.
func (t *BinaryInfo) Actions(b *Build) ([]*action.Action, error) {
	s := describe.BinariesSpec{Name: t.ID(), Output: t.path()}
	for _, bin := range t.Of {
		s.Files = append(s.Files, describe.File{Artifact: bin.Artifact(), Path: bin.Path})
	}
	return one(describe.Binaries(b.Root, s))
}

// Describe adds the binaries.
func (t *BinaryInfo) Describe(b *Build, d *describe.Spec) {
	flags := road.Spec{Platform: t.On, Tags: b.Catalog.Tags, Options: b.Settings.Build}.BuildFlags() // they name no file of this machine
	for _, bin := range t.Of {
		d.Add(release.Artifact{
			Name: bin.Artifact(), Kind: release.Binary, Platform: t.On, MediaType: programType, Action: bin.action(), Flags: flags,
		})
	}
	d.Binaries = append(d.Binaries, t.path())
}
