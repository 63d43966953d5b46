package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A surveyed folder contains all listed files.
type surveyed struct {
	listed   map[string]bool // true for files, false for the folders that they are in
	count    int             // of the files
	unlisted []string        // other files and links, and folders without listed files
}

// survey looks for the named files in dir. It does not read folders without any, so a large _output or .git costs nothing. It
// refuses to send anything but files and symbolic links, links that lead out of dir, and files below a link.
func survey(ctx context.Context, dir string, names []string) (*surveyed, error) {
	listed := make(map[string]bool, len(names)+len(names)/4)
	w := walk{ctx: ctx, dir: dir, links: links{}, surveyed: &surveyed{listed: listed}}
	for _, name := range names {
		if err := checkName(name); err != nil {
			return nil, err
		}
		if name == "." {
			return nil, errors.New("the name . is a folder's, not a file's")
		}
		w.listed[name] = true
	}
	w.count = len(w.listed)
	for _, name := range names {
		for above := path.Dir(name); above != "."; above = path.Dir(above) {
			file, seen := w.listed[above]
			if file {
				return nil, w.below(name, above)
			}
			if seen {
				break
			}
			w.listed[above] = false
		}
	}
	if err := w.read("."); err != nil {
		return nil, err
	}
	if w.found < w.count {
		return nil, w.missing()
	}
	for _, name := range slices.Sorted(maps.Keys(w.links)) {
		if w.links.leaveTree(name) {
			return nil, fmt.Errorf("%s: the symbolic link points outside the tree, to %s: nothing was sent", name, w.links[name])
		}
	}
	return w.surveyed, nil
}

// A walk reads the folders in which files are listed.
type walk struct {
	*surveyed
	ctx   context.Context
	dir   string
	links links
	found int
}

func (w *walk) read(folder string) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	entries, err := os.ReadDir(w.path(folder))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(folder, e.Name())
		file, listed := w.listed[name]
		switch {
		case !listed:
			w.unlisted = append(w.unlisted, name)
		case file:
			if err := w.file(name, e.Type()); err != nil {
				return err
			}
		case e.IsDir():
			if err := w.read(name); err != nil {
				return err
			}
		default: // missing reports it
			w.unlisted = append(w.unlisted, name)
		}
	}
	return nil
}

func (w *walk) file(name string, kind fs.FileMode) error {
	w.found++
	switch {
	case kind.IsRegular():
		return nil
	case kind&fs.ModeSymlink != 0:
		target, err := os.Readlink(w.path(name))
		w.links[name] = target
		return err
	case kind.IsDir():
		return fmt.Errorf("%s: is a folder, and only files can be listed", name)
	}
	return fmt.Errorf("%s: is neither a file nor a symbolic link", name)
}

// missing returns an error that names a listed file that was not found.
func (w *walk) missing() error {
	var first string
	for name, file := range w.listed {
		if _, err := os.Lstat(w.path(name)); file && (err != nil || w.above(name) != "") && (first == "" || name < first) {
			first = name
		}
	}
	if above := w.above(first); above != "" {
		return w.below(first, above)
	}
	_, err := os.Lstat(w.path(first))
	if err == nil {
		return fmt.Errorf("%s changed meanwhile: run it again", w.dir)
	}
	return err
}

// above finds a parent of name that is not a folder.
func (w *walk) above(name string) string {
	found := ""
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		if info, err := os.Lstat(w.path(above)); err == nil && !info.IsDir() {
			found = above
		}
	}
	return found
}

func (w *walk) below(name, above string) error {
	if info, err := os.Lstat(w.path(above)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s: lies below the symbolic link %s, and not in the tree itself", name, above)
	}
	return fmt.Errorf("%s: lies below %s, which is a file", name, above)
}

func (w *walk) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// checkName refuses names that do not name something below a folder, or that are not in canonical form.
func checkName(name string) error {
	if strings.ContainsRune(name, 0) || !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name {
		return fmt.Errorf("%q: is not a clean path below the folder", name)
	}
	return nil
}

// links returns the targets of the listed symbolic links, by name.
type links map[string]string

// leaveTree reports whether following a link leads out of the tree at any step. It follows names as the kernel does: a target that
// stays inside as text may still lead out through other links (a/b/.. is not a if b is a link).
func (l links) leaveTree(name string) bool {
	// More steps than any kernel takes for all links of a path. A link in a cycle leads nowhere.
	_, out := l.follow(path.Dir(name), l[name], new(40))
	return out
}

// follow goes from a folder along a path, and returns where that ends, or that it leads out of the tree.
func (l links) follow(at, target string, steps *int) (end string, out bool) {
	if *steps--; *steps < 0 {
		return at, false
	}
	if path.IsAbs(target) || filepath.IsAbs(target) || filepath.VolumeName(target) != "" {
		return at, true
	}
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
			continue
		case "..":
			if at == "." {
				return at, true
			}
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		if further, ok := l[next]; ok {
			if next, out = l.follow(at, further, steps); out {
				return next, true
			}
		}
		at = next
	}
	return at, false
}
