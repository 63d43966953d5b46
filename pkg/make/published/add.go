package published

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"

	"slipway.build/pkg/mechanism/atomicfile"
)

// Add adds the modules in the folder of an [Action] to a module proxy's folder, and returns the file there that has their sums. Versions
// that are there already stay. If one of them has other contents, the error is a *[ChangedError], and nothing is added. Only one Add may
// write to a folder at a time.
func Add(from, to string) (sums string, err error) {
	var files []string // the one with the sums is the last
	err = filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err = filepath.Rel(from, name)
		files = append(files, name)
		return err
	})
	if err != nil {
		return "", err
	}
	var missing []string
	for _, name := range files {
		same, err := same(filepath.Join(from, name), filepath.Join(to, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
		case err != nil:
			return "", err
		case !same:
			return "", &ChangedError{filepath.Join(to, name)}
		}
	}
	for _, name := range files {
		dir := filepath.Dir(filepath.Join(to, name))
		if err := errors.Join(os.MkdirAll(dir, 0o755), atomicfile.Sweep(dir)); err != nil {
			return "", err
		}
	}
	for _, name := range missing {
		if err := atomicfile.Copy(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return "", err
		}
	}
	for _, name := range files {
		if filepath.Ext(name) == ".zip" {
			if err := writeList(filepath.Dir(filepath.Join(to, name))); err != nil {
				return "", err
			}
		}
	}
	return filepath.Join(to, files[len(files)-1]), nil
}

// A ChangedError says that a version is published with other contents.
type ChangedError struct{ File string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s is published with other contents, and a published version never changes", e.File)
}

// same reports whether a published file has the content of another. Zip files may be compressed differently.
func same(file, published string) (bool, error) {
	if filepath.Ext(file) == ".zip" {
		a, err1 := dirhash.HashZip(file, dirhash.Hash1)
		b, err2 := dirhash.HashZip(published, dirhash.Hash1)
		return a == b, errors.Join(err1, err2)
	}
	a, err1 := os.ReadFile(file)
	b, err2 := os.ReadFile(published)
	return bytes.Equal(a, b), errors.Join(err1, err2)
}

// writeList writes the list of a module's versions.
func writeList(dir string) error {
	zips, err := filepath.Glob(filepath.Join(dir, "*.zip"))
	if err != nil {
		return err
	}
	var versions []string
	for _, name := range zips {
		versions = append(versions, strings.TrimSuffix(filepath.Base(name), ".zip"))
	}
	semver.Sort(versions)
	return atomicfile.WriteFile(filepath.Join(dir, "list"), []byte(strings.Join(versions, "\n")+"\n"), 0o644)
}
