package making

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/road/container"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/engine"
)

func newRun(o commands) *cobra.Command {
	var fetch []string
	c := &cobra.Command{
		Use:   "run [flags] [--] command [argument...]",
		Short: "Run a command in the build container, with the tree",
		Long: `run sends the tree to the container engine, and runs a command at its top in a build container: without network, as
the user build, with the Go that release.yaml pins, compilers for the server platforms, and the modules that the tree
requires. What the command writes into _output stays in the engine for the next run, which undoes other changes to the
tree. --fetch copies folders of _output here.

The command gets the variables of make targets (WHAT, KUBE_BUILD_PLATFORMS, GOFLAGS and the others in
docs/variables.md) and the version of the tree. The exit code is the command's.`,
		Example: "  slipway run -- make test WHAT=./pkg/mechanism/archive\n  slipway run --fetch release-tars -- make quick-release",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.inContainer(c.Context(), container.Command{Args: args}, fetch)
		},
	}
	c.Flags().StringSliceVar(&fetch, "fetch", nil, "folders of the container's _output to put into this one, if the command succeeds")
	c.Flags().SetInterspersed(false) // flags after the command are the command's
	return c
}

func newShell(o commands) *cobra.Command {
	return &cobra.Command{
		Use:   "shell",
		Short: "Open a shell in the build container, with the tree",
		Long:  `shell is "slipway run bash", for interactive use: see slipway run.`,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.inContainer(c.Context(), container.Command{Args: []string{"bash"}}, nil)
		},
	}
}

// inContainer runs a command in the build container, at a terminal if this process has one, and then fetches folders.
func (o commands) inContainer(ctx context.Context, cmd container.Command, fetch []string) error {
	p, err := o.Open(ctx)
	if err != nil {
		return err
	}
	modules := []string{p.Catalog.Module}
	if _, err := os.Stat(filepath.Join(p.Root, "go.mod")); err == nil {
		modules = append([]string{"."}, modules...)
	}
	cmd.Env = p.RemoteEnv(o.Getenv)
	cmd.Streams = engine.Streams{In: os.Stdin, Out: o.Out, Err: o.Err}
	if cmd.Terminal = o.terminal(); cmd.Terminal != nil {
		cmd.Env = append(cmd.Env, "TERM="+o.Getenv("TERM"))
	}
	view := o.View(nil)
	defer view.Close()
	// No other run may start during a transfer: it would remove the rsync container as the remains of a killed run.
	road := p.Roads.Containers(modules...)
	road.Work = true
	alone := func(do func() error) error { return action.Locked(ctx, p.Root, project.State, view.Event, do) }
	rep := (&notices{to: o.Err, quiet: time.Now()}).event
	err = alone(func() error { return road.Open(ctx, rep) })
	if err == nil {
		err = road.Run(ctx, cmd, rep)
	}
	if err == nil && len(fetch) > 0 {
		err = alone(func() error { return road.Fetch(ctx, fetch, rep) })
	}
	if command, ok := errors.AsType[*container.CommandError](err); ok {
		return session.CommandError{Err: fmt.Errorf("%s: %w", cmd.Args[0], err), Code: command.Exit.Code}
	}
	return err
}

// notices prints what happens before the command starts.
type notices struct {
	to    io.Writer
	mu    sync.Mutex
	quiet time.Time // when something was last printed
}

// event prints an event. It prints progress only if nothing was printed for some time: an image takes minutes.
func (s *notices) event(e action.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := e.Text
	switch {
	case e.Kind == action.Step:
		line = fmt.Sprintf("slipway: %s, in %v", e.Text, e.Duration.Round(time.Millisecond))
	case e.Kind == action.Progress && time.Since(s.quiet) > 5*time.Second:
		line = "slipway: " + e.Text
	case e.Kind != action.Output:
		return
	}
	s.quiet = time.Now()
	fmt.Fprintln(s.to, strings.ReplaceAll(line, "\n", " "))
}
