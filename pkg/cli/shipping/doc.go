// Package shipping has the subcommands about a release that is there: sign, verify, compare, rebuild, publish, bundle, ask about.
//
// What must never be in here: how a release is signed, verified or compared.
package shipping

import (
	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
)

type commands struct{ *session.Session }

// New returns the subcommands.
func New(s *session.Session) []*cobra.Command {
	o := commands{s}
	return []*cobra.Command{newSign(o), newVerify(o), newKeys(o), newTrust(o), newDiff(o), newWhy(o), newRebuild(o), newVulns(o),
		newPublish(o), newWithdraw(o), newBundle(o)}
}
