package license

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// A copied file goes from a path of the machine to a slash-separated one in the folder.
type copied struct{ from, to string }

func lay(ctx context.Context, dir string, copies []copied, index []byte) error {
	if old, err := os.ReadDir(dir); err == nil && len(old) > 0 {
		return fmt.Errorf("license %s: folder is not empty", dir)
	}
	for _, c := range copies {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := os.ReadFile(c.from)
		if err != nil {
			return fmt.Errorf("license: %w", err)
		}
		if err := put(filepath.Join(dir, filepath.FromSlash(c.to)), text); err != nil {
			return fmt.Errorf("license: %w", err)
		}
	}
	if err := put(filepath.Join(dir, indexFile), index); err != nil {
		return fmt.Errorf("license: %w", err)
	}
	return nil
}

// put writes a new file. It fails on one that is there: on a file system that ignores case, two modules'
// files could otherwise become one.
func put(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		f.Close()
		return err
	}
	// The umask must not decide who can read a license.
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
