package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"slipway.build/pkg/cli/console"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/mechanism/variable"
	"slipway.build/pkg/tree/catalog"
)

// An IO connects a command to its process: output, and the environment. Tests make their own.
type IO struct {
	Out, Err io.Writer
	Getenv   func(string) string

	// Clock is what embargoes are held against. Nil: time.Now.
	Clock func() time.Time

	// UpdateBazel writes the files for Bazel of the tree at root that depend on patches. Nil: nothing does.
	UpdateBazel func(ctx context.Context, root string) error

	// StaleForBazel describes what is not up to date of the files for Bazel, or is empty. Nil: the Bazel road takes them as they are.
	StaleForBazel func(ctx context.Context, root string) (string, error)
}

// Now returns the time.
func (s IO) Now() time.Time {
	if s.Clock == nil {
		return time.Now()
	}
	return s.Clock()
}

// Std returns this process's IO.
func Std() IO { return IO{Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv} }

// A Session is a run of a subcommand: its process, and the flags that all subcommands share.
type Session struct {
	IO
	Dir     string
	Road    string
	Mode    console.Mode
	JSON    bool
	Verbose int
	Memory  Bytes // that actions may take together; 0: what the machine has

	saidIgnored bool // see SayIgnored
}

// Open reads the tree.
func (o *Session) Open(ctx context.Context) (*project.Project, error) {
	settings, err := project.SettingsFrom(o.Getenv)
	if err != nil {
		return nil, err
	}
	settings.Road = o.Road
	p, err := project.Open(ctx, o.Dir, settings, o.Getenv)
	if err == nil && o.StaleForBazel != nil {
		p.Roads.Stale = func(ctx context.Context) (string, error) { return o.StaleForBazel(ctx, p.Root) }
	}
	return p, err
}

// Load reads the tree, but not which version it is.
func (o *Session) Load() (*project.Project, error) {
	settings, err := project.SettingsFrom(o.Getenv)
	if err != nil {
		return nil, err
	}
	return project.Load(o.Dir, settings, o.Getenv)
}

// SayWaiting says who holds the lock of the tree's clusters; with --json, by an event. It uses no view for people, which would say at
// the end that there was nothing to do.
func (o *Session) SayWaiting(e action.Event) {
	if o.JSON {
		o.View(nil).Event(e)
	} else {
		o.NoteWaiting(e)
	}
}

// NoteWaiting says the same on standard error, for commands that print only a result as JSON.
func (o *Session) NoteWaiting(e action.Event) {
	if e.Kind == action.Waiting {
		o.Say("waiting for " + e.Text)
	}
}

// Password returns a function that asks for a password, once.
func (o *Session) Password(prompt string) func() ([]byte, error) {
	return func() ([]byte, error) {
		if text, ok := os.LookupEnv(PasswordVariable); ok {
			return []byte(text), nil
		}
		in := int(os.Stdin.Fd())
		if !term.IsTerminal(in) {
			return nil, fmt.Errorf("it is encrypted, and nobody can be asked here: set %s", PasswordVariable)
		}
		fmt.Fprintf(o.Err, "%s: ", prompt)
		text, err := term.ReadPassword(in)
		fmt.Fprintln(o.Err)
		return text, err
	}
}

// Catalog reads the tree's catalog, and returns the root of the tree, too.
func (o *Session) Catalog() (root string, c *catalog.Catalog, err error) {
	if root, err = project.FindRoot(o.Dir); err != nil {
		return "", nil, err
	}
	c, err = catalog.Load(root)
	return root, c, err
}

// Complete returns a function that completes names in shells.
func Complete(names func() ([]string, error)) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		list, err := names()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// OnlySubcommands refuses arguments that are not subcommands.
func OnlySubcommands(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	return fmt.Errorf("unknown command %q%s", args[0], suggest.DidYouMean(suggest.Near(args[0], names)))
}

// A ShownError was shown to the user by the view of the run that failed.
type ShownError struct{ Err error }

func (e ShownError) Error() string { return e.Err.Error() }
func (e ShownError) Unwrap() error { return e.Err }

// A CommandError is the failure of the user's own command.
type CommandError struct {
	Err  error
	Code int // exit code
}

func (e CommandError) Error() string { return e.Err.Error() }
func (e CommandError) Unwrap() error { return e.Err }

// Is reports whether an error is, or wraps, one of a type.
func Is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// PasswordVariable has the password of a private key, as for cosign.
const PasswordVariable = "COSIGN_PASSWORD"

// Bytes is an amount of memory, as a flag: 5GiB, 800m.
type Bytes int64

// Set reads an amount.
func (b *Bytes) Set(text string) error {
	n, err := units.RAMInBytes(text)
	if err != nil || n <= 0 {
		return errors.New("want an amount such as 5GiB or 800m")
	}
	*b = Bytes(n)
	return nil
}

func (b *Bytes) String() string {
	if *b == 0 {
		return ""
	}
	return units.BytesSize(float64(*b))
}

// Type names the kind of the flag in help.
func (*Bytes) Type() string { return "bytes" }

// memory reads SLIPWAY_MEMORY.
func memory(getenv func(string) string) (b Bytes, err error) {
	if value := getenv("SLIPWAY_MEMORY"); value != "" && b.Set(value) != nil {
		err = variable.Bad("SLIPWAY_MEMORY", value, "an amount such as 5GiB or 800m")
	}
	return b, err
}

// MemoryFlag adds the flag that bounds the memory of actions.
func (o *Session) MemoryFlag(c *cobra.Command) {
	o.Memory, _ = memory(o.Getenv) // what is wrong with a variable is said before a command runs
	c.Flags().Var(&o.Memory, "memory", "how much memory compiles may take together, by what they took last; one runs in any case "+
		"(default $SLIPWAY_MEMORY, else what the machine has available)")
}
