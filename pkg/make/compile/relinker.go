package compile

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/make/relink"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/mechanism/action"
)

// A relinker copies the targets of a batch that were linked before with another version, and keeps what is linked.
type relinker struct {
	links    relink.Links
	task     *action.Task
	ahead    *packedAhead
	programs map[string]program // by the output of their targets
}

type program struct {
	relink.Program
	output string // as the action declares it
}

// relinker returns the relinker of a compilation, and sets the Record of its targets.
func (c *Compiler) relinker(t *action.Task, by road.Road, made road.Compilation, stale []*action.Action, p *packedAhead) *relinker {
	l := &relinker{links: c.Links, task: t, ahead: p, programs: map[string]program{}}
	if c.Links.Folder == "" || made.Options.Debug || made.Options.LDFlags != "" {
		return l
	}
	masked := made.Spec
	var values map[string]string
	if masked.LDFlags, values = relink.Mask(made.LDFlags); len(values) == 0 {
		return l
	}
	for i := range made.Targets {
		target, output := &made.Targets[i], stale[i].Outputs[0]
		if target.Test {
			continue
		}
		l.programs[target.Output] = program{relink.Program{
			// The road's name keeps a road from copying what another one has linked here.
			Name:   path.Join(by.Info().Name, made.Platform.OS, made.Platform.Arch, made.File(target.Binary)),
			Key:    t.CacheKeyFor(output, recipeOf(by, masked, target.Binary)),
			Values: values,
		}, output}
		target.Record = filepath.Join(t.Dir(), made.File(target.Binary)+".link.json")
	}
	return l
}

// copy copies the targets that were linked before, here or for the cache, and returns the others.
func (l *relinker) copy(ctx context.Context, targets []road.Target, r action.Report) []road.Target {
	if l.task.Audit {
		return targets
	}
	start, before := time.Now(), l.task.Origin()
	copied := make([]bool, len(targets))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, target := range targets {
		p, ok := l.programs[target.Output]
		if !ok {
			continue
		}
		g.Go(func() error {
			record, origin := l.make(ctx, p, target.Output, r)
			if record == nil {
				_ = os.Remove(target.Output) // of a copy that failed
				return nil
			}
			copied[i] = true
			origin = action.Reused.With(origin)
			l.task.Use(origin)
			l.ahead.pack(ctx, target.Output)
			l.keep(ctx, p, *record, before.With(origin), r)
			return nil
		})
	}
	_ = g.Wait()
	var rest []road.Target
	for i, target := range targets {
		if !copied[i] {
			rest = append(rest, target)
		}
	}
	if n := len(targets) - len(rest); n > 0 {
		r.Step(fmt.Sprintf("%d of %d binaries differ only in the version from what was linked before", n, len(targets)), time.Since(start))
	}
	return rest
}

// make copies a binary that was linked before, and returns the origin of that one. The record is nil if there is none.
func (l *relinker) make(ctx context.Context, p program, file string, r action.Report) (record *relink.Record, origin action.Origin) {
	if ctx.Err() != nil {
		return nil, ""
	}
	cache := l.task.Cache()
	if record, origin = l.links.Copy(p.Program, file, cache == nil); record != nil || cache == nil {
		return record, origin
	}
	record, err := relink.Share{Cache: cache, Scratch: l.task.Dir()}.Copy(ctx, p.Program, file)
	if err != nil && ctx.Err() == nil {
		r.Output(fmt.Sprintf("%s is linked here: %v", p.Name, err))
	}
	if err != nil {
		return nil, ""
	}
	return record, action.Cached
}

// keepLinked keeps the binaries that the road has linked.
func (l *relinker) keepLinked(ctx context.Context, targets []road.Target, r action.Report) {
	for _, target := range targets {
		if target.Record == "" {
			continue
		}
		if record, err := relink.ReadRecord(target.Record); err == nil { // otherwise, it was linked as usual
			l.keep(ctx, l.programs[target.Output], record, l.task.Origin(), r)
		}
	}
}

// keep keeps a binary for other versions when it has its final name, here and in the cache. An error costs only time, and is shown.
func (l *relinker) keep(ctx context.Context, p program, record relink.Record, origin action.Origin, r action.Report) {
	l.task.WhenDone(p.output, func(file string) {
		if err := l.links.Keep(p.Program, file, record, origin); err != nil {
			r.Output(fmt.Sprintf("%s was not kept, so its next version is linked again: %v", p.Name, err))
		}
		if cache := l.task.Cache(); cache != nil && cache.Stores() {
			l.task.UploadAsync(ctx, func(ctx context.Context, dir string) error {
				return relink.Share{Cache: cache, Scratch: dir}.Store(ctx, p.Program, file, record)
			})
		}
	})
}
