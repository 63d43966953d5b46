package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/action"
)

// A step is a part of making a cluster. It starts when the steps that it names are done.
type step struct {
	name  string
	after []string
	run   func(context.Context) error
}

// checkOrder requires that each step can start: one that comes after a misspelled step, or after itself, would wait forever.
func checkOrder(steps []step) error {
	waiting := map[string]step{}
	for _, s := range steps {
		if _, ok := waiting[s.name]; ok {
			return fmt.Errorf("there are two steps %q", s.name)
		}
		waiting[s.name] = s
	}
	for _, s := range steps {
		for _, name := range s.after {
			if _, ok := waiting[name]; !ok {
				return fmt.Errorf("step %q comes after %q, which is no step", s.name, name)
			}
		}
	}
	for range steps { // each round takes one step at least, unless they wait for one another
		maps.DeleteFunc(waiting, func(_ string, s step) bool {
			return !slices.ContainsFunc(s.after, func(name string) bool { _, ok := waiting[name]; return ok })
		})
	}
	if len(waiting) > 0 {
		return fmt.Errorf("steps wait for one another: %q", slices.Sorted(maps.Keys(waiting)))
	}
	return nil
}

// take takes the steps, and reports them as events. The first error ends the others.
func take(ctx context.Context, steps []step, events func(action.Event)) error {
	if err := checkOrder(steps); err != nil {
		return err
	}
	var mu sync.Mutex
	emit := func(e action.Event) {
		mu.Lock()
		defer mu.Unlock()
		e.Time = time.Now()
		events(e)
	}
	start := time.Now()
	emit(action.Event{Kind: action.Planned, Total: int64(len(steps))})
	done := make(map[string]chan struct{}, len(steps))
	for _, s := range steps {
		done[s.name] = make(chan struct{})
	}
	g, running := errgroup.WithContext(ctx)
	for _, s := range steps {
		g.Go(func() error {
			for _, name := range s.after {
				select {
				case <-done[name]:
				case <-running.Done():
					return nil // the step that failed returns the error, or ctx has ended
				}
			}
			began := time.Now()
			emit(action.Event{Kind: action.Started, Action: s.name})
			err := s.run(running)
			if running.Err() != nil && errors.Is(err, running.Err()) {
				return err // another step failed
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", s.name, err)
				emit(action.Event{Kind: action.Failed, Action: s.name, Text: err.Error(), Duration: time.Since(began)})
				return err
			}
			emit(action.Event{Kind: action.Done, Action: s.name, Duration: time.Since(began)})
			close(done[s.name])
			return nil
		})
	}
	err := g.Wait()
	if cause := ctx.Err(); cause != nil {
		err = cause
	}
	end := action.Event{Kind: action.Finished, Duration: time.Since(start)}
	if err != nil {
		end.Text = err.Error()
	}
	emit(end)
	return err
}
