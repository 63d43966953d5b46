package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"slipway.build/pkg/cli/console"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/suggest"
)

// An IO connects a command to its process: output, and the environment. Tests make their own.
type IO struct {
	Out, Err io.Writer
	Getenv   func(string) string

	// UpdateBazel writes the files for Bazel of the tree at root that depend on patches. Nil: nothing does.
	UpdateBazel func(ctx context.Context, root string) error

	// StaleForBazel describes what is not up to date of the files for Bazel, or is empty. Nil: the Bazel road takes them as they are.
	StaleForBazel func(ctx context.Context, root string) (string, error)
}

// Std returns this process's IO.
func Std() IO { return IO{Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv} }

// options are the flags that all subcommands share.
type options struct {
	IO
	dir     string
	road    string
	mode    console.Mode
	json    bool
	verbose int

	saidIgnored bool // see sayIgnored
}

// open reads the tree.
func (o *options) open(ctx context.Context) (*project.Project, error) {
	settings, err := project.SettingsFrom(o.Getenv)
	if err != nil {
		return nil, err
	}
	settings.Road = o.road
	p, err := project.Open(ctx, o.dir, settings, o.Getenv)
	if err == nil && o.StaleForBazel != nil {
		p.Roads.Stale = func(ctx context.Context) (string, error) { return o.StaleForBazel(ctx, p.Root) }
	}
	return p, err
}

// load reads the tree, but not which version it is.
func (o *options) load() (*project.Project, error) {
	settings, err := project.SettingsFrom(o.Getenv)
	if err != nil {
		return nil, err
	}
	return project.Load(o.dir, settings, o.Getenv)
}

// sayWaiting says who holds the lock of the tree's clusters; with --json, by an event. It uses no view for people, which would say at
// the end that there was nothing to do.
func (o *options) sayWaiting(e action.Event) {
	if o.json {
		o.view(nil).Event(e)
	} else {
		o.noteWaiting(e)
	}
}

// noteWaiting says the same on standard error, for commands that print only a result as JSON.
func (o *options) noteWaiting(e action.Event) {
	if e.Kind == action.Waiting {
		o.say("waiting for " + e.Text)
	}
}

// password returns a function that asks for a password, once.
func (o *options) password(prompt string) func() ([]byte, error) {
	return func() ([]byte, error) {
		if text, ok := os.LookupEnv(passwordVariable); ok {
			return []byte(text), nil
		}
		in := int(os.Stdin.Fd())
		if !term.IsTerminal(in) {
			return nil, fmt.Errorf("it is encrypted, and nobody can be asked here: set %s", passwordVariable)
		}
		fmt.Fprintf(o.Err, "%s: ", prompt)
		text, err := term.ReadPassword(in)
		fmt.Fprintln(o.Err)
		return text, err
	}
}

// onlySubcommands refuses arguments that are not subcommands.
func onlySubcommands(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	return fmt.Errorf("unknown command %q%s", args[0], suggest.DidYouMean(suggest.Near(args[0], names)))
}

// A shownError was shown to the user by the view of the run that failed.
type shownError struct{ error }

func (e shownError) Unwrap() error { return e.error }

// A commandError is the failure of the user's own command.
type commandError struct {
	error
	code int
}

func (e commandError) Unwrap() error { return e.error }
