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

// A pulse makes a ticker tick, and makes it safe for concurrent use.
type pulse struct {
	mu   sync.Mutex
	view ticker

	stop   sync.Once
	quit   chan struct{}
	ticked chan struct{} // closed when the last tick is over
}

func pulsed(view ticker, every time.Duration) *pulse {
	p := &pulse{view: view, quit: make(chan struct{}), ticked: make(chan struct{})}
	go p.beat(every)
	return p
}

func (p *pulse) beat(every time.Duration) {
	defer close(p.ticked)
	clock := time.NewTicker(every)
	defer clock.Stop()
	for {
		select {
		case <-p.quit:
			return
		case <-clock.C:
			p.mu.Lock()
			p.view.tick()
			p.mu.Unlock()
		}
	}
}

func (p *pulse) Event(ev action.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.view.Event(ev)
}

func (p *pulse) Close() error {
	p.stop.Do(func() { close(p.quit) })
	<-p.ticked
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.view.Close()
}
