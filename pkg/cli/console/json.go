package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"slipway.build/pkg/mechanism/action"
)

// jsonLines writes every event as a line of JSON at once, because a reader may be watching.
type jsonLines struct {
	mu  sync.Mutex
	out io.Writer
	err error
}

func (j *jsonLines) Event(ev action.Event) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // "a > b" in a compile error stays legible
	err := enc.Encode(ev)

	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return
	}
	if err != nil {
		j.err = fmt.Errorf("write event: %w", err)
		return
	}
	// One write per line, so that readers of a growing file see whole lines.
	_, j.err = j.out.Write(line.Bytes())
}

func (j *jsonLines) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// ReadJSON reads events that the JSON view wrote. It ends at the first error, which comes with a zero Event. A last line
// without a newline is an error that wraps io.ErrUnexpectedEOF: the run that wrote it was killed.
func ReadJSON(r io.Reader) iter.Seq2[action.Event, error] {
	return func(yield func(action.Event, error) bool) {
		in := bufio.NewReader(r)
		for n := 1; ; n++ {
			line, err := in.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				if len(line) > 0 {
					yield(action.Event{}, fmt.Errorf("read events: line %d: %w", n, io.ErrUnexpectedEOF))
				}
				return
			}
			var ev action.Event
			if err == nil {
				err = json.Unmarshal(line, &ev)
			}
			if err != nil {
				yield(action.Event{}, fmt.Errorf("read events: line %d: %w", n, err))
				return
			}
			if !yield(ev, nil) {
				return
			}
		}
	}
}
