package generate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

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
