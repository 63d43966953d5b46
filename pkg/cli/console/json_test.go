package console

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/action"
)

func TestJSONIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	events := append(release(), broken()...)
	var out, errs bytes.Buffer
	view := New(Options{Out: &out, Err: &errs, Mode: JSON})
	for _, ev := range events {
		view.Event(ev)
	}
	if err := view.Close(); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), "\n"); lines != len(events) {
		t.Errorf("%d lines for %d events", lines, len(events))
	}
	if errs.Len() > 0 {
		t.Errorf("Err got %q, but the events have all of it", errs.String())
	}
	var got []action.Event
	for ev, err := range ReadJSON(&out) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ev)
	}
	if diff := cmp.Diff(events, got); diff != "" {
		t.Errorf("events changed on their way (-want +got):\n%s", diff)
	}
}

func TestReadJSONNamesTheLineOfAnError(t *testing.T) {
	t.Parallel()
	good := `{"time":"2026-11-03T10:00:00Z","kind":"planned","total":3}` + "\n"
	for name, test := range map[string]struct {
		in     string
		events int
		err    string
		is     error
	}{
		"nothing":        {"", 0, "", nil},
		"good":           {good + good, 2, "", nil},
		"killed writing": {good + good[:20], 1, "read events: line 2: unexpected EOF", io.ErrUnexpectedEOF},
		"not JSON":       {good + "make: *** Error 1\n" + good, 1, "read events: line 2: invalid character", nil},
	} {
		events, message := 0, ""
		for _, err := range ReadJSON(strings.NewReader(test.in)) {
			if err == nil {
				events++
				continue
			}
			message = err.Error()
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%s: %v is not %v", name, err, test.is)
			}
		}
		if events != test.events || !strings.HasPrefix(message, test.err) || (message == "") != (test.err == "") {
			t.Errorf("%s: %d events, error %q; want %d, %q", name, events, message, test.events, test.err)
		}
	}
	for range ReadJSON(strings.NewReader(good + good)) {
		break // must not panic
	}
}
