// Package atomicfile writes files that have their names only when they are whole.
//
// A file is written under a temporary name on the same file system and then renamed, so a reader sees the old content or
// the new one, even if the writer fails or is killed. A temporary file that a killed writer leaves behind has the name
// ".NAME.RANDOM.tmp".
//
// Nothing is synced to the disk: after a power failure a file may be empty. Its reader must notice, or it must be cheap to
// make again.
//
// What must never be in here: folders, and what the files hold.
package atomicfile

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// Write creates or replaces the named file with what fill writes. The file has exactly the permissions perm, whatever the
// umask is. If fill fails, the file stays as it was.
func Write(name string, perm fs.FileMode, fill func(io.Writer) error) error {
	return WriteVia(filepath.Dir(name), name, perm, fill)
}

// WriteVia does the same as Write with a temporary file in another folder, which must be on the same file system.
func WriteVia(dir, name string, perm fs.FileMode, fill func(io.Writer) error) error {
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	err = fill(tmp)
	if err == nil {
		err = tmp.Chmod(perm)
	}
	err = cmp.Or(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// WriteFile creates or replaces the named file with data, as Write does.
func WriteFile(name string, data []byte, perm fs.FileMode) error {
	return Write(name, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Copy makes the file to a copy of the file from, with its permissions.
func Copy(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	return Write(to, info.Mode().Perm(), func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}

var temporary = regexp.MustCompile(`^\..+\.[0-9]+\.tmp$`)

// Sweep removes the temporary files that killed writers have left in a folder, which need not exist. Nobody must be writing there.
func Sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if temporary.MatchString(e.Name()) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
