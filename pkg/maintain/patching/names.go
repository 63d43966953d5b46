package patching

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"slipway.build/pkg/mechanism/atomicdir"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/tree/patch"
)

// name names the files of new commits. Patches apply in the order of their names, so if there is no name between two files, all get new
// numbers.
func name(files []file) {
	last, lastIsNew := "", false
	for i := range files {
		f := &files[i]
		isNew := f.name == ""
		if isNew {
			f.name = numbered(leading(last)+1, f.title)
		}
		if f.name <= last || lastIsNew && leading(f.name) == leading(last) {
			renumber(files)
			return
		}
		last, lastIsNew = f.name, isNew
	}
}

// renumber numbers all files.
func renumber(files []file) {
	for i := range files {
		f := &files[i]
		title := f.title
		if f.was != "" {
			title = strings.TrimSuffix(number.ReplaceAllString(f.was, ""), patch.Suffix)
		}
		f.name = numbered(i+1, title)
	}
}

// leading returns the number that a file's name begins with, or 0.
func leading(name string) int {
	n, err := strconv.Atoi(strings.TrimRight(number.FindString(name), "-_"))
	if err != nil {
		return 0
	}
	return n
}

var unsafe = regexp.MustCompile(`[^A-Za-z0-9._]+`)

// numbered returns the name that git format-patch gives a file.
func numbered(n int, title string) string {
	const longest = 52 // as git's
	title = strings.Trim(unsafe.ReplaceAllString(title, "-"), "-.")
	if len(title) > longest {
		title = strings.TrimRight(title[:longest], "-.")
	}
	if title == "" {
		title = "patch"
	}
	return fmt.Sprintf("%04d-%s%s", n, title, patch.Suffix)
}

// readPatches reads the files in a folder of patches, by base name.
func readPatches(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if e.IsDir() || !patch.Is(e.Name()) {
			continue
		}
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// write replaces the patches of a folder in one step, and keeps the other files.
func (w *Workspace) write(folder string, patches map[string][]byte) error {
	dir := w.abs(folder)
	err := replace(w.abs("_output/.slipway/tmp"), dir, patches) // git ignores what a killed run leaves there
	if errors.Is(err, syscall.EXDEV) {                          // _output is on another file system
		return replace(filepath.Dir(dir), dir, patches)
	}
	return err
}

// replace prepares the new folder in a staging folder on the same file system.
func replace(staging, dir string, patches map[string][]byte) error {
	for _, parent := range []string{staging, filepath.Dir(dir)} {
		if err := os.MkdirAll(parent, 0o777); err != nil {
			return err
		}
	}
	tmp, err := os.MkdirTemp(staging, ".patches-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	next := filepath.Join(tmp, "patches")
	if err := os.Mkdir(next, 0o777); err != nil {
		return err
	}
	if err := copyRest(dir, next); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(patches)) {
		if err := os.WriteFile(filepath.Join(next, name), patches[name], 0o666); err != nil {
			return err
		}
	}
	return atomicdir.Replace(next, dir)
}

// copyRest copies everything but patches.
func copyRest(from, to string) error {
	err := filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil || rel == "." || filepath.Dir(rel) == "." && !e.IsDir() && patch.Is(rel) {
			return err
		}
		target := filepath.Join(to, rel)
		switch e.Type() {
		case fs.ModeDir:
			return os.MkdirAll(target, 0o777)
		case fs.ModeSymlink:
			link, err := os.Readlink(name)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		}
		return atomicfile.Copy(name, target)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
