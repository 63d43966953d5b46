package action

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

func TestGraphsThatCannotRun(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, *Task) error { return nil }
	batch := &Batch{ID: "batch", Run: func(context.Context, *Task, []*Action) error { return nil }}
	one := func(id string, inputs, outputs []string) *Action {
		return &Action{ID: id, Inputs: inputs, Outputs: outputs, Run: nothing}
	}
	in := func(b *Batch, a *Action) *Action {
		a.Run, a.Batch = nil, b
		return a
	}
	list := func(s ...string) []string { return s }
	for name, c := range map[string]struct {
		actions []*Action
		want    string
	}{
		"two of one ID": {[]*Action{one("a", nil, nil), one("a", nil, nil)}, "a: the ID of two actions or batches"},
		"batch's ID":    {[]*Action{one("batch", nil, nil), in(batch, one("a", nil, nil))}, "batch: the ID of two actions or batches"},
		"no ID":         {[]*Action{one("", nil, nil)}, "an action or a batch has no ID"},
		"same output":   {[]*Action{one("a", nil, list("x")), one("b", nil, list("./x"))}, "b: output x is made by a too"},
		"output inside": {[]*Action{one("a", nil, list("x/")), one("b", nil, list("x/y"))}, "b: output x/y lies in output x of a"},
		"own outputs":   {[]*Action{one("a", nil, list("x/", "x/y"))}, "a: output x/y lies in output x of a"},
		"outside":       {[]*Action{one("a", nil, list("../x"))}, `a: path "../x": neither below the root nor absolute`},
		"absolute":      {[]*Action{one("a", nil, list("/x"))}, "a: output /x is outside of the root"},
		"empty":         {[]*Action{one("a", list(""), nil)}, `a: path "": neither below the root nor absolute`},
		"inside state":  {[]*Action{one("a", nil, list("out/state/x"))}, "a: output out/state/x holds or lies in the state folder out/state"},
		"above state":   {[]*Action{one("a", nil, list("out/"))}, "a: output out/ holds or lies in the state folder out/state"},
		"reads state":   {[]*Action{one("a", list("./"), nil)}, "a: input ./ holds or lies in the state folder out/state"},
		"no Run":        {[]*Action{{ID: "a"}}, "a: needs either Run or Batch"},
		"Run and Batch": {[]*Action{{ID: "a", Run: nothing, Batch: batch}}, "a: needs either Run or Batch"},
		"batch, no Run": {[]*Action{in(&Batch{ID: "b"}, one("a", nil, nil))}, "b: batch has no Run"},
		"file, directory": {[]*Action{one("a", nil, list("x/")), one("b", list("x"), nil)},
			"b: input x and the output of a: one is a file, the other a directory"},
		"inside a file": {[]*Action{one("a", nil, list("x")), one("b", list("x/y"), nil)}, "b: input x/y lies in x, which a makes as a file"},
		"own input":     {[]*Action{one("a", list("x"), list("x"))}, "cycle: a needs x of a"},
		"cycle": {[]*Action{one("a", list("z"), list("x")), one("b", list("x"), list("y/")), one("c", list("y/q"), list("z"))},
			"cycle: a needs z of c, c needs y/q of b, b needs x of a"},
		"cycle by directory": {[]*Action{one("a", list("in/"), list("x")), one("b", list("x"), list("in/y"))},
			"cycle: a needs in/ of b, b needs x of a"},
		"cycle by batch": {[]*Action{in(batch, one("a", nil, list("x"))), one("b", list("x"), list("y")), in(batch, one("c", list("y"), nil))},
			"cycle: c (run with batch) needs y of b, b needs x of a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &Graph{Root: t.TempDir(), State: "out/state", Actions: c.actions}
			err := g.Run(t.Context(), Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
			if _, err := g.Plan(t.Context(), Options{}); err == nil {
				t.Error("it can be planned")
			}
		})
	}
}

func TestGraphChecksItsFolders(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, g := range []Graph{{Root: "relative", State: "state"}, {Root: root}, {Root: root, State: "."}, {Root: root, State: "../state"},
		{Root: root, State: filepath.Join(root, "x")}} {
		if err := g.Run(t.Context(), Options{}); err == nil {
			t.Errorf("root %q and state folder %q are accepted", g.Root, g.State)
		}
	}
}
