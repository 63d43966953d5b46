package console

import (
	"bytes"
	"encoding/json"
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
	for d := json.NewDecoder(&out); d.More(); {
		var ev action.Event
		if err := d.Decode(&ev); err != nil {
			t.Fatal(err)
		}
		got = append(got, ev)
	}
	if diff := cmp.Diff(events, got); diff != "" {
		t.Errorf("events changed on their way (-want +got):\n%s", diff)
	}
}
