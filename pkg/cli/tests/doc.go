// Package tests has the subcommands that test and lint the tree's code and Kubernetes as its patches change it.
//
// What must never be in here: how tests run, and which mistakes there are.
package tests

import (
	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
)

type commands struct{ *session.Session }

// New returns the subcommands.
func New(s *session.Session) []*cobra.Command {
	o := commands{s}
	return []*cobra.Command{newTest(o), newTestCmd(o), newLint(o)}
}
