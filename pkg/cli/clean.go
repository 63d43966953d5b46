package cli

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"slipway.build/pkg/action"
	"slipway.build/pkg/plan"
)

func newClean(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "clean",
		Short: "Remove everything that was made",
		Long:  `clean removes _output: what was built, and what is kept to skip work. The Go caches stay.`,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			root, err := plan.FindRoot(o.dir)
			if err != nil {
				return err
			}
			output := filepath.Join(root, plan.Output)
			if _, err := os.Stat(output); os.IsNotExist(err) {
				return nil
			}
			view := o.view(nil)
			defer view.Close()
			// A run that is on its way in this tree is waited for.
			return action.Locked(c.Context(), root, plan.State, view.Event, func() error {
				return os.RemoveAll(output)
			})
		},
	}
}
