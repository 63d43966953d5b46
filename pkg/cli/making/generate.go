package making

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/codegen"
	"slipway.build/pkg/make/plan"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
)

func newGenerate(o commands) *cobra.Command {
	var compare, check, dryRun bool
	c := &cobra.Command{
		Use:   "generate [--compare [group...]]",
		Short: "Run Kubernetes' code generators",
		Long: `generate runs the code generators of the tree's own Kubernetes version for API packages below cmd/, and for those of other
Go modules at the top of the tree: deep copies, defaults, conversions, validations, registration, OpenAPI definitions, apply configurations,
clients, listers and informers. Markers in comments say which packages get what, as in Kubernetes. Only generators whose input has
changed run. If one of them fails, the tree stays as it is.

With --check, nothing in the tree changes: generate lists the files that are not up to date, and its exit code is 1 if there are any.

With --compare, it runs the generators over the unpatched Kubernetes and compares what they make with the files that upstream
published. Groups of generators have upstream's names, and run in upstream's order. The exit code is 1 if a file differs.`,
		Example:   "  slipway generate\n  slipway generate --check\n  slipway generate --compare register prerelease",
		Args:      cobra.ArbitraryArgs,
		ValidArgs: codegen.Groups(),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case compare && (check || dryRun):
				return badrequest.Mark(errors.New("--compare changes nothing: leave out --check and --dry-run"))
			case compare:
				if err := codegen.CheckGroups(args); err != nil {
					return badrequest.Mark(err)
				}
				return o.compareGenerated(c.Context(), args)
			case len(args) > 0:
				return badrequest.Mark(fmt.Errorf("generate takes groups of generators only with --compare, and otherwise no arguments: %q", args))
			}
			return o.generate(c.Context(), check, dryRun)
		},
	}
	c.Flags().BoolVar(&compare, "compare", false, "compare what generators make of Kubernetes with what upstream published")
	c.Flags().BoolVar(&check, "check", false, "list the generated files that are not up to date; change nothing")
	c.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "print which generators would run, and why; do nothing")
	o.MemoryFlag(c)
	return c
}

// generate brings generated code up to date, or lists what is not.
func (o commands) generate(ctx context.Context, check, dryRun bool) error {
	p, err := o.Open(ctx)
	if err != nil {
		return err
	}
	if dryRun {
		planned, err := plan.Generate(ctx, p)
		if err != nil {
			return err
		}
		return o.PrintPlan(ctx, planned.Graph, action.Options{})
	}
	view := o.View(func(string) bool { return false })
	defer view.Close()
	var stale []codegen.Difference
	if err := action.Locked(ctx, p.Root, project.State, view.Event, func() error {
		planned, err := plan.Generate(ctx, p)
		if err != nil {
			return err
		}
		if err := planned.Graph.Run(ctx, action.Options{Budget: o.budget(), Events: view.Event, Locked: true}); err != nil {
			return session.ShownError{Err: err}
		}
		for _, g := range planned.Generated {
			differs, err := g.Stale()
			if err != nil {
				return err
			}
			stale = append(stale, differs...)
			if !check {
				if err := g.Update(differs); err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := view.Close(); err != nil {
		return err
	}
	if err := o.printGenerated(stale, check); err != nil {
		return err
	}
	if check && len(stale) > 0 {
		return session.ShownError{Err: &StaleError{len(stale)}}
	}
	return nil
}

// A StaleError says that generated files are not up to date. Their names are printed already.
type StaleError struct{ Files int }

func (e *StaleError) Error() string {
	if e.Files == 1 {
		return "1 generated file is not up to date"
	}
	return fmt.Sprintf("%d generated files are not up to date", e.Files)
}

// sayStale says that generated code of the components is not up to date, though it was compiled.
func (o commands) sayStale(stale []codegen.Difference) {
	if len(stale) == 0 {
		return
	}
	text := (&StaleError{len(stale)}).Error() + ": run make generated_files"
	for _, d := range stale {
		text += "\n  " + d.File + ": " + d.Kind
	}
	o.Say(text)
}

// printGenerated prints which files are not up to date, or what became of them. With --json, these are lines after the events.
func (o commands) printGenerated(found []codegen.Difference, check bool) error {
	lines := json.NewEncoder(o.Out)
	for _, d := range found {
		state := d.Kind
		switch {
		case check:
		case d.Wanted():
			state = "written"
		default:
			state = "removed"
		}
		var err error
		if o.JSON {
			err = lines.Encode(struct {
				File  string `json:"file"`
				State string `json:"state"`
			}{d.File, state})
		} else {
			_, err = fmt.Fprintf(o.Out, "%s: %s\n", d.File, state)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compareGenerated prints how what generators make differs from what upstream published.
func (o commands) compareGenerated(ctx context.Context, groups []string) error {
	p, err := o.Load()
	if err != nil {
		return err
	}
	g, err := p.Go(ctx, o.Say)
	if err != nil {
		return err
	}
	check := codegen.Fidelity{Root: p.Root, Components: p.Catalog.Module, Go: g,
		Progress: o.Say, Step: func(group string, took time.Duration) {
			o.Say(fmt.Sprintf("%s: %s", group, took.Round(100*time.Millisecond)))
		}}
	var found *codegen.Comparison
	if err := action.Locked(ctx, p.Root, project.State, o.NoteWaiting, func() (err error) {
		found, err = check.Compare(ctx, groups)
		return err
	}); err != nil {
		return err
	}
	if err := o.Answer(found, found.Text); err != nil {
		return err
	}
	if n := found.Differ(); n > 0 {
		return session.ShownError{Err: fmt.Errorf("%d generated files differ", n)}
	}
	return nil
}
