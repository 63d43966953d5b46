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

	"slipway.build/pkg/build/relink"
	"slipway.build/pkg/build/road"
	"slipway.build/pkg/mechanism/action"
)

// A linked has what is known of a batch's targets that were linked before.
type linked struct {
	links    relink.Links
	task     *action.Task
	built    func(file string)
	programs map[string]relink.Program // by the output of their targets
}

// linked returns the targets that can be copied from what was linked with another version. It sets their Record.
func (c *Compiler) linked(t *action.Task, by road.Road, made road.Compilation, stale []*action.Action) *linked {
	l := &linked{links: c.Links, task: t, built: made.Built, programs: map[string]relink.Program{}}
	if c.Links.Folder == "" || by.Info().Compiler != road.ByGo || made.Options.Debug || made.Options.LDFlags != "" {
		return l
	}
	masked := made.Spec
	var values map[string]string
	if masked.LDFlags, values = relink.Mask(made.LDFlags); len(values) == 0 {
		return l
	}
	for i := range made.Targets {
		if target := &made.Targets[i]; !target.Test {
			l.programs[target.Output] = relink.Program{
				Name:   path.Join(made.Platform.OS, made.Platform.Arch, made.File(target.Binary)),
				Key:    t.KeyWith(stale[i].Outputs[0], by.Recipe(masked, target.Binary)),
				Values: values,
				File:   target.Output,
			}
			target.Record = filepath.Join(t.Dir(), made.File(target.Binary)+".link.json")
		}
	}
	return l
}

// copy makes those of the targets that were linked before, here or where the cache has it from, and returns the others.
func (l *linked) copy(ctx context.Context, targets []road.Target, r road.Report) []road.Target {
	start := time.Now()
	share := relink.Share{Cache: l.task.Cache(), Scratch: l.task.Dir()}
	copied := make([]bool, len(targets))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, target := range targets {
		p, ok := l.programs[target.Output]
		if !ok {
			continue
		}
		g.Go(func() error {
			var foreign bool
			copied[i], foreign = l.links.Copy(p, share.Cache == nil)
			if !copied[i] && share.Cache != nil && ctx.Err() == nil {
				var err error
				if copied[i], err = share.Copy(ctx, l.links, p); err != nil && ctx.Err() == nil {
					r.Output(fmt.Sprintf("%s is linked here: %v", p.Name, err))
				}
				foreign = copied[i]
			}
			if foreign {
				l.task.Foreign()
			}
			if copied[i] && l.built != nil {
				l.built(p.File)
			}
			return nil
		})
	}
	_ = g.Wait()
	var rest []road.Target
	for i, target := range targets {
		if !copied[i] {
			_ = os.Remove(target.Output) // what a failed copy has left
			rest = append(rest, target)
		}
	}
	if n := len(targets) - len(rest); n > 0 {
		r.Step(fmt.Sprintf("%d of %d binaries differ only in the version from what was linked before", n, len(targets)), time.Since(start))
	}
	return rest
}

// keep keeps what the road has linked. Errors cost time in the next version, and are shown.
func (l *linked) keep(ctx context.Context, targets []road.Target, r road.Report) {
	cache := l.task.Cache()
	for _, target := range targets {
		if _, err := os.Stat(target.Record); err != nil {
			continue // the road has linked as usual
		}
		p := l.programs[target.Output]
		if err := l.links.Keep(p, target.Record, l.task.IsForeign()); err != nil {
			r.Output(fmt.Sprintf("%s will be linked again in the next version: %v", p.Name, err))
			continue
		}
		if cache != nil && cache.Stores() {
			l.task.Later(ctx, func(ctx context.Context, dir string) error {
				return relink.Share{Cache: cache, Scratch: dir}.Store(ctx, l.links, p)
			})
		}
	}
}
