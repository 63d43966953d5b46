// Package maintaining has the subcommands that change a tree: bump, override and patch, and outdated, which says what bump would find.
//
// What must never be in here: how a tree is bumped or patched.
package maintaining

import (
	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
)

type commands struct{ *session.Session }

// New returns the subcommands.
func New(s *session.Session) []*cobra.Command {
	o := commands{s}
	return []*cobra.Command{newBump(o), newInit(o), newOutdated(o), newOverride(o), newPatch(o)}
}
