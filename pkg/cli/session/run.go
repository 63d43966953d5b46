package session

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"

	"slipway.build/pkg/cli/console"
	"slipway.build/pkg/mechanism/action"
)

// View returns the view of events that the flags choose.
func (o *Session) View(isArtifact func(string) bool) console.View {
	mode := o.Mode
	if o.JSON {
		mode = console.JSON
	}
	return console.New(console.Options{
		Out:       o.Out,
		Err:       o.Err,
		Mode:      mode,
		Verbose:   o.Verbose,
		Artifacts: isArtifact,
		Getenv:    o.Getenv,
	})
}

// PrintPlan prints what would run, and why. With --verbose it also prints the known command lines, after the last action that they
// are for.
func (o *Session) PrintPlan(ctx context.Context, graph *action.Graph, opts action.Options) error {
	decisions, err := graph.Plan(ctx, opts)
	if err != nil {
		return err
	}
	commands := map[*action.Action][]string{}
	if o.Verbose > 0 {
		commands = commandLines(decisions)
	}
	if o.JSON {
		lines := json.NewEncoder(o.Out)
		for _, d := range decisions {
			line := struct {
				Action   string          `json:"action"`
				Phase    string          `json:"phase"`
				Certain  bool            `json:"certain"`
				Reason   string          `json:"reason"`
				Reasons  []action.Reason `json:"reasons"` // as in an Event; there is one
				Outputs  []string        `json:"outputs"`
				Commands []string        `json:"commands,omitempty"`
			}{d.Action.ID, d.Action.Phase, d.Certain, d.Reason.String(), []action.Reason{d.Reason}, d.Action.Outputs, commands[d.Action]}
			if err := lines.Encode(line); err != nil {
				return err
			}
		}
		return nil
	}
	w := bufio.NewWriter(o.Out)
	for _, d := range decisions {
		fmt.Fprintf(w, "%s: %s\n", d.Action.ID, d.Reason)
		for _, line := range commands[d.Action] {
			fmt.Fprintf(w, "  $ %s\n", line)
		}
	}
	fmt.Fprintf(w, "%d of %d actions to do\n", len(decisions), len(graph.Actions))
	return w.Flush()
}

// commandLines returns the command lines of each batch, for the last of its actions that would run.
func commandLines(decisions []action.Decision) map[*action.Action][]string {
	stale := map[*action.Batch][]*action.Action{}
	for _, d := range decisions {
		if b := d.Action.Batch; b != nil && b.Commands != nil {
			stale[b] = append(stale[b], d.Action)
		}
	}
	lines := map[*action.Action][]string{}
	for b, actions := range stale {
		lines[actions[len(actions)-1]] = b.Commands(actions)
	}
	return lines
}
