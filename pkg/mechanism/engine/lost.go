package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A LostError reports that an engine stopped answering while it was used.
type LostError struct {
	Address string
	Err     error // the first that followed
}

func (e *LostError) Error() string {
	return fmt.Sprintf("docker engine at %s: it stopped answering: start it, and run the same command again: %v", e.Address, e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }

// Lost turns an error into a *LostError if the engine does not answer any more.
func (e *Engine) Lost(err error) error {
	var lost *LostError
	if err == nil || errors.As(err, &lost) {
		return err
	}
	if e.gone.Load() || e.ping(context.Background()) != nil {
		e.gone.Store(true)
		return &LostError{e.Address, err}
	}
	return err
}

// pulse is how often the engine is pinged, since a broken network would otherwise look like a long compile. The engine counts as
// lost after two pings in a row without an answer, since an engine that is busy with a build may be slow.
const (
	pulse  = 5 * time.Second
	misses = 2
)

// Watch returns a context that ends when the engine stops answering. Its cause is then a *LostError.
func (e *Engine) Watch(ctx context.Context) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(pulse)
		defer tick.Stop()
		missed := 0
		for {
			select {
			case <-watched.Done():
				return
			case <-tick.C:
			}
			err := e.ping(watched)
			if missed++; err == nil {
				missed = 0
			}
			if missed == misses && watched.Err() == nil {
				e.gone.Store(true)
				cancel(&LostError{e.Address, err})
				return
			}
		}
	}()
	return watched, func() { cancel(nil) }
}

func (e *Engine) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %v", patience))
	defer cancel()
	_, err := e.Client.Ping(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return err
}

// await calls do, and returns early when ctx ends; the client library does not, while it waits for the answer that turns a
// connection into a stream. A value that comes too late is passed to late.
func await[T any](ctx context.Context, do func() (T, error), late func(T)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		value, err := do()
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		go func() {
			if a := <-answered; a.err == nil {
				late(a.value)
			}
		}()
		var none T
		return none, context.Cause(ctx)
	}
}
