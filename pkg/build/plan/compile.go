package plan

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"slipway.build/pkg/build/road"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// compileMemory is what a compile is taken to need until it was measured here: bytes. The linux/amd64 components peak at
// 3.7 GiB on two cores (docs/measurements.md), during the parallel links at the end.
const compileMemory = 4 << 30

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

// compile adds the compile of a binary: an action, and so a key and a record, for each binary, and for each module and platform one
// batch that compiles the stale ones in one go.
func (b *builder) compile(bin program) error {
	module, err := b.module(bin.Module)
	if err != nil {
		return err
	}
	by := b.roadOf(bin.Module)
	if err := road.CheckBinary(by, roadBinary(bin.Binary)); err != nil {
		return err
	}
	id := compileID(bin.on, by) + " " + bin.Name
	b.targets[id] = bin.Binary
	b.add(&action.Action{
		ID:      id,
		Phase:   "compile",
		Recipe:  by.Recipe(b.compileSpec(bin.on, module), roadBinary(bin.Binary)),
		Inputs:  b.sourcesOf(bin.Binary, module),
		Outputs: []string{b.binary(bin.on, bin.Binary)},
		Batch:   b.batch(bin.on, module),
	})
	return nil
}

// compileAction names the compile of a binary by whatever road, and imageAction the making of an image.
func compileAction(on catalog.Platform, bin catalog.Binary) string {
	return "compile " + on.String() + " " + bin.Name
}
func imageAction(on catalog.Platform, im catalog.Image) string {
	return "image " + on.String() + " " + im.File()
}

// batch is the one compile of a module's binaries for a platform.
func (b *builder) batch(platform catalog.Platform, module *goModule) *action.Batch {
	id := compileID(platform, b.roadOf(module.Name))
	if module.Name != b.Catalog.Module {
		id += " of " + module.Name
		if theirs := b.roadOf(module.Name); theirs != b.road {
			id += " by the " + theirs.Info().Name + " road"
		}
	}
	if b.batches[id] == nil {
		b.batches[id] = &action.Batch{ID: id, Cost: b.compileCost(id)}
		b.batches[id].Run = func(ctx context.Context, t *action.Task, stale []*action.Action) error {
			return b.runCompile(ctx, t, platform, module, stale)
		}
		if r, ok := b.roadOf(module.Name).(road.Explainer); ok {
			b.batches[id].Commands = func(stale []*action.Action) []string {
				return r.Commands(b.request(platform, module, stale, b.abs))
			}
		}
		b.batches[id].Ready = b.ready(b.roadOf(module.Name))
	}
	return b.batches[id]
}

// compileCost leaves one processor for what can go on beside a compile (packing, the next platform's start),
// as the Go tool's own links leave processors idle.
func (b *builder) compileCost(batch string) action.Cost {
	cost := action.Cost{CPU: max(1, runtime.NumCPU()-1), Memory: compileMemory}
	if peak, ok := b.graph.Measured(batch); ok {
		cost.Memory = peak
	}
	return cost
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

// request is the compilation of a batch's stale binaries, which go where path says.
func (b *builder) request(platform catalog.Platform, module *goModule, stale []*action.Action, path func(output string) string) road.Compilation {
	c := road.Compilation{Spec: b.compileSpec(platform, module)}
	for _, a := range stale {
		c.Targets = append(c.Targets, road.Target{Binary: roadBinary(b.targets[a.ID]), Output: path(a.Outputs[0])})
	}
	return c
}

func (b *builder) runCompile(ctx context.Context, t *action.Task, platform catalog.Platform, module *goModule, stale []*action.Action) error {
	c := b.request(platform, module, stale, t.Path)
	c.Scratch = t.Dir()
	for i, a := range stale {
		c.Targets[i].Previous = t.Previous(a.Outputs[0])
	}
	if b.packs {
		built, stop := b.ahead(ctx)
		defer stop()
		c.Built = built
	}
	road := b.roadOf(module.Name)
	if road == b.road {
		return road.Compile(ctx, c, t)
	}
	return road.Compile(ctx, c, elsewhere{t, road.Info().Name})
}

// An elsewhere reports a compile by another road than the one of the request, with its name.
type elsewhere struct {
	road.Report
	road string
}

func (e elsewhere) By(process string) { e.Report.By("the " + e.road + " road: " + process) }

// ahead compresses binaries for the tarballs, one after the other, while others are linked: links leave processors idle, and
// packing would have all of them to compress at once. It is only to save time: what goes wrong here, packing meets again and
// reports, and what is not done when the compile is, packing does.
func (b *builder) ahead(ctx context.Context) (built func(file string), stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	packer := archive.Packer{Cache: b.ArchiveCache(), Workers: 1}
	files := make(chan string, 1000) // more than a module has binaries
	var done sync.WaitGroup
	done.Go(func() {
		for file := range files {
			_ = packer.Prepare(ctx, file)
		}
	})
	return func(file string) { files <- file }, func() {
		cancel()
		close(files)
		done.Wait()
	}
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
