package console

import (
	"sync"
	"time"

	"slipway.build/pkg/mechanism/action"
)

// A ticker is a view that changes between events, too, because time passes. It need not be safe for concurrent use.
type ticker interface {
	View
	tick()
}

// A refresher makes a ticker tick until it is closed, and makes it safe for concurrent use.
type refresher struct {
	mu     sync.Mutex
	view   ticker
	next   *time.Timer // calls tick
	closed bool
}

func refreshed(view ticker, every time.Duration) *refresher {
	r := &refresher{view: view}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = time.AfterFunc(every, func() { r.tick(every) })
	return r
}

func (r *refresher) tick(every time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed { // it may have waited for Close
		r.view.tick()
		r.next.Reset(every)
	}
}

func (r *refresher) Event(ev action.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view.Event(ev)
}

func (r *refresher) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.next.Stop()
	return r.view.Close()
}
