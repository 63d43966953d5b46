package making

import (
	"bufio"
	"errors"
	"io"
	"path/filepath"

	"slipway.build/pkg/cli/console"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/atomicfile"
)

// timeline is the picture of the last run that did something, relative to the root.
const timeline = project.Output + "/timeline.svg"

func drawTimeline(p *project.Project, events []action.Event) error {
	// A killed run must leave nothing behind outside the state folder.
	state, name := filepath.Join(p.Root, filepath.FromSlash(project.State)), filepath.Join(p.Root, filepath.FromSlash(timeline))
	return atomicfile.WriteVia(state, name, 0o644, func(w io.Writer) error {
		b := bufio.NewWriter(w)
		return errors.Join(console.Timeline(b, events), b.Flush())
	})
}
