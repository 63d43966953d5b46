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

// A step is a part of the way to a cluster. It starts when those that it names are done.
type step struct {
	name  string
	after []string
	run   func(context.Context) error
}

// take takes the steps, and tells of them by events. The first error ends the others.
func take(ctx context.Context, steps []step, events func(action.Event)) error {
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
					return nil // the one that failed has the error, or the caller
				}
			}
			began := time.Now()
			emit(action.Event{Kind: action.Started, Action: s.name})
			err := s.run(running)
			if running.Err() != nil && errors.Is(err, running.Err()) {
				return err // it was another that failed
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
