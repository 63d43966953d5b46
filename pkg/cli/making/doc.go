// Package making has the subcommands that make something of a tree: binaries, images, releases, generated code. It also has those about
// what they would make, and about shared caches.
//
// What must never be in here: how anything is made.
package making

import (
	"cmp"
	"runtime"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/mechanism/action"
)

type commands struct{ *session.Session }

// New returns the subcommands.
func New(s *session.Session) []*cobra.Command {
	o := commands{s}
	return []*cobra.Command{newBuild(o), newImages(o), newAPI(o), newRelease(o), newSource(o), newGenerate(o), newRun(o), newShell(o),
		newBazel(o),
		newCatalog(o), newCache(o)}
}

// budget returns what actions may take of the machine.
func (o commands) budget() action.Budget {
	return action.Budget{CPU: runtime.NumCPU() + 1, Memory: cmp.Or(int64(o.Memory), memory())}
}
