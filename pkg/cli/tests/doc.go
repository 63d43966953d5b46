// Package tests has the subcommands that run Kubernetes' own unit, integration and command tests.
//
// What must never be in here: how tests run.
package tests

import (
	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
)

type commands struct{ *session.Session }

// New returns the subcommands.
func New(s *session.Session) []*cobra.Command {
	o := commands{s}
	return []*cobra.Command{newTest(o), newTestCmd(o)}
}
