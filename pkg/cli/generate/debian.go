package generate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/tree/catalog"
)

// DebianLocks writes a debian.lock beside every images/NAME/packages.txt, for the platforms of the server set. Unlike all other
// generated files, a lock depends on what a mirror has today.
func DebianLocks(ctx context.Context, root, mirror string, w io.Writer) error {
	c, err := catalog.Load(root)
	if err != nil {
		return err
	}
	var archs []string
	for _, p := range c.Sets[catalog.Server] {
		archs = append(archs, p.Arch)
	}
	done := map[string]bool{}
	for _, im := range c.Images {
		dir := filepath.Join(root, "images", im.Base)
		if done[im.Base] {
			continue
		}
		done[im.Base] = true
		wish, err := debian.ReadWish(filepath.Join(dir, "packages.txt"))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		lock, err := wish.Resolve(ctx, mirror, archs, func(text string) { fmt.Fprintln(w, text) })
		if err != nil {
			return fmt.Errorf("images/%s: %w", im.Base, err)
		}
		if err := writeLock(filepath.Join(dir, "debian.lock"), lock, w); err != nil {
			return err
		}
	}
	return nil
}

func writeLock(file string, lock *debian.Lock, w io.Writer) error {
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
