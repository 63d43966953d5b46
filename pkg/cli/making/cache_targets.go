package making

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/reapi"
	"slipway.build/pkg/tree/folder"
	"slipway.build/pkg/tree/module"
)

func newCacheTargets(o commands) *cobra.Command {
	var flags cacheFlags
	c := &cobra.Command{
		Use:   "targets",
		Short: "Fetch the compiled targets of make",
		Long: `targets fetches the program with the targets of make, if the cache has it for this tree's sources. Where slipway is installed,
make runs this before it compiles the program, so that a fresh clone may not need Go.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := o.Load()
			if err != nil {
				return err
			}
			use, err := o.openCache(c.Context(), flags, p)
			if err != nil {
				return err
			}
			if use == nil {
				return errNoCache
			}
			defer use.close()
			use.notify = func(text string) { fmt.Fprintln(o.Err, text) }
			if err := use.fetchTargets(c.Context(), p.Root); err != nil {
				return err
			}
			_, err = fmt.Fprintln(o.Out, project.TargetsProgram)
			return err
		},
	}
	addCacheURL(o, c, &flags.url)
	return c
}

// targetsKey returns the key of the program with the targets of make: a digest of its sources without tests, or of the go.mod that names
// their version, and of build/targets.mk, which names the Go that compiles it. Newest is when the last of these files was changed.
func targetsKey(root string) (key string, newest time.Time, err error) {
	parts := []string{"targets of make 1", runtime.GOOS, runtime.GOARCH}
	add := func(name string) error {
		st, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			return err
		}
		if st.ModTime().After(newest) {
			newest = st.ModTime()
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		parts = append(parts, filepath.ToSlash(name), reapi.DigestOf(data).SHA256)
		return err
	}
	for _, name := range []string{"go.mod", "go.sum", "Makefile", "build/targets.mk", "build/slipway.mk"} {
		if err := add(name); err != nil {
			return "", newest, err
		}
	}
	folders := []string{"magefiles"}
	if _, err := os.Stat(filepath.Join(root, "pkg", "cli")); err == nil { // slipway's own repository
		folders = append(folders, "pkg")
	} else if own, err := module.Load(root, "."); err != nil {
		return "", newest, err
	} else if of := own.Folders(); len(of) > 0 {
		return "", newest, fmt.Errorf("go.mod replaces a module by the folder %s, so no cache has what is compiled of it", of[0])
	}
	for _, dir := range folders {
		err := filepath.WalkDir(filepath.Join(root, dir), func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return filepath.SkipDir
			case d.IsDir(), strings.HasSuffix(name, "_test.go"), folder.Leaving(name):
				return nil
			}
			rel, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			return add(rel)
		})
		if err != nil {
			return "", newest, err
		}
	}
	return action.BlobKey(parts...), newest, nil
}

// targetsFile is the program's name in the cache.
const targetsFile = "mage"

// fetchTargets fetches the program with the targets of make.
func (u *cacheUse) fetchTargets(ctx context.Context, root string) (err error) {
	key, _, err := targetsKey(root)
	if err != nil {
		return err
	}
	state := filepath.Join(root, project.State)
	if err := os.MkdirAll(state, 0o777); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(state, "targets")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	found, err := action.FetchFiles(ctx, u.Cache, key, dir, targetsFile)
	if err == nil && !found {
		err = errors.New("the cache has no compiled targets of make for these sources")
	}
	if err != nil {
		return err
	}
	name := filepath.Join(dir, targetsFile)
	if err := os.Chmod(name, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, project.TargetsFetched), nil, 0o666); err != nil {
		return err
	}
	return os.Rename(name, filepath.Join(root, project.TargetsProgram))
}

// keepTargets stores this program, if it is the one with the targets of make and was compiled here.
func (u *cacheUse) keepTargets(ctx context.Context, root string) error {
	if u == nil || !u.Stores() {
		return nil
	}
	if runs, program := project.Targets(root); !runs || !program.MadeHere() {
		return nil
	}
	name := filepath.Join(root, project.TargetsProgram)
	st, err := os.Stat(name)
	if err != nil {
		return err
	}
	key, newest, err := targetsKey(root)
	if err != nil || newest.After(st.ModTime()) { // sources newer than the program did not make it
		return err
	}
	return action.StoreFiles(ctx, u.Cache, key, map[string]string{targetsFile: name})
}
