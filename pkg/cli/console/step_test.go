package console

import (
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/action"
)

func TestStepsAreShownWhenTheyAreDone(t *testing.T) {
	t.Parallel()
	events := []action.Event{
		{Time: at(0), Kind: action.Planned, Total: 1},
		{Time: at(0), Kind: action.Started, Action: "compile linux/amd64", Phase: "compile"},
		{Time: at(2), Kind: action.Step, Action: "compile linux/amd64", Text: "sent sources: 33 files", Duration: 212 * time.Millisecond},
	}
	const want = "compile linux/amd64: sent sources: 33 files, in 212ms"
	for name, newView := range views {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture()
			s.show(newView(s.options()), events)
			if !strings.Contains(s.String(), want) {
				t.Errorf("it says %q, not %q", s.String(), want)
			}
		})
	}
}
