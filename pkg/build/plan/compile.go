package plan

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"slipway.build/pkg/build/compile"
	"slipway.build/pkg/build/road"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// A goModule is a Go module of the tree, with what every compile in it depends on.
type goModule struct {
	*module.Module
	inputs []string
}

// module reads a module of the tree, once.
func (b *builder) module(name string) (*goModule, error) {
	if m := b.modules[name]; m != nil {
		return m, nil
	}
	m, err := loadModule(b.Root, name)
	if err == nil {
		b.modules[name] = m
	}
	return m, err
}

func loadModule(root, name string) (*goModule, error) {
	m, err := module.Load(root, name)
	if err != nil {
		return nil, err
	}
	inputs, err := m.Inputs()
	return &goModule{m, inputs}, err
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

// roadOf is the road that compiles a module's binaries: the one that was asked for, or, for other projects' modules, always
// the local one.
func (p *Project) roadOf(module string) road.Road {
	if module == p.Catalog.Module {
		return p.road
	}
	return p.local
}

// binary is the path of a binary.
func (p *Project) binary(on catalog.Platform, bin catalog.Binary) string {
	return slashed(p.roadOf(bin.Module).Info().Output, on.String(), on.Exe(bin.Name))
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

// compileAction names the compile of a binary by whatever road, and imageAction the making of an image.
func compileAction(on catalog.Platform, bin catalog.Binary) string {
	return "compile " + on.String() + " " + bin.Name
}
func imageAction(on catalog.Platform, im catalog.Image) string {
	return "image " + on.String() + " " + im.File()
}

// compileSpec describes the compile of a module for a platform. Components are stamped with the version of the release, other
// projects' binaries with that of their module, so that they stay as they are from commit to commit.
func (p *Project) compileSpec(platform catalog.Platform, module *goModule) road.Spec {
	s := road.Spec{
		Module:   module.Name,
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
// module cache), the folders of the module that its package needs, modules replaced by a folder, and the road's own files.
func (b *builder) sourcesOf(bin catalog.Binary, module *goModule) []string {
	inputs := slices.Clone(module.inputs)
	if module.Name == b.Catalog.Module {
		for _, file := range b.road.Info().Config {
			if _, err := os.Stat(b.abs(file)); err == nil {
				inputs = append(inputs, file)
			}
		}
	}
	for _, dir := range module.Closure(cmp.Or(bin.Package, bin.Test)) {
		inputs = append(inputs, slashed(module.Name, dir)+"/")
	}
	return inputs
}
