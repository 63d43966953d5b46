package source

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/tree/folder"
)

// findUnpacked lists all files below root.
func findUnpacked(ctx context.Context, root string) (*Tree, error) {
	top, err := folder.Resolve(root)
	if err != nil {
		return nil, err
	}
	t := &Tree{Root: top}
	t.Files, err = folder.List(ctx, top)
	return t, err
}

// listWorkTree lists the files that git tracks in the work tree, or would track if they were added.
func (t *Tree) listWorkTree(ctx context.Context) ([]string, error) {
	list, err := t.repo.Run(ctx, nil, "ls-files", "-z", "-t", "--stage", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	var files []string
	for line := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if line == "" { // no files at all
			continue
		}
		name, err := t.candidate(line)
		if err != nil {
			return nil, err
		}
		if name != "" {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	files = slices.Compact(files) // a file with a merge conflict is listed up to three times
	return withoutShadowed(files), nil
}

// withoutShadowed drops names below other names. They are tracked files whose folder was replaced by a symbolic link, through
// which they may still be reachable.
func withoutShadowed(names []string) []string {
	all := make(map[string]bool, len(names))
	for _, name := range names {
		all[name] = true
	}
	return slices.DeleteFunc(names, func(name string) bool {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if all[dir] {
				return true
			}
		}
		return false
	})
}

// candidate returns the name of the source in a line of git ls-files, or "" if the file is not one. The line is "? NAME" for an
// untracked file, and "TAG MODE HASH STAGE<tab>NAME" for a tracked one.
func (t *Tree) candidate(line string) (string, error) {
	tag, name, _ := strings.Cut(line, " ")
	if tag == "?" && strings.HasSuffix(name, "/") {
		if folder.Excluded(strings.TrimSuffix(name, "/"), fs.ModeDir) {
			return "", nil
		}
		return "", fmt.Errorf("%s: a git repository inside the work tree; move it away", name)
	}
	if tag != "?" {
		info, rest, ok := strings.Cut(name, "\t")
		octal, _, _ := strings.Cut(info, " ")
		if !ok {
			return "", fmt.Errorf("git ls-files: cannot read %q", line)
		}
		if octal == "160000" {
			return "", fmt.Errorf("%s: a submodule, whose content is not in the commit", rest)
		}
		name = rest
	}
	info, err := os.Lstat(t.path(name))
	switch {
	case folder.Missing(err) && tag == "S":
		return "", fmt.Errorf("%s: left out by a sparse checkout; run: git sparse-checkout disable", name)
	case folder.Missing(err):
		return "", nil
	case err != nil:
		return "", err
	case info.IsDir(): // replaces a deleted tracked file; its files have lines of their own
		return "", nil
	case folder.Excluded(name, info.Mode()), tag == "?" && folder.Leaving(name):
		return "", nil
	}
	return name, nil
}

// readFiles returns entries for t.Files. A file that is gone since Find looked is an error.
func (t *Tree) readFiles(ctx context.Context) ([]archive.Entry, error) {
	entries := make([]archive.Entry, 0, len(t.Files))
	for _, name := range t.Files {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		e := archive.Entry{Name: name, Mode: 0o644}
		path := t.path(name)
		info, err := os.Lstat(path)
		if err != nil {
			return nil, err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			e.Mode = fs.ModeSymlink | 0o777
			if e.Link, err = os.Readlink(path); err != nil {
				return nil, err
			}
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%s: neither a file nor a symbolic link", name)
		case info.Mode()&0o100 != 0:
			e.Mode, e.Path = 0o755, path
		default:
			e.Path = path
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func (t *Tree) path(name string) string { return filepath.Join(t.Root, filepath.FromSlash(name)) }
