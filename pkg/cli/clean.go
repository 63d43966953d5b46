package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/clusters"
	"slipway.build/pkg/cli/maintaining"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/maintain/lines"
	"slipway.build/pkg/maintain/patching"
	"slipway.build/pkg/make/bazel"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/road/container"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/prove/cluster"
)

func newClean(o commands) *cobra.Command {
	var dryRun, engine, force bool
	c := &cobra.Command{
		Use:   "clean",
		Short: "Remove everything that was made",
		Long: `clean removes _output: what was built, and the records and caches that let builds skip work. It first removes clusters that
are up, what Bazel made for the tree (its server stops), and what the tree has in a container engine: containers, volumes
(with the Go caches of the container road) and images. The Go caches of this machine, and a root with Bazel in the user's
cache folder, stay.

clean contacts a container engine only if the tree used one, according to a file in _output. If _output was removed by
other means, --engine contacts the engine of DOCKER_HOST all the same.

If "slipway patch edit" has laid out a copy there, and work in it is in no patch, clean removes nothing, unless --force is given. So
it is with changes in the work trees of lines, and with commits there that are on no branch.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			root, err := project.FindRoot(o.Dir)
			if err != nil {
				return err
			}
			engine = engine || exists(root, project.EngineUsed)
			if dryRun {
				return o.sayClean(c.Context(), root, engine, force)
			}
			if !exists(root, project.Output) {
				if engine {
					return o.cleanEngine(c.Context(), root)
				}
				return nil
			}
			if !force {
				if err := o.unsavedWork(c.Context(), root); err != nil {
					return err
				}
			}
			view := o.View(nil)
			defer view.Close()
			// Another run in this tree may be the first to use an engine. Wait for it before asking again.
			return action.Locked(c.Context(), root, project.State, view.Event, func() error {
				return o.clean(c.Context(), root, engine || exists(root, project.EngineUsed))
			})
		},
	}
	c.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "print what would be removed; do nothing")
	c.Flags().BoolVar(&engine, "engine", false, "always look for the tree's containers, volumes and images in a container engine")
	c.Flags().BoolVar(&force, "force", false, "also remove what is in a copy to edit patches and in no patch, and what is not committed "+
		"in lines, or on no branch")
	return c
}

// exists reports whether the tree has a file or folder of that name.
func exists(root, name string) bool {
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
	return err == nil
}

// unsavedWork returns an error for each copy with work that is in no patch, and for each work tree of a line with changes that are not
// committed or commits that are on no branch, and says how to save it.
func (o commands) unsavedWork(ctx context.Context, root string) error {
	var unsaved []error
	unfinished, err := lines.Unfinished(ctx, root, o.Getenv)
	if err != nil {
		return err
	}
	for _, u := range unfinished {
		save := "commit them"
		if u.Commits() {
			save = "git -C " + session.Quote(u.Dir) + " branch NAME keeps them"
		}
		unsaved = append(unsaved, fmt.Errorf("%s: %w: %s, or throw them away with slipway clean --force", u.Dir, u, save))
	}
	trees, err := lines.Folders(root)
	if err != nil {
		return err
	}
	for _, tree := range append([]string{root}, trees...) {
		work, err := patching.UnsavedWork(ctx, tree)
		if err != nil {
			return err
		}
		for _, w := range work {
			unsaved = append(unsaved, fmt.Errorf("%w: save it with %s, or throw it away with slipway clean --force", w,
				maintaining.PatchCommand("save", w.Project)))
		}
	}
	return errors.Join(unsaved...)
}

// sayClean prints what clean would remove, or why it would stop. It contacts no container engine.
func (o commands) sayClean(ctx context.Context, root string, engine, force bool) error {
	if !force {
		if err := o.unsavedWork(ctx, root); err != nil {
			_, err = fmt.Fprintln(o.Out, "would stop:", err)
			return err
		}
	}
	names, err := cluster.Names(filepath.Join(root, filepath.FromSlash(clusters.Folder)))
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Fprintln(o.Out, "remove cluster", name)
	}
	if bazel.Used(root) {
		fmt.Fprintln(o.Out, "remove what Bazel has made for the tree")
	}
	if engine {
		fmt.Fprintln(o.Out, "remove what the tree has in the container engine")
	}
	if exists(root, project.Output) {
		fmt.Fprintln(o.Out, "remove", project.Output)
	}
	return nil
}

// clean removes what was made. If the engine fails, the rest is removed, and EngineUsed stays for the next clean.
func (o commands) clean(ctx context.Context, root string, engine bool) error {
	if err := clusters.Clean(ctx, o.Session); err != nil {
		return err
	}
	if err := bazel.Clean(ctx, root); err != nil {
		return err
	}
	var err error
	if engine {
		err = o.cleanEngine(ctx, root)
	}
	if removed := os.RemoveAll(filepath.Join(root, project.Output)); removed != nil || err == nil {
		return errors.Join(err, removed)
	}
	mark := filepath.Join(root, filepath.FromSlash(project.EngineUsed))
	if made := os.MkdirAll(filepath.Dir(mark), 0o777); made != nil {
		return errors.Join(err, made)
	}
	return errors.Join(err, os.WriteFile(mark, nil, 0o666))
}

// cleanEngine removes what the tree has in a container engine, and prints the names.
func (o commands) cleanEngine(ctx context.Context, root string) error {
	removed, err := container.Clean(ctx, root)
	for _, name := range removed {
		fmt.Fprintln(o.Out, "removed", name)
	}
	if err != nil {
		return fmt.Errorf("the tree's containers, volumes and images are still in the container engine: %w", err)
	}
	return nil
}
