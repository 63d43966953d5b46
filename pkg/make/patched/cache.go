package patched

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
)

// codeDir returns the folder of a version's code in the module cache.
func (w *work) codeDir(v module.Version) (string, error) {
	cached, err := v.CachePath()
	return filepath.Join(w.g.ModCache, filepath.FromSlash(cached)), err
}

// stage writes the code of a patched version to a temporary folder of the module cache, which the caller removes with removeStaged. Files
// that did not change become hard links to those of the original: copying, hashing and unpacking all of Kubernetes takes the go command
// longer than compiling what a patch changes. It returns "" if the module cache has the version.
func (w *work) stage(b *base, v module.Version, changes map[string]patch.Change) (tmp string, err error) {
	dir, err := w.codeDir(v)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); err == nil {
		return "", nil
	}
	cache := filepath.Join(w.g.ModCache, "cache")
	removeAbandoned(cache, time.Now())
	tmp, err = os.MkdirTemp(cache, "slipway-")
	if err != nil {
		return "", err
	}
	return tmp, linkTree(b.Dir, filepath.Join(tmp, codeName), changes)
}

// removeAbandoned removes what runs that were killed have left in a folder, if it can.
func removeAbandoned(cache string, now time.Time) {
	left, _ := filepath.Glob(filepath.Join(cache, "slipway-*"))
	for _, tmp := range left {
		if info, err := os.Stat(tmp); err == nil && now.Sub(info.ModTime()) > 24*time.Hour {
			_ = removeStaged(tmp)
		}
	}
}

// codeName is the name of the code in a staging folder.
const codeName = "code"

// removeStaged removes a staging folder, with the code if it is still there.
func removeStaged(tmp string) error {
	if tmp == "" {
		return nil
	}
	return errors.Join(writable(tmp), os.RemoveAll(tmp))
}

// install puts a patched module into the module cache, as `go mod download` would: its files from a proxy, and the staged code. Bazel
// gets modules from nowhere else.
func (w *work) install(b *base, m *Module, staged, proxy string) error {
	at, err := m.Patched.ProxyPath()
	if err != nil {
		return err
	}
	downloads := filepath.Join(w.g.ModCache, "cache", "download", filepath.FromSlash(at))
	if err := os.MkdirAll(filepath.Dir(downloads), 0o777); err != nil {
		return err
	}
	// The order is the go command's: what describes the module, its zip, the sum of the zip, and at last the code.
	for _, suffix := range []string{".info", ".mod", ".zip"} {
		if err := linkOrCopy(filepath.Join(proxy, filepath.FromSlash(at)+suffix), downloads+suffix); err != nil {
			return err
		}
	}
	if err := atomicfile.WriteFile(downloads+".ziphash", []byte(m.Sum), 0o644); err != nil || staged == "" {
		return err
	}
	dir, err := w.codeDir(m.Patched)
	if err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(staged, codeName), dir); err != nil {
		if _, there := os.Stat(dir); there == nil { // another tree with the same patches was faster
			return nil
		}
		return err
	}
	original, err := os.Stat(b.Dir)
	if err != nil {
		return err
	}
	return os.Chmod(dir, original.Mode().Perm()) // not before: a folder that is not writable cannot be renamed into another
}

// linkOrCopy links or copies a file, unless there is one already.
func linkOrCopy(from, to string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	if os.Link(from, to) == nil {
		return nil
	}
	return atomicfile.Copy(from, to)
}

// linkTree fills a folder with links to the files of a read-only one, and with changes. The folders in it get the mode of the original; the
// folder itself stays writable.
func linkTree(from, to string, changes map[string]patch.Change) error {
	err := fs.WalkDir(os.DirFS(from), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		old, path := filepath.Join(from, filepath.FromSlash(name)), filepath.Join(to, filepath.FromSlash(name))
		if e.IsDir() {
			return os.Mkdir(path, 0o777)
		}
		if _, changed := changes[name]; changed {
			return nil
		}
		return linkOrCopy(old, path)
	})
	if err != nil {
		return err
	}
	for name, c := range changes {
		if c.Removed {
			continue
		}
		path := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, c.Data, 0o444); err != nil {
			return err
		}
	}
	original, err := os.Stat(from)
	if err != nil {
		return err
	}
	return filepath.WalkDir(to, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || path == to {
			return err
		}
		return os.Chmod(path, original.Mode().Perm())
	})
}

// writable makes the folders below a folder such that they can be removed.
func writable(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(path, 0o777)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}
