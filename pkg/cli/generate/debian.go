package generate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/maintain/bump"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/tree/catalog"
)

// DebianLocks writes a debian.lock beside every images/NAME/packages.txt, for the platforms of the server set. Unlike all other
// generated files, a lock depends on what Debian's archives have today.
func DebianLocks(ctx context.Context, root string, from debian.Sources, w io.Writer) error {
	c, err := catalog.Load(root)
	if err != nil {
		return err
	}
	locks, err := bump.ResolveDebian(ctx, root, c, from)
	if err != nil {
		return err
	}
	for _, l := range locks {
		if err := writeLock(filepath.Join(root, filepath.FromSlash(l.File)), l.Lock, w); err != nil {
			return err
		}
	}
	return nil
}

// checkLocks says which images/NAME/debian.lock lacks packages that packages.txt names, for a platform of the server set.
func checkLocks(root string) (problem string, err error) {
	c, err := catalog.Load(root)
	if err != nil {
		return "", err
	}
	requests, err := fs.Glob(os.DirFS(root), "images/*/packages.txt")
	if err != nil {
		return "", err
	}
	var problems []string
	for _, name := range requests {
		file := filepath.Join(root, filepath.FromSlash(name))
		dir := filepath.Base(filepath.Dir(file))
		if !slices.ContainsFunc(c.Images, func(im catalog.Image) bool { return im.Base == dir }) {
			continue // no image of the release has it
		}
		request, err := debian.ReadRequest(file)
		if err != nil {
			return "", err
		}
		lock, err := debian.ReadLock(filepath.Join(filepath.Dir(file), debian.LockFile))
		if err != nil {
			return "", err
		}
		if lock.Suite != request.Suite {
			problems = append(problems, fmt.Sprintf("images/%s/%s is of %s, and packages.txt of %s",
				dir, debian.LockFile, lock.Suite, request.Suite))
		}
		for _, on := range c.Sets[catalog.Server] {
			for _, name := range request.Packages {
				if !slices.ContainsFunc(lock.For(on.Arch), func(p debian.Package) bool { return p.Name == name }) {
					problems = append(problems, fmt.Sprintf("images/%s/%s lacks %s for %s", dir, debian.LockFile, name, on))
				}
			}
		}
	}
	if len(problems) > 0 {
		problems = append(problems, "run make update-debian-locks")
	}
	return strings.Join(problems, "\n"), nil
}

func writeLock(file string, lock *debian.Lock, w io.Writer) error {
	if old, err := debian.ReadLock(file); err == nil && old.Suite == lock.Suite && slices.Equal(old.Packages, lock.Packages) {
		lock.Time = old.Time // nothing else changed
	}
	data := lock.Marshal("`make update-debian-locks`")
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, data) {
		_, err := fmt.Fprintf(w, "%s: unchanged, %d packages\n", file, len(lock.Packages))
		return err
	}
	if err := atomicfile.WriteFile(file, data, 0o644); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s: %d packages\n", file, len(lock.Packages))
	return err
}
