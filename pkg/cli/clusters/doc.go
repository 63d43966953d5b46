// Package clusters has the subcommands about clusters: slipway cluster, and test-e2e-node, which runs tests on a node of
// its own.
//
// What must never be in here: how a cluster works.
package clusters

import (
	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
)

type commands struct{ *session.Session }

// New returns the subcommands.
func New(s *session.Session) []*cobra.Command {
	o := commands{s}
	return []*cobra.Command{newCluster(o), newTestNode(o)}
}
