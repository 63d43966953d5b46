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
	s := &surveyed{listed: make(map[string]bool, len(names)+len(names)/4)}
	for _, name := range names {
		if err := checkName(name); err != nil {
			return nil, err
		}
		if name == "." {
			return nil, errors.New("the name . is a folder's, not a file's")
		}
		s.listed[name] = true
	}
	s.count = len(s.listed)
	found := links{}
	for _, name := range slices.Sorted(maps.Keys(s.listed)) {
		if err := s.addFolders(dir, name); err != nil {
			return nil, err
		}
		if err := found.add(dir, name); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if found.leaveTree(name) {
			return nil, fmt.Errorf("%s: the symbolic link points outside the tree, to %s: nothing was sent", name, found[name])
		}
	}
	return s, s.read(ctx, dir, ".")
}

// addFolders lists the folders that a file is in.
func (s *surveyed) addFolders(dir, name string) error {
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		if file, listed := s.listed[above]; listed && !file {
			return nil
		}
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(above)))
		switch {
		case err == nil && info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s: lies below the symbolic link %s, and not in the tree itself", name, above)
		case err == nil && !info.IsDir():
			return fmt.Errorf("%s: lies below %s, which is a file", name, above)
		}
		s.listed[above] = false
	}
	return nil
}

// read finds what is not listed in a folder in which files are listed.
func (s *surveyed) read(ctx context.Context, dir, folder string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	entries, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(folder)))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(folder, e.Name())
		file, listed := s.listed[name]
		switch {
		case !listed:
			s.unlisted = append(s.unlisted, name)
		case !file:
			if err := s.read(ctx, dir, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkName refuses names that do not name something below a folder, or that are not in canonical form.
func checkName(name string) error {
	if strings.ContainsRune(name, 0) || !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name {
		return fmt.Errorf("%q: is not a clean path below the folder", name)
	}
	return nil
}

// links are the targets of the listed symbolic links, by name.
type links map[string]string

// add adds a listed file if it is a link.
func (l links) add(dir, name string) error {
	file := filepath.Join(dir, filepath.FromSlash(name))
	info, err := os.Lstat(file)
	switch {
	case err != nil || info.Mode().IsRegular():
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		l[name], err = os.Readlink(file)
		return err
	case info.IsDir():
		return fmt.Errorf("%s: is a folder, and only files can be listed", name)
	}
	return fmt.Errorf("%s: is neither a file nor a symbolic link", name)
}

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
