package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A LostError says that an engine stopped answering while something was done with it.
type LostError struct {
	Address string
	Err     error // how that showed
}

func (e *LostError) Error() string {
	return fmt.Sprintf("docker engine at %s: it stopped answering: start it, and run the same command again: %v", e.Address, e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }

// Lost makes a *LostError of an error if the engine does not answer any more.
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

// pulse is how often an engine is asked for a sign of life: a network that swallows everything would look like a long compile.
// It is given up when it has not answered twice in a row, as one that is busy with a build may be slow.
const (
	pulse  = 5 * time.Second
	misses = 2
)

// Watch returns a context that ends when the engine stops answering; its cause is a *LostError then.
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

// await does what the client library does not end with a context: it waits for the engine's first words on a connection that
// becomes a stream. What comes too late is given to late.
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
