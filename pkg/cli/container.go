package cli

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

	"slipway.build/pkg/build/plan"
	"slipway.build/pkg/build/road/container"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/engine"
)

func newRun(o *options) *cobra.Command {
	var fetch []string
	c := &cobra.Command{
		Use:   "run [flags] [--] command [argument...]",
		Short: "Run a command in the build container, with the tree",
		Long: `run sends the tree to the container engine, and runs a command at its top in a build container: without network, as
the user build, with the Go that release.yaml pins and compilers for the server platforms. The modules that the tree
requires are there. What the command writes into _output stays in the engine for the next one, but for what --fetch
names; what it changes elsewhere in the tree is undone by the next run.

The variables that make targets take (KUBE_BUILD_PLATFORMS and others, WHAT, GOFLAGS, GOLDFLAGS, DBG) are handed on, and the version of the tree. The
exit code is the command's.`,
		Example: "  slipway run -- make test WHAT=./pkg/mechanism/archive\n  slipway run --fetch release-tars -- make quick-release",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.inContainer(c.Context(), container.Command{Args: args}, fetch)
		},
	}
	c.Flags().StringSliceVar(&fetch, "fetch", nil, "folders of the container's _output to put into this one, if the command succeeds")
	c.Flags().SetInterspersed(false) // flags behind the command are the command's
	return c
}

func newShell(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "shell",
		Short: "Open a shell in the build container, with the tree",
		Long:  `shell is "slipway run bash", for a person: see slipway run.`,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.inContainer(c.Context(), container.Command{Args: []string{"bash"}}, nil)
		},
	}
}

// inContainer runs a command in the build container, at a terminal if this process has one, and fetches folders of what it made.
func (o *options) inContainer(ctx context.Context, cmd container.Command, fetch []string) error {
	p, err := o.open(ctx)
	if err != nil {
		return err
	}
	modules := []string{p.Catalog.Module}
	if _, err := os.Stat(filepath.Join(p.Root, "go.mod")); err == nil {
		modules = append([]string{"."}, modules...)
	}
	cmd.Env = p.HandedOn(o.Getenv)
	cmd.Streams = engine.Streams{In: os.Stdin, Out: o.Out, Err: o.Err}
	if cmd.Terminal = o.terminal(); cmd.Terminal != nil {
		cmd.Env = append(cmd.Env, "TERM="+o.Getenv("TERM"))
	}
	view := o.view(nil)
	defer view.Close()
	// While files travel, no other run must: it would take the rsync container for one that was left behind.
	road := p.Containers(modules...)
	road.Work = true
	alone := func(do func() error) error { return action.Locked(ctx, p.Root, plan.State, view.Event, do) }
	rep := &says{to: o.Err, quiet: time.Now()}
	err = alone(func() error { return road.Open(ctx, rep) })
	if err == nil {
		err = road.Run(ctx, cmd, rep)
	}
	if err == nil && len(fetch) > 0 {
		err = alone(func() error { return road.Fetch(ctx, fetch, rep) })
	}
	var command *container.CommandError
	if errors.As(err, &command) {
		return commandError{fmt.Errorf("%s: %w", cmd.Args[0], err), command.Exit.Code}
	}
	return err
}

// A commandError is how somebody's own command ended.
type commandError struct {
	error
	code int
}

func (e commandError) Unwrap() error { return e.error }

// says tells a person what goes on before the command starts.
type says struct {
	to    io.Writer
	mu    sync.Mutex
	quiet time.Time // since when nothing was said
}

func (*says) By(string)            {}
func (*says) Counts(action.Unit)   {}
func (*says) Memory(int64)         {}
func (s *says) Output(line string) { s.say(line) }
func (s *says) Step(text string, took time.Duration) {
	s.say(fmt.Sprintf("slipway: %s, in %v", text, took.Round(time.Millisecond)))
}

// Progress speaks when nothing else was said for some time: an image takes minutes.
func (s *says) Progress(_, _ int64, text string) {
	s.mu.Lock()
	long := time.Since(s.quiet) > 5*time.Second
	s.mu.Unlock()
	if long {
		s.say("slipway: " + text)
	}
}

func (s *says) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = time.Now()
	fmt.Fprintln(s.to, strings.ReplaceAll(line, "\n", " "))
}
