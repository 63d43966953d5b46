package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/bazel"
)

func newBazel(o *options) *cobra.Command {
	var deps string
	c := &cobra.Command{
		Use:   "bazel [flags] [--] command [argument...]",
		Short: "Run the pinned Bazel in the tree",
		Long: `bazel runs the Bazel that .bazelversion pins, at the top of the tree: the one on PATH (bazel or bazelisk) if it is that
version, or else one in a root file system of Debian packages, which is made at first use (2 GB in the user's cache folder;
as root, or where users can make namespaces; mmdebstrap is needed).

rules_go, gazelle and the rule sets that they need come from Bazel's registry if Bazel is on PATH, and from Debian's
packages and Go modules if it is in such a root; --deps says otherwise. The Go is the one that release.yaml pins, and
--config=release stamps the version that "slipway version" prints. The exit code is Bazel's.`,
		Example: "  slipway bazel -- build //cmd/...\n  slipway bazel -- build --config=release --platforms=//build/bazel/platforms:linux_arm64 //cmd/kubectl\n" +
			"  slipway bazel -- shutdown",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.bazel(c.Context(), bazel.Deps(deps), args)
		},
	}
	c.Flags().StringVar(&deps, "deps", "", "where rule sets come from: registry, offline, overrides (default as above)")
	c.Flags().SetInterspersed(false) // flags behind the command are Bazel's
	return c
}

// bazel runs Bazel with this process's terminal.
func (o *options) bazel(ctx context.Context, deps bazel.Deps, args []string) error {
	p, err := o.open(ctx)
	if err != nil {
		return err
	}
	say := func(text string) { fmt.Fprintln(o.Err, "slipway:", text) }
	b, err := p.Bazel(ctx, deps, say)
	if err != nil {
		return err
	}
	if o.verbose > 0 {
		say(b.How)
	}
	c := b.Command(ctx, args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, o.Out, o.Err
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // Bazel then ends what it runs, and keeps what is done
	c.WaitDelay = time.Minute
	err = c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return commandError{fmt.Errorf("bazel: %w", err), exit.ExitCode()}
	}
	return err
}
