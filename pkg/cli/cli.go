// Package cli is the slipway command: its subcommands, their flags, and the exit codes.
//
// Each subcommand is in a package below this one, with what it alone uses: making, shipping, maintaining, clusters, tests. What all share
// is in package session.
//
// The defaults of flags come from the Kubernetes variables of the same meaning, so that `make` and `slipway` do the same
// thing: mage targets call Run with the arguments that a person would type.
//
// Exit codes: 0 success, 1 failure, 2 a request that cannot be understood. The subcommands run, shell, bazel,
// cluster kubectl and cluster shell end with the exit code of the command that they ran.
//
// # What must never be in here
//
// How anything is done: each subcommand calls the package that does it. File names that another package chooses.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slipway.build/pkg/cli/clusters"
	"slipway.build/pkg/cli/console"
	"slipway.build/pkg/cli/maintaining"
	"slipway.build/pkg/cli/making"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/cli/shipping"
	"slipway.build/pkg/cli/tests"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/tail"
)

// An ExitError is an error with an exit code. Its text holds no password of an address.
type ExitError struct {
	Err   error
	Code  int
	Shown bool // the output ends with the error already, so it must not be printed again
}

func (e *ExitError) Error() string   { return tail.Redact(e.Err.Error()) }
func (e *ExitError) Unwrap() error   { return e.Err }
func (e *ExitError) ExitStatus() int { return e.Code } // mage calls it

// Run runs slipway with arguments. Its error, if any, is an *ExitError.
func Run(ctx context.Context, s session.IO, args ...string) error {
	collectLess()
	root := New(s)
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		exit := &ExitError{advise(err), exitCode(err), session.Is[session.ShownError](err)}
		if text := advice(err); exit.Shown && text != "" {
			fmt.Fprintln(s.Err, "slipway:", text)
		}
		return exit
	}
	return nil
}

// Main is the slipway command. It returns the exit code.
func Main(s session.IO) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit, failed := errors.AsType[*ExitError](Run(ctx, s, os.Args[1:]...))
	if !failed {
		return 0
	}
	if !exit.Shown {
		fmt.Fprintln(s.Err, "slipway:", exit)
	}
	return exit.Code
}

// exitCode returns the exit code for an error. It ignores the exit code of a failed tool, unless that is the user's own command.
func exitCode(err error) int {
	var command session.CommandError
	switch {
	case errors.As(err, &command):
		return command.Code
	case session.Is[session.ShownError](err): // a failed run is not a mistake in the request
		return 1
	case badrequest.Is(err):
		return 2
	}
	return 1
}

type commands struct{ *session.Session }

// New returns the slipway command.
func New(s session.IO) *cobra.Command {
	root, o := newRoot(s)
	lines := maintaining.NewLines(o.Session, func(s session.IO) *cobra.Command {
		fresh, _ := newRoot(s)
		return fresh
	}, maintaining.EachLine)
	checkUsage([]*cobra.Command{lines})
	root.AddCommand(lines)
	return root
}

// newRoot returns the slipway command without lines, which runs the others.
func newRoot(s session.IO) (*cobra.Command, commands) {
	o := commands{&session.Session{IO: s, Mode: console.Auto}}
	root := &cobra.Command{
		Use:   "slipway",
		Short: "Build a complete Kubernetes cluster from source, and pack it into release tarballs",
		Long: `slipway builds a complete Kubernetes cluster from source, and packs it into release tarballs:
the same bytes every time, wherever it runs.

Without a subcommand, it prints this help. In a tree with a Makefile, "make help" lists
the same actions under Kubernetes' names.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          session.OnlySubcommands,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if err := session.CheckVariables(s.Getenv); err != nil {
				return err
			}
			session.SayUnread(s.Getenv, s.Err)
			if err := session.CheckRoad(o.Road); err != nil {
				return err
			}
			return maintaining.RecoverBump(c.Context(), o.Session, c)
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return badrequest.Mark(fmt.Errorf("%w%s: see %s --help", err, nearFlag(c, err), c.CommandPath()))
	})
	verbose, _ := session.Verbosity(s.Getenv) // what is wrong with a variable is said before a command runs
	flags := root.PersistentFlags()
	flags.StringVarP(&o.Dir, "directory", "C", ".", "the tree, or a folder in it")
	flags.StringVar(&o.Road, "road", s.Getenv("ROAD"), "how to compile: local, container, bazel (default $ROAD, else local)")
	flags.Var(&o.Mode, "progress", "how to show progress: auto, terminal, plain, json")
	flags.BoolVar(&o.JSON, "json", false, "print JSON: events, one per line, or the result of a query")
	flags.IntVarP(&o.Verbose, "verbose", "v", verbose, "1: also list skipped actions; with --dry-run, the command lines of compiles "+
		"(default $KUBE_VERBOSE)")
	for _, room := range [][]*cobra.Command{
		making.New(o.Session), tests.New(o.Session), shipping.New(o.Session), maintaining.New(o.Session), clusters.New(o.Session),
	} {
		root.AddCommand(room...)
	}
	root.AddCommand(newClean(o), newVersion(o))
	checkUsage([]*cobra.Command{root})
	return root, o
}

// checkUsage turns wrong arguments and repeated flags of commands and their subcommands into usage errors.
func checkUsage(commands []*cobra.Command) {
	for _, c := range commands {
		c.Flags().VisitAll(onlyOnce)
		c.PersistentFlags().VisitAll(onlyOnce)
		if check := c.Args; check != nil {
			c.Args = func(c *cobra.Command, args []string) error {
				if err := check(c, args); err != nil {
					return badrequest.Mark(fmt.Errorf("%w: see %s --help", err, c.CommandPath()))
				}
				return nil
			}
		}
		checkUsage(c.Commands())
	}
}

// onlyOnce refuses a second value for a flag that takes one: pflag would take the last one silently, such as one of two keys.
func onlyOnce(f *pflag.Flag) {
	if _, many := f.Value.(pflag.SliceValue); many {
		return
	}
	f.Value = &onceValue{Value: f.Value}
	if f.DefValue == "0s" {
		f.DefValue = "0" // help shows no default that is zero, which pflag sees by its own types or by this
	}
}

// A onceValue is a value that can be set once.
type onceValue struct {
	pflag.Value
	set bool
}

func (v *onceValue) Set(text string) error {
	if v.set {
		return fmt.Errorf("it takes one value, and %q was given before", v.Value)
	}
	v.set = true
	return v.Value.Set(text)
}
