package worktree

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/tree/folder"
)

// A commit is the list of the files of a commit.
type commit struct {
	files   map[string]file // by name
	folders map[string]bool // that have files
}

// A file is what a commit says of a file.
type file struct{ mode, blob string } // as git writes them

// blobs returns a function that returns the hash by which a repository names contents: that of its commits.
func blobs(commit string) func() hash.Hash {
	if len(commit) == hex.EncodedLen(sha256.Size) {
		return sha256.New
	}
	return sha1.New // #nosec G401 -- it is git's
}

// list lists the files of a tree, by its hash. Files that are never sources are left out.
func (r *Repo) list(ctx context.Context, tree string) (*commit, error) {
	out, err := r.Run(ctx, nil, "ls-tree", "-r", "-z", "--full-tree", tree)
	if err != nil {
		return nil, err
	}
	c := &commit{map[string]file{}, map[string]bool{".": true}}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if line == "" { // a commit without files
			continue
		}
		info, name, _ := strings.Cut(line, "\t")
		fields := strings.Fields(info)
		if len(fields) != 3 {
			return nil, fmt.Errorf("git ls-tree: cannot read %q", line)
		}
		f := file{fields[0], fields[2]}
		if folder.Excluded(name, f.fileMode()) {
			continue
		}
		c.files[name] = f
		for dir := path.Dir(name); !c.folders[dir]; dir = path.Dir(dir) {
			c.folders[dir] = true
		}
	}
	return c, nil
}

func (f file) fileMode() fs.FileMode {
	switch f.mode {
	case "120000":
		return fs.ModeSymlink | 0o777
	case "100755":
		return 0o755
	}
	return 0o644
}

// differs returns how the commit's files in the folder at root differ from the commit, or "". Only names, modes and bytes count: git's
// index may say that a file shall not be looked at, and its configuration that a mode does not count, or that other bytes are the same.
func (c *commit) differs(root string, found []folder.File) string {
	there := map[string]bool{}
	for _, f := range found {
		there[f.Name] = true
		want := c.files[f.Name]
		link := f.Mode&fs.ModeSymlink != 0
		switch {
		case f.Blob != want.blob, link != (want.fileMode()&fs.ModeSymlink != 0):
			return f.Name + " is not what the commit has"
		case f.Mode != want.fileMode() && f.Mode == 0o755:
			return f.Name + " is executable, and is not in the commit"
		case f.Mode != want.fileMode():
			return f.Name + " is not executable, and is in the commit"
		}
		if link && !inImage(f.Name) {
			if to := c.outside(root, f.Name); to != "" {
				return fmt.Sprintf("%s leads to %s, which is not in the commit", f.Name, to)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		switch {
		case c.files[name].mode == "160000":
			return name + " is a submodule, whose content is not in the commit"
		case !there[name]:
			return name + " is missing"
		}
	}
	return ""
}

// inImage reports whether a file is one of an image's, where a link is not followed but packed.
func inImage(name string) bool {
	parts := strings.SplitN(name, "/", 4)
	return len(parts) == 4 && parts[0] == "images" && parts[2] == "rootfs"
}

// outside returns where a link leads that the commit has, if the commit does not have what is there, or "". A link that leads nowhere is
// only a link.
func (c *commit) outside(root, name string) string {
	to, err := filepath.EvalSymlinks(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(root, to)
	if err != nil {
		return to
	}
	rel = filepath.ToSlash(rel)
	if _, ok := c.files[rel]; ok || c.folders[rel] {
		return ""
	}
	return to
}

// extra lists the files in the folder at root that are not in the commit, and folders that have files, with a final slash.
func (c *commit) extra(root string) ([]string, error) {
	var found []string
	var walk func(dir string) error
	walk = func(dir string) error {
		entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(dir)))
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			_, committed := c.files[name]
			switch {
			case committed && !e.IsDir(), folder.Excluded(name, e.Type()):
			case !e.IsDir():
				found = append(found, name)
			case c.folders[name]:
				if err := walk(name); err != nil {
					return err
				}
			case hasFile(filepath.Join(root, filepath.FromSlash(name))):
				found = append(found, name+"/")
			}
		}
		return nil
	}
	return found, walk(".")
}

// hasFile reports whether there is a file in a folder or below it, or something that cannot be looked at.
func hasFile(dir string) bool {
	return filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return nil
		}
		return fs.ErrExist
	}) != nil
}

// relevant returns those of the names that a build may read. Whether git ignores a file says nothing about that, with two exceptions:
// hidden files and folders at the top other than Bazel's, such as those of editors, and Bazel's settings of this machine.
func (r *Repo) relevant(ctx context.Context, extra []string) ([]string, error) {
	var read, personal []string
	for _, name := range extra {
		top := !strings.Contains(strings.TrimSuffix(name, "/"), "/")
		if top && (strings.HasPrefix(name, ".") && !strings.HasPrefix(name, ".bazel") || name == "user.bazelrc") {
			personal = append(personal, name)
		} else {
			read = append(read, name)
		}
	}
	if len(personal) == 0 {
		return read, nil
	}
	args := []string{"ls-files", "-z", "--others", "--cached", "--exclude-standard", "--directory", "--"}
	for _, name := range personal {
		args = append(args, ":(literal)"+name)
	}
	out, err := r.Run(ctx, nil, args...)
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(string(out), "\x00") {
		if name != "" {
			read = append(read, name)
		}
	}
	return read, nil
}
