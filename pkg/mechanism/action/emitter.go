package action

import (
	"sync"
	"time"
)

// An emitter hands events on, one at a time and in order.
type emitter struct {
	mu     sync.Mutex
	to     func(Event) // nil if nobody listens
	closed bool
}

func (e *emitter) emit(ev Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.to == nil {
		return
	}
	ev.Time = time.Now()
	e.to(ev)
}

// close drops what actions may still say after the run, from goroutines that they left behind.
func (e *emitter) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
}
