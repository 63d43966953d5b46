// Package compile makes the actions that compile binaries. Each binary has an action, and so a key and a record, of its own. All
// binaries of a module and a platform form one batch, which compiles the stale ones in one run of a road. A [Compiler] makes the
// actions of one graph.
//
// What must never be in here: which binaries there are, and how a road compiles.
package compile

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"

	"slipway.build/pkg/make/relink"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/mechanism/action"
)

// defaultMemory is how much memory, in bytes, a compile is expected to need until it has been measured on this machine. The
// linux/amd64 components peak at 3.7 GiB on two cores (docs/measurements.md), during the parallel links at the end.
const defaultMemory = 4 << 30

// A Spec describes the compile of a binary. Paths are slash-separated and relative to the tree's root.
type Spec struct {
	ID     string // of the action
	Batch  string // ID of the batch: the same for all binaries of a module and a platform
	Output string
	Inputs []string // the sources

	road.Spec
	road.Binary
	Elsewhere bool   // the request names another road, so messages name this one
	Overrides string // modules that are newer than upstream's code was written for, which messages name if it does not compile
}

// A Compiler makes the actions of one graph.
type Compiler struct {
	Root     string                                    // absolute
	Cache    string                                    // where compressed contents are kept; if empty, nothing is compressed ahead of packing
	Links    relink.Links                              // earlier links; without a folder, everything is linked
	Measured func(batch string) (int64, bool)          // peak memory of a batch the last time, bytes
	batches  map[string]*action.Batch                  // by ID
	binaries map[string]road.Binary                    // by ID of the action
	ready    map[road.Road]func(context.Context) error // see lookOnce
}

// Action returns the action that compiles a binary, or an error if the road cannot compile it.
func (c *Compiler) Action(by road.Road, s Spec) (*action.Action, error) {
	if err := road.CheckBinary(by, s.Binary); err != nil {
		return nil, err
	}
	if c.binaries == nil {
		c.batches, c.binaries, c.ready = map[string]*action.Batch{}, map[string]road.Binary{}, map[road.Road]func(context.Context) error{}
	}
	c.binaries[s.ID] = s.Binary
	return &action.Action{
		ID:      s.ID,
		Phase:   "compile",
		Recipe:  recipeOf(by, s.Spec, s.Binary),
		Inputs:  s.Inputs,
		Outputs: []string{s.Output},
		Local:   s.Options.Debug || borrows(by), // a debug build names the tree's folder, and borrowed parts are not signed
		Batch:   c.batch(by, s),
	}, nil
}

// recipeOf returns the recipe of a compile. What the go command or Bazel is run with is in a road's recipe, as data. The code of package
// relink is in all recipes, since it writes into binaries, and roads share results.
func recipeOf(by road.Road, s road.Spec, bin road.Binary) []string {
	return append(by.Recipe(s, bin), relink.Code.String())
}

// batch returns the batch of a binary.
func (c *Compiler) batch(by road.Road, s Spec) *action.Batch {
	if known := c.batches[s.Batch]; known != nil {
		return known
	}
	// The modules of a platform are compiled one after another, the components first: what they have in common is compiled once.
	lane := "compile " + s.Platform.String() + " by " + by.Info().Name
	b := &action.Batch{ID: s.Batch, Lane: lane, Cost: c.cost(s.Batch), Ready: c.lookOnce(by)}
	b.Run = func(ctx context.Context, t *action.Task, stale []*action.Action) error {
		return c.run(ctx, t, by, s, stale)
	}
	if e, ok := by.(road.Explainer); ok {
		b.Commands = func(stale []*action.Action) []string {
			return e.Commands(c.compilation(s.Spec, stale, func(output string) string {
				return filepath.Join(c.Root, filepath.FromSlash(output))
			}))
		}
	}
	c.batches[s.Batch] = b
	return b
}

// cost leaves one processor for work beside a compile (packing, the start of the next platform), since the Go command's links leave
// processors idle.
func (c *Compiler) cost(batch string) action.Cost {
	cost := action.Cost{CPU: max(1, runtime.NumCPU()-1), Memory: defaultMemory}
	if peak, ok := c.Measured(batch); ok {
		cost.Memory = peak
	}
	return cost
}

// lookOnce returns a road's Ready, or nil if it has none. Batches share it, and only the first call checks.
func (c *Compiler) lookOnce(by road.Road) func(context.Context) error {
	preparer, ok := by.(road.Preparer)
	if !ok {
		return nil
	}
	if c.ready[by] == nil {
		var once sync.Once
		var err error
		c.ready[by] = func(ctx context.Context) error {
			once.Do(func() { err = preparer.Ready(ctx) })
			return err
		}
	}
	return c.ready[by]
}

// compilation returns the compilation of a batch's stale binaries. Path returns where an output goes.
func (c *Compiler) compilation(s road.Spec, stale []*action.Action, path func(output string) string) road.Compilation {
	made := road.Compilation{Spec: s}
	for _, a := range stale {
		made.Targets = append(made.Targets, road.Target{Binary: c.binaries[a.ID], Output: path(a.Outputs[0])})
	}
	return made
}

func (c *Compiler) run(ctx context.Context, t *action.Task, by road.Road, s Spec, stale []*action.Action) error {
	p := c.ahead(ctx)
	err := c.make(ctx, t, by, s, stale, p)
	p.stop()
	if err != nil && s.Overrides != "" && ctx.Err() == nil {
		return fmt.Errorf("%w; %s/go.mod has overrides: %s", err, s.Module, s.Overrides)
	}
	if err != nil {
		return err
	}
	for _, a := range stale {
		if sum := p.sum(t.Path(a.Outputs[0])); sum != "" {
			t.SetDigest(a.Outputs[0], sum)
		}
	}
	return nil
}

// make copies binaries that were linked before with another version, and lets the road compile the rest.
func (c *Compiler) make(ctx context.Context, t *action.Task, by road.Road, s Spec, stale []*action.Action, p *packedAhead) error {
	made := c.compilation(s.Spec, stale, t.Path)
	made.Scratch, made.Built = t.Dir(), p.built()
	if t.Cache() != nil && !s.Options.Debug {
		made.Shared = t
	}
	for i, a := range stale {
		made.Targets[i].Previous = t.Previous(a.Outputs[0])
	}
	report := t.Report
	if s.Elsewhere {
		report = named("the "+by.Info().Name+" road: ", report)
	}
	l := c.relinker(t, by, made, stale, p)
	made.Targets = l.copy(ctx, made.Targets, report)
	if len(made.Targets) == 0 {
		return nil
	}
	if borrows(by) {
		t.Use(action.Derived)
	}
	if err := by.Compile(ctx, made, report); err != nil {
		return err
	}
	l.keepLinked(ctx, made.Targets, report)
	return nil
}

func borrows(by road.Road) bool {
	b, ok := by.(road.Borrower)
	return ok && b.Borrows()
}

// named returns a report in which the names of workers have a prefix.
func named(prefix string, report action.Report) action.Report {
	return func(e action.Event) {
		if e.By != "" {
			e.By = prefix + e.By
		}
		report(e)
	}
}
