package execute

import (
	"context"
	"errors"
	"path/filepath"

	"slipway.build/pkg/make/plan"
	"slipway.build/pkg/make/policy"
	"slipway.build/pkg/mechanism/action"
)

// CheckLicenses finds the licenses of everything in a release that is planned, without compiling anything, and judges them by the tree's
// policy. See [policy.Check].
func CheckLicenses(ctx context.Context, planned *plan.Plan, o action.Options) error {
	ids, files := planned.Licensed.Actions()
	part, err := planned.Graph.Part(ids)
	if err != nil {
		return err
	}
	o.Wanted = files
	if err := part.Run(ctx, o); err != nil {
		return FailedError{err}
	}
	return policy.Check(planned.Licensed, func(name string) string { return filepath.Join(part.Root, filepath.FromSlash(name)) })
}

// checkFirst checks licenses before anything else is made, if the tree has a policy. The run is part of another one for those who listen:
// it returns which actions they have heard of.
func checkFirst(ctx context.Context, planned *plan.Plan, o action.Options) (told map[string]bool, err error) {
	if !planned.Licensed.Policy.HasPolicy() {
		return nil, nil
	}
	told = map[string]bool{}
	listener := o.Events
	var finished action.Event
	o.Events = func(e action.Event) {
		switch e.Kind {
		case action.Skipped, action.Hit:
			return // the run itself says so
		case action.Finished:
			if e.Text == "" {
				finished = e
				return
			}
		case action.Done:
			told[e.Action] = true
		}
		listener(e)
	}
	err = CheckLicenses(ctx, planned, o)
	if _, refused := errors.AsType[*policy.Error](err); refused {
		listener(finished) // nothing else runs
	}
	return told, err
}
