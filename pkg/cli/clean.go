package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/build/bazel"
	"slipway.build/pkg/build/plan"
	"slipway.build/pkg/build/road/container"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/engine"
	"slipway.build/pkg/prove/cluster"
)

func newClean(o *options) *cobra.Command {
	var dryRun bool
	c := &cobra.Command{
		Use:   "clean",
		Short: "Remove everything that was made",
		Long: `clean removes _output: what was built, and what is kept to skip work. The Go caches stay. What the tree has in
a container engine is removed, too: its containers, volumes (the Go caches of the container road among them) and images. So
is what Bazel has made for the tree, and its server stops; a root with Bazel in the user's cache folder stays. Clusters that
are up are removed first.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			root, err := plan.FindRoot(o.dir)
			if err != nil {
				return err
			}
			if dryRun {
				return o.sayClean(root)
			}
			output := filepath.Join(root, plan.Output)
			if _, err := os.Stat(output); os.IsNotExist(err) {
				return o.cleanEngine(c.Context(), root, false)
			}
			view := o.view(nil)
			defer view.Close()
			// A run that is on its way in this tree is waited for.
			return action.Locked(c.Context(), root, plan.State, view.Event, func() error {
				return o.clean(c.Context(), root, output)
			})
		},
	}
	c.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "print what would be removed; do nothing")
	return c
}

// sayClean says what clean would remove, as far as the tree knows: nobody asks the container engine.
func (o *options) sayClean(root string) error {
	names, err := cluster.Names(filepath.Join(root, filepath.FromSlash(clusters)))
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Fprintln(o.Out, "remove cluster", name)
	}
	if bazel.Used(root) {
		fmt.Fprintln(o.Out, "remove what Bazel has made for the tree")
	}
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
		return err == nil
	}
	if there(plan.EngineUsed) {
		fmt.Fprintln(o.Out, "remove what the tree has in the container engine")
	}
	if there(plan.Output) {
		fmt.Fprintln(o.Out, "remove", plan.Output)
	}
	return nil
}

// clean removes what is here whether or not the engine can be asked. If it could not, a file stays that says so.
func (o *options) clean(ctx context.Context, root, output string) error {
	mark := filepath.Join(root, filepath.FromSlash(plan.EngineUsed))
	_, never := os.Stat(mark)
	if err := o.cleanClusters(ctx, root); err != nil {
		return err
	}
	if err := bazel.Clean(ctx, root); err != nil {
		return err
	}
	err := o.cleanEngine(ctx, root, never == nil)
	if removed := os.RemoveAll(output); removed != nil || err == nil {
		return errors.Join(err, removed)
	}
	if made := os.MkdirAll(filepath.Dir(mark), 0o777); made != nil {
		return errors.Join(err, made)
	}
	return errors.Join(err, os.WriteFile(mark, nil, 0o666))
}

// cleanEngine removes what the tree has in an engine. A tree of which nothing says that it used one may have been used before
// its _output was removed: that is worth a try, and no error.
func (o *options) cleanEngine(ctx context.Context, root string, used bool) error {
	if !used {
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		e, err := engine.Connect(short)
		if err != nil {
			return nil
		}
		e.Close()
	}
	removed, err := container.Clean(ctx, root)
	for _, name := range removed {
		fmt.Fprintln(o.Out, "removed", name)
	}
	if err != nil {
		return fmt.Errorf("what the tree has in a container engine is still there: %w", err)
	}
	return nil
}
