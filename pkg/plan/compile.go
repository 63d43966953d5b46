package plan

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"slices"
	"sync"

	"slipway.build/pkg/action"
	"slipway.build/pkg/archive"
	"slipway.build/pkg/catalog"
	"slipway.build/pkg/road"
)

// compileMemory is what a compile is taken to need until it was measured here: bytes. The linux/amd64 components peak at
// 3.7 GiB on two cores (docs/measurements.md), during the parallel links at the end.
const compileMemory = 4 << 30

// binDir is where a platform's binaries are.
func (p *Project) binDir(on catalog.Platform) string {
	return slashed(Binaries(p.road.Name()), on.String())
}

// binary is the path of a component's binary.
func (p *Project) binary(on catalog.Platform, name string) string {
	return slashed(p.binDir(on), on.Exe(name))
}

// compileID names the compile for a platform. Each road has records of its own: changing between two of them is cheap.
func (p *Project) compileID(on catalog.Platform) string {
	if name := p.road.Name(); name != "local" {
		return "compile " + on.String() + " by " + name
	}
	return "compile " + on.String()
}

// compile plans the compile of binaries for one platform: an action, and so a key and a record, for each binary,
// and one batch that compiles the stale ones in one go.
func (b *builder) compile(platform catalog.Platform, binaries []catalog.Binary) {
	if b.batches[platform] == nil {
		id := b.compileID(platform)
		b.batches[platform] = &action.Batch{ID: id, Cost: b.compileCost(id)}
		b.batches[platform].Run = func(ctx context.Context, t *action.Task, stale []*action.Action) error {
			return b.runCompile(ctx, t, platform, stale)
		}
	}
	for _, bin := range binaries {
		id := b.compileID(platform) + " " + bin.Name
		if b.targets[id].Name != "" {
			continue
		}
		b.targets[id] = bin
		b.add(&action.Action{
			ID:      id,
			Phase:   "compile",
			Recipe:  append(b.road.Recipe(b.compilation(platform)), "main "+bin.ImportPath(), "test "+bin.Test),
			Inputs:  b.sourcesOf(bin),
			Outputs: []string{b.binary(platform, bin.Name)},
			Batch:   b.batches[platform],
		})
	}
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

func (p *Project) compilation(platform catalog.Platform) road.Compilation {
	return road.Compilation{
		Root:     p.Root,
		Module:   p.Catalog.Module,
		Platform: platform,
		Tags:     p.Catalog.Tags,
		LDFlags:  p.Stamp.LDFlags(),
		Options:  p.Settings.Build,
	}
}

func (b *builder) runCompile(ctx context.Context, t *action.Task, platform catalog.Platform, stale []*action.Action) error {
	c := b.compilation(platform)
	c.Scratch = t.Dir()
	for _, a := range stale {
		bin := b.targets[a.ID]
		target := road.Target{Package: bin.Package, Output: t.Path(a.Outputs[0]), Previous: t.Previous(a.Outputs[0])}
		if bin.IsTest() {
			target.Package, target.Test = bin.Test, true
		}
		c.Targets = append(c.Targets, target)
	}
	if b.packs {
		built, stop := b.ahead(ctx)
		defer stop()
		c.Built = built
	}
	return b.road.Compile(ctx, c, t)
}

// ahead compresses binaries for the tarballs, one after the other, while others are linked: links leave processors idle, and
// packing would have all of them to compress at once. It is only to save time: what goes wrong here, packing meets again and
// reports, and what is not done when the compile is, packing does.
func (b *builder) ahead(ctx context.Context) (built func(file string), stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	packer := archive.Packer{Cache: b.abs(archives), Workers: 1}
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
func (b *builder) sourcesOf(bin catalog.Binary) []string {
	inputs := slices.Clone(b.module.inputs)
	for _, file := range b.config {
		if _, err := os.Stat(b.abs(file)); err == nil {
			inputs = append(inputs, file)
		}
	}
	for _, dir := range b.module.closure(cmp.Or(bin.Package, bin.Test)) {
		inputs = append(inputs, slashed(b.Catalog.Module, dir)+"/")
	}
	return inputs
}
