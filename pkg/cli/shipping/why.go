package shipping

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/target"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/why"
)

func newWhy(o commands) *cobra.Command {
	var folder string
	c := &cobra.Command{
		Use:   "why artifact|module [file]",
		Short: "Say where a file, an artifact or a module of a release comes from",
		Long: `why answers for any part of a release: an artifact by its name in release.json or the end of that, a file in a tarball or in an
image, or a Go module by its path.

Of an artifact or a file, it names the action that made it, the sources, modules, patches, flags and Debian packages that it was made of,
and where else it stands. Of a module, it names the binaries that link it, each with the shortest chain of imports that leads to it.
The imports are known in the tree that made the release; everything else is read from the release's folder.`,
		Example: "  slipway why kubernetes-server-linux-amd64.tar.gz kubernetes/server/bin/kubelet\n" +
			"  slipway why kube-proxy.tar usr/sbin/xtables-nft-multi\n  slipway why golang.org/x/net",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			var named []string
			if folder != "" {
				named = []string{folder}
			}
			dir, err := o.releaseFolder(named)
			if err != nil {
				return err
			}
			r, err := release.Read(dir)
			if err != nil {
				return noRelease(err, dir, folder == "")
			}
			if len(args) == 1 && hasModule(r, args[0]) {
				answer, err := why.Module(r, args[0], o.packageLists())
				if err != nil {
					return err
				}
				return o.Answer(answer, answer.Text)
			}
			member := ""
			if len(args) == 2 {
				member = args[1]
			}
			answer, err := why.File(c.Context(), dir, r, args[0], member)
			if err != nil {
				return err
			}
			return o.Answer(answer, answer.Text)
		},
	}
	c.Flags().StringVar(&folder, "release", "", "the `folder` of the release (default the tree's _output/release-tars)")
	return c
}

// hasModule reports whether a name is that of a module, and of no artifact.
func hasModule(r *release.Release, name string) bool {
	if _, ok := r.Artifact(name); ok {
		return false
	}
	path, _, _ := strings.Cut(name, "@")
	for _, in := range r.Inputs {
		replaced, _, _ := strings.Cut(in.Replaces, "@")
		if in.Kind == release.Module && (in.Name == path || replaced == path) {
			return true
		}
	}
	return false
}

// packageLists finds the lists of packages that the tree's last release was compiled of. Outside of a tree there are none.
func (o commands) packageLists() why.Lists {
	root, err := project.FindRoot(o.Dir)
	if err != nil {
		return nil
	}
	return func(on platform.Platform) (files []io.ReadCloser, err error) {
		names, err := fs.Glob(os.DirFS(root), target.PackageLists(on))
		for _, name := range names {
			f, openErr := os.Open(filepath.Join(root, filepath.FromSlash(name)))
			if err = errors.Join(err, openErr); openErr == nil {
				files = append(files, f)
			}
		}
		return files, err
	}
}
