package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"slipway.build/pkg/cli/console"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/atomicfile"
)

// timeline is the picture of the last run that did something, relative to the root.
const timeline = project.Output + "/timeline.svg"

// view returns the view of events that the flags choose.
func (o *options) view(isArtifact func(string) bool) console.View {
	mode := o.mode
	if o.json {
		mode = console.JSON
	}
	return console.New(console.Options{
		Out:       o.Out,
		Err:       o.Err,
		Mode:      mode,
		Verbose:   o.verbose,
		Artifacts: isArtifact,
		Getenv:    o.Getenv,
	})
}

func drawTimeline(p *project.Project, events []action.Event) error {
	// A killed run must leave nothing behind outside the state folder.
	state, name := filepath.Join(p.Root, filepath.FromSlash(project.State)), filepath.Join(p.Root, filepath.FromSlash(timeline))
	return atomicfile.WriteVia(state, name, 0o644, func(w io.Writer) error {
		b := bufio.NewWriter(w)
		return errors.Join(console.Timeline(b, events), b.Flush())
	})
}

// printPlan prints what would run, and why. With --verbose it also prints the known command lines, after the last action that they
// are for.
func (o *options) printPlan(ctx context.Context, graph *action.Graph, opts action.Options) error {
	decisions, err := graph.Plan(ctx, opts)
	if err != nil {
		return err
	}
	commands := map[*action.Action][]string{}
	if o.verbose > 0 {
		commands = commandLines(decisions)
	}
	if o.json {
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
