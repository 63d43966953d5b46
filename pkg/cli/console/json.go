package console

import (
	"encoding/json"
	"io"
	"sync"

	"slipway.build/pkg/mechanism/action"
)

// jsonLines writes every event as a line of JSON at once, because a reader may be watching.
type jsonLines struct {
	mu  sync.Mutex
	out *json.Encoder // in one write per line, so that readers of a growing file see whole lines
	err error
}

func newJSON(out io.Writer) *jsonLines {
	j := &jsonLines{out: json.NewEncoder(out)}
	j.out.SetEscapeHTML(false) // "a > b" in a compile error stays legible
	return j
}

func (j *jsonLines) Event(ev action.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = j.out.Encode(ev)
	}
}

func (j *jsonLines) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}
