package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/action"
)

// A step is a part of making a cluster. It starts when the steps that it names, which come before it, are done.
type step struct {
	name  string
	after []string
	run   func(context.Context) error
}

// inOrder has each step start when the one before it is done.
func inOrder(steps []step) []step {
	for i := 1; i < len(steps); i++ {
		steps[i].after = []string{steps[i-1].name}
	}
	return steps
}

// checkOrder requires that each step can start: one that comes after a misspelled step, or after itself, would wait forever.
func checkOrder(steps []step) error {
	before := map[string]bool{}
	for _, s := range steps {
		for _, name := range s.after {
			if !before[name] {
				return fmt.Errorf("step %q comes after %q, which is no step before it", s.name, name)
			}
		}
		if before[s.name] {
			return fmt.Errorf("there are two steps %q", s.name)
		}
		before[s.name] = true
	}
	return nil
}

// runSteps runs the steps, and reports them as events. The first error ends the others.
func runSteps(ctx context.Context, steps []step, events func(action.Event)) error {
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
