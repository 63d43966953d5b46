package console

import (
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/action"
)

func TestPartsOfAnActionAreToldWhenTheyAreDone(t *testing.T) {
	t.Parallel()
	events := []action.Event{
		{Time: at(0), Kind: action.Planned, Total: 1},
		{Time: at(0), Kind: action.Started, Action: "compile linux/amd64", Phase: "compile"},
		{Time: at(2), Kind: action.Step, Action: "compile linux/amd64", Text: "sent sources: 33 files", Duration: 212 * time.Millisecond},
	}
	const want = "compile linux/amd64: sent sources: 33 files, in 212ms"
	for name, newView := range map[string]func(Options) ticker{
		"plain":    func(o Options) ticker { return newPlain(o) },
		"terminal": func(o Options) ticker { return newTerminal(o) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage()
			s.play(newView(s.options()), events)
			if !strings.Contains(s.String(), want) {
				t.Errorf("it says %q, not %q", s.String(), want)
			}
		})
	}
}
