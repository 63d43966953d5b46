//go:build integration

package integration

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// An event is a line that --json prints.
type event struct {
	Kind   string
	Action string
	Phase  string
	By     string
	Text   string
	Files  []struct{ Path, SHA256 string }
}

type events []event

// parseEvents parses whole lines. A killed run may leave a partial line at the end.
func parseEvents(t *testing.T, text string) events {
	t.Helper()
	var all events
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("--json printed %q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// of lists the actions (or batches) of events of a kind.
func (es events) of(kind string) []string {
	var actions []string
	for _, e := range es {
		if e.Kind == kind {
			actions = append(actions, e.Action)
		}
	}
	return actions
}

// jsonRun runs a subcommand with --json, requires its success, and returns its events.
func (tr tree) jsonRun(t *testing.T, args ...string) events {
	t.Helper()
	return parseEvents(t, tr.slipway(t, append(args, "--json")...).ok(t).stdout)
}

// did requires that exactly these actions were done.
func (es events) did(t *testing.T, want ...string) {
	t.Helper()
	got := es.of("done")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("done were\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// didNothing requires that nothing was even started.
func (es events) didNothing(t *testing.T) {
	t.Helper()
	if started := es.of("started"); len(started) > 0 {
		t.Errorf("started were %q", started)
	}
	if len(es.of("skipped")) == 0 {
		t.Error("nothing was skipped: the run checked nothing")
	}
}
