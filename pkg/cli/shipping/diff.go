package shipping

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/prove/diff"
)

func newDiff(o commands) *cobra.Command {
	return &cobra.Command{
		Use:   "diff A B",
		Short: "Say whether two releases, archives or Go programs are the same, and what differs",
		Long: `diff compares two folders (of tarballs, of programs, of anything), two tarballs or two programs.

It looks into tarballs and container images. Of two programs, it names the version of Go, modules and build settings that
differ, and the functions that only one of them has, or whose size differs. Equal sizes prove nothing: the code may
differ all the same.

The exit code is 0 if A and B are the same bytes, 1 if they are different, and 2 if one can't be read.`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := diff.Compare(c.Context(), args[0], args[1])
			if err != nil {
				return badrequest.Mark(err)
			}
			show := r.Text
			if o.JSON {
				show = r.JSON
			}
			if err := show(o.Out); err != nil {
				return err
			}
			if r.Verdict == diff.Different {
				return session.ShownError{Err: fmt.Errorf("%s and %s: %w", args[0], args[1], errDifferent)}
			}
			return nil
		},
	}
}

var errDifferent = errors.New("different")
