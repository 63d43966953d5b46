package session

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/action"
)

func TestPlanShowsCommandLines(t *testing.T) {
	t.Parallel()
	run := func(context.Context, *action.Task, []*action.Action) error { return nil }
	compile := &action.Batch{ID: "compile", Run: run, Commands: func(stale []*action.Action) []string {
		line := "go build"
		for _, a := range stale {
			line += " " + a.ID
		}
		return []string{line}
	}}
	graph := &action.Graph{Root: t.TempDir(), State: "state", Actions: []*action.Action{
		{ID: "a", Outputs: []string{"bin/a"}, Batch: compile},
		{ID: "b", Outputs: []string{"bin/b"}, Batch: compile},
		{ID: "pack", Inputs: []string{"bin/"}, Outputs: []string{"tar"}, Batch: &action.Batch{ID: "other", Run: run}},
	}}
	for verbose, want := range []string{
		"a: new\nb: new\npack: new\n3 of 3 actions to do\n",
		"a: new\nb: new\n  $ go build a b\npack: new\n3 of 3 actions to do\n",
	} {
		var out bytes.Buffer
		o := &Session{IO: IO{Out: &out}, Verbose: verbose}
		if err := o.PrintPlan(t.Context(), graph, action.Options{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("verbose %d (-want +got):\n%s", verbose, diff)
		}
		out.Reset()
		o.JSON = true
		if err := o.PrintPlan(t.Context(), graph, action.Options{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), `"commands":["go build a b"]`); got != verbose {
			t.Errorf("verbose %d: the commands are in %d lines of JSON: %s", verbose, got, out.String())
		}
	}
}
