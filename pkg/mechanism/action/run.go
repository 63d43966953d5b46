package action

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Options configure a run.
type Options struct {
	Budget Budget      // CPU 0 means as many as the machine has
	Events func(Event) // called from one goroutine at a time, in order; nil if nobody listens
	Locked bool        // the caller holds the tree's lock, because it calls Run within Locked

	// Cache, if not nil, has and gets results. After the run, an output from it may not be here, unless an action has read it, or it is,
	// holds or lies in one of Wanted. If Wanted is nil, all outputs are here.
	Cache  Cache
	Wanted []string

	// Audit lists actions, by ID, that run even if a cache has, or had, their results, so that both can be compared.
	Audit []string

	// FetchOnly runs no action: those without a result from a cache, and those that need their outputs, stay as they are. That is no error.
	FetchOnly bool

	// NoCachedResults runs all actions whose results are not [Origin.Own], and does not use the Cache.
	NoCachedResults bool

	// Program is the origin of the program that runs. If it is from a cache, all that it makes is Derived.
	Program Origin

	patience time.Duration // if not 0, instead of the constant
}

// Run makes every output of the graph by running the actions that are stale. It waits until no other run works in the same
// tree. After a failure or the end of ctx it starts no other action, waits for those that run, and returns all errors.
// Finished work is kept, and another call carries on from there.
func (g *Graph) Run(ctx context.Context, opts Options) error {
	start := time.Now()
	e := &emitter{to: opts.Events}
	defer e.close()
	err := g.run(ctx, opts, e)
	end := Event{Kind: Finished, Duration: time.Since(start)}
	if err != nil {
		end.Text = err.Error()
	}
	e.emit(end)
	return err
}

func (g *Graph) run(ctx context.Context, opts Options, e *emitter) error {
	units, err := g.arrange()
	if err != nil {
		return err
	}
	work := func() error {
		j, err := g.judge(units, opts)
		if err != nil {
			return err
		}
		r := &run{judge: j, emitter: e, state: g.state(),
			uploads: &uploader{judge: j, emit: e.emit, slots: make(chan struct{}, maxUploads)}}
		// Remove what killed runs left behind. A tool that outlived its run may still be writing, so this run's folder has a
		// name of its own.
		tmp := filepath.Join(r.state, "tmp")
		r.tmp = filepath.Join(tmp, strconv.Itoa(os.Getpid())+"-"+strconv.FormatInt(time.Now().UnixNano(), 36))
		r.remove(tmp)
		defer r.remove(tmp)
		e.emit(Event{Kind: Planned, Total: int64(len(g.Actions))})
		if j.patience = cmp.Or(opts.patience, patience); opts.FetchOnly {
			j.patience = 0
		}
		j.cache, j.report, j.staging = opts.Cache, e.emit, filepath.Join(r.tmp, "fetched")
		err = r.passes(ctx, g, units)
		r.uploads.finish()
		if saveErr := r.saveStats(); err == nil {
			err = advise(saveErr)
		}
		return err
	}
	if opts.Locked {
		return work()
	}
	return locked(ctx, g.state(), e, work)
}

// passes works on the graph until all is made. It begins anew when results of a cache are lost: their actions have to run.
func (r *run) passes(ctx context.Context, g *Graph, units []*unit) error {
	for {
		s := newScheduler(r, len(units))
		err := s.work(ctx, units)
		if err == nil {
			err = r.deliver(ctx, r.opts.Wanted)
		}
		if lost, ok := errors.AsType[*lostError](err); ok {
			maps.Copy(s.gone, lost.ids)
		}
		if err == nil || len(s.gone) == 0 || s.failed || ctx.Err() != nil {
			return err
		}
		if units, err = g.arrange(); err != nil {
			return err
		}
		r.forget(s.gone)
	}
}
