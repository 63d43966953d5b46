package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/statcache"
)

// Options configure a run.
type Options struct {
	Budget Budget      // CPU 0 means as many as the machine has
	Events func(Event) // called from one goroutine at a time, in order; nil if nobody listens
	Locked bool        // the caller holds the tree's lock, because it calls Run within Locked

	// Cache, if not nil, has and gets results. Then only those outputs are here after the run that were here before, that an action
	// has read, or that are, hold or lie in one of Wanted. If Wanted is nil, all are.
	Cache  Cache
	Wanted []string

	// Audit lists actions, by ID, that run even if a cache has, or had, their results, so that both can be compared.
	Audit []string

	// FetchOnly runs no action: those without a result from a cache, and those that need their outputs, stay as they are. That is no error.
	FetchOnly bool

	// NoCachedResults makes only results count that are [Origin.Own]: what earlier runs took from a cache is made again. Cache is not used.
	NoCachedResults bool

	// Program is the origin of the program that runs. If it is from a cache, all that it makes is Derived.
	Program Origin

	patience time.Duration // if not 0, instead of the constant
}

// A run is one call of Graph.Run.
type run struct {
	*judge
	*emitter
	state   string // absolute
	tmp     string // absolute; this run's own
	program Origin // of what calls Run

	uploads *uploader
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
		j, err := g.judge()
		if err != nil {
			return err
		}
		if err := j.present(units); err != nil {
			return err
		}
		r := &run{judge: j, emitter: e, state: g.state(), program: opts.Program, uploads: &uploader{slots: make(chan struct{}, stores)}}
		// Remove what killed runs left behind. A tool that outlived its run may still be writing, so this run's folder has a
		// name of its own.
		tmp := filepath.Join(r.state, "tmp")
		r.tmp = filepath.Join(tmp, strconv.Itoa(os.Getpid())+"-"+strconv.FormatInt(time.Now().UnixNano(), 36))
		r.remove(tmp)
		defer r.remove(tmp)
		e.emit(Event{Kind: Planned, Total: int64(len(g.Actions))})
		j.own, j.audit = opts.NoCachedResults, opts.Audit
		if j.patience = cmp.Or(opts.patience, patience); opts.FetchOnly {
			j.patience = 0
		}
		j.cache, j.tell, j.fetched = opts.Cache, e.emit, filepath.Join(r.tmp, "fetched")
		err = r.passes(ctx, g, units, opts)
		r.finishUploads()
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

// passes works on the graph until all is made. It begins anew when results are lost that were known: their actions have to run.
func (r *run) passes(ctx context.Context, g *Graph, units []*unit, opts Options) error {
	for {
		s := newScheduler(r, opts.Budget, len(units))
		s.fetchOnly = opts.FetchOnly
		err := s.work(ctx, units)
		if err == nil {
			err = r.deliver(ctx, opts.Wanted)
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
		r.judge = r.judge.again(s.gone)
	}
}

// remove removes a temporary folder. An error is reported but does not fail the run: the next one tries again.
func (r *run) remove(dir string) {
	if err := removeAll(dir); err != nil {
		r.emit(Event{Kind: Output, Text: fmt.Sprintf("temporary files stay behind: %v", err)})
	}
}

// waitForTick waits until an edit of a file that was just renamed into place would be evident: only then can its content be remembered.
func waitForTick() { time.Sleep(statcache.Tick + statcache.Tick/4) }

func (r *run) saveStats() error {
	if err := os.MkdirAll(r.tmp, 0o777); err != nil {
		return err
	}
	return r.stats.Save(filepath.Join(r.state, "stat"), r.tmp)
}

// removeAll removes read-only folders, too, such as the Go command's module cache.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			return os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// advise adds to an error of a full disk what the user can do.
func advise(err error) error {
	if full(err) {
		return fmt.Errorf("%w: free some and run the same command again; finished work is kept", err)
	}
	return err
}

// full reports whether an error is that of a full disk.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// guard calls f and turns a panic, or the end of its goroutine, into an error.
func guard(f func() error) error {
	result := make(chan error, 1)
	go func() {
		err := errors.New("ended its goroutine")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
			result <- err
		}()
		err = f()
	}()
	return <-result
}
