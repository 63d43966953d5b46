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

// A refresher makes a ticker tick, and makes it safe for concurrent use.
type refresher struct {
	mu   sync.Mutex
	view ticker

	stop   sync.Once
	quit   chan struct{}
	ticked chan struct{} // closed when the last tick is over
}

func refreshed(view ticker, every time.Duration) *refresher {
	r := &refresher{view: view, quit: make(chan struct{}), ticked: make(chan struct{})}
	go r.run(every)
	return r
}

func (r *refresher) run(every time.Duration) {
	defer close(r.ticked)
	clock := time.NewTicker(every)
	defer clock.Stop()
	for {
		select {
		case <-r.quit:
			return
		case <-clock.C:
			r.mu.Lock()
			r.view.tick()
			r.mu.Unlock()
		}
	}
}

func (r *refresher) Event(ev action.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view.Event(ev)
}

func (r *refresher) Close() error {
	r.stop.Do(func() { close(r.quit) })
	<-r.ticked
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view.Close()
}
