package making

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/plan"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/published"
	"slipway.build/pkg/make/target"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/tree/module"
)

// checkModulesFlags refuses flags that mean nothing with --modules.
func checkModulesFlags(changed func(flag string) bool, dir string) error {
	if dir == "" {
		return badrequest.Mark(errors.New("--modules needs the name of a folder"))
	}
	for _, flag := range []string{"list", "host", "platform", "output", "cache", "cache-upload", "no-cache"} {
		if changed(flag) {
			return badrequest.Mark(fmt.Errorf("--modules makes no kubernetes-inputs.tar: leave out --%s", flag))
		}
	}
	return nil
}

// publishModules makes Kubernetes' modules, and adds them to a folder.
func (o commands) publishModules(ctx context.Context, dir string, dryRun bool) error {
	p, err := o.Open(ctx)
	if err != nil {
		return err
	}
	release, err := published.Release(p.Stamp.Version)
	if err != nil {
		return err
	}
	view := o.View(func(string) bool { return false })
	defer view.Close()
	var sums string
	if err := action.Locked(ctx, p.Root, project.State, view.Event, func() error {
		graph, err := plan.PublishModules(ctx, p, release)
		if err != nil {
			return err
		}
		if dryRun {
			return o.PrintPlan(ctx, graph, action.Options{})
		}
		if err := graph.Run(ctx, action.Options{Budget: o.budget(), Events: view.Event, Locked: true}); err != nil {
			return session.ShownError{Err: err}
		}
		sums, err = published.Add(p.Abs(target.Published), dir)
		return err
	}); err != nil || dryRun {
		return err
	}
	if err := view.Close(); err != nil {
		return err
	}
	return o.printModules(sums)
}

// printModules prints the modules in a file of sums. With --json, these are lines after the events.
func (o commands) printModules(sums string) error {
	modules, err := module.ReadSums(sums)
	if err != nil {
		return err
	}
	if o.JSON {
		lines := json.NewEncoder(o.Out)
		for _, m := range modules {
			if err := lines.Encode(m); err != nil {
				return err
			}
		}
		return nil
	}
	return session.WriteTable(o.Out, "MODULE\tVERSION\tSUM", func(row func(...string)) {
		for _, m := range modules {
			row(m.Path, m.Version.Version, m.Sum)
		}
	})
}
