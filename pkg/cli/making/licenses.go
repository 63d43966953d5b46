package making

import (
	"context"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/execute"
	"slipway.build/pkg/make/plan"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
)

// CheckLicenses judges the licenses of everything that a release for this machine's linux platform has, with its test set and addons.
// Nothing is compiled for that: packages are listed, and Debian packages fetched. Progress goes to the session's output.
func CheckLicenses(ctx context.Context, s *session.Session) error {
	o := commands{s}
	p, planned, err := o.plan(ctx, makeFlags{}, plan.Request{Tars: true, TestSet: true, Addons: true})
	if err != nil {
		return err
	}
	view := o.View(func(string) bool { return false })
	defer view.Close()
	return action.Locked(ctx, p.Root, project.State, view.Event, func() error {
		return execute.CheckLicenses(ctx, planned, action.Options{Budget: o.budget(), Events: view.Event, Locked: true})
	})
}
