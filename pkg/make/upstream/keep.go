package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"slipway.build/pkg/mechanism/atomicfile"
)

// A Change says how a copy that is kept differs from the modules. The zero value is no difference.
type Change struct {
	Key  string                                                          // of everything that decides what Make returns
	Make func(ctx context.Context, root string) (map[string]File, error) // by path; root is an unchanged copy
}

// A File is a file that differs.
type File struct {
	Data    []byte
	Exec    bool // it is executable, which the one in the module may not be
	Removed bool
}

// A record says what a kept copy is. It is a file beside the copy.
type record struct {
	Modules string   // the repository's key
	Change  string   // the change's key, or changing
	Files   []string // that the change wrote or removed: the others are the modules'
}

// changing is a key of no change: its files may be half-written.
const changing = "changing"

// Keep returns dir with a copy of the repository in it, changed by change. If there is one of the same modules with another change, only
// the files that differ are written. If Make fails, the copy is unchanged. It must not be in use: the caller holds a lock.
//
// The users of the copy may write to it, as some tests do. Keep does not see that.
func (r *Repository) Keep(ctx context.Context, dir string, change Change) (string, error) {
	k := kept{r, dir}
	has, err := k.read()
	if err != nil {
		return "", err
	}
	fits := has.Modules == r.Key() && exists(dir)
	if fits && has.Change == change.Key {
		return dir, nil
	}
	if !fits || k.restore(has.Files) != nil {
		if err := k.copy(ctx); err != nil {
			return "", err
		}
	}
	if change.Make == nil {
		return dir, nil
	}
	files, err := change.Make(ctx, dir)
	if err != nil {
		return "", err
	}
	names := slices.Sorted(maps.Keys(files))
	if err := k.write(record{r.Key(), changing, names}); err != nil {
		return "", err
	}
	for _, name := range names {
		if err := k.put(name, files[name]); err != nil {
			return "", err
		}
	}
	return dir, k.write(record{r.Key(), change.Key, names})
}

// A kept copy is in a folder, with its record beside it.
type kept struct {
	*Repository
	dir string
}

func (k kept) file(name string) string { return filepath.Join(k.dir, filepath.FromSlash(name)) }

// read returns the record, an empty one if there is none that it can read.
func (k kept) read() (has record, err error) {
	data, err := os.ReadFile(k.dir + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return has, nil
	}
	if json.Unmarshal(data, &has) != nil {
		has = record{}
	}
	return has, err
}

func (k kept) write(is record) error {
	data, err := json.Marshal(is)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(k.dir+".json", data, 0o666)
}

// copy makes an unchanged copy. Without a record, a folder counts as not there, so a kill at any of these steps is harmless.
func (k kept) copy(ctx context.Context) error {
	tmp := k.dir + ".tmp" // one name, so that what a killed run leaves is removed by the next one
	if err := errors.Join(os.RemoveAll(k.dir+".json"), os.RemoveAll(tmp), os.MkdirAll(filepath.Dir(tmp), 0o777)); err != nil {
		return err
	}
	if err := k.Copy(ctx, tmp); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	if err := os.RemoveAll(k.dir); err != nil {
		return err
	}
	if err := os.Rename(tmp, k.dir); err != nil {
		return err
	}
	return k.write(record{Modules: k.Key()})
}

// restore makes files what they are in the modules.
func (k kept) restore(names []string) error {
	for _, name := range names {
		if err := os.Remove(k.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		m, rest, ok := k.Find(name)
		if !ok {
			continue
		}
		err := copyFile(filepath.Join(m.Source, filepath.FromSlash(rest)), k.file(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := k.leaveOutMissing(k.dir); err != nil {
		return err
	}
	return k.write(record{Modules: k.Key()})
}

// put writes or removes a file.
func (k kept) put(name string, f File) error {
	file := k.file(name)
	if f.Removed {
		if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	perm := fs.FileMode(0o644)
	if info, err := os.Stat(file); err == nil {
		perm = info.Mode().Perm()
	}
	if f.Exec {
		perm |= 0o111
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	return atomicfile.WriteFile(file, f.Data, perm)
}
