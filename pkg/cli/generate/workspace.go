package generate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/tools/txtar"

	rules "slipway.build/build/bazel"
	"slipway.build/pkg/maintain/kit"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/tree/folder"
)

const (
	rulesFolder   = "build/bazel"
	workspaceFile = bazelFolder + "/workspace.txtar"
)

// topFiles are the files outside of rulesFolder that every workspace has, besides moduleFiles.
var topFiles = []string{".bazelignore", ".bazelrc", ".bazelversion", "BUILD.bazel", "MODULE.bazel", "WORKSPACE", "release/BUILD.bazel"}

// moduleFiles are slipway's own, which have the versions of rules_go and gazelle.
var moduleFiles = []string{"go.mod", "go.sum"}

// packWorkspace returns an archive of the topFiles, which package rules embeds: it cannot embed what is outside of its folder.
func packWorkspace(root string) ([]byte, error) {
	var ar txtar.Archive
	for _, name := range topFiles {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		ar.Files = append(ar.Files, txtar.File{Name: name, Data: data})
	}
	return txtar.Format(&ar), nil
}

// updateWorkspace makes a workspace for Bazel in a folder for the tree at root: slipway's own rules, the files that are generated from the
// tree, and links to the tree's code with BUILD files by gazelle. Only what differs is written.
func updateWorkspace(ctx context.Context, root, dir string) error {
	made, err := embeddedFiles()
	if err != nil {
		return err
	}
	if err := writeAll(dir, made); err != nil { // go.mod is read below
		return err
	}
	t, err := openForBazel(ctx, root, madePatched)
	if err != nil {
		return err
	}
	if err := errors.Join(t.build(ctx, made), t.tests(ctx, made)); err != nil {
		return err
	}
	err = errors.Join(removeLeftovers(dir, made, rulesFolder),
		linkCode(filepath.Join(root, t.catalog.Module), filepath.Join(dir, t.catalog.Module)), // before its generated BUILD file
		writeAll(dir, made),
		os.Chmod(filepath.Join(dir, rulesFolder, "status.sh"), 0o755),
		placePacker(dir))
	if err != nil {
		return err
	}
	for _, name := range []string{"release/release.yaml", "user.bazelrc"} {
		if err := linkFile(filepath.Join(root, filepath.FromSlash(name)), filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return Tree{Root: dir}.UpdateBuildFiles(ctx)
}

// placePacker makes this program the one that packs a release inside of Bazel: see package packer. Bazel may run in another root, where
// the program's own folder is not.
func placePacker(dir string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Stat(program)
	if err != nil {
		return err
	}
	packer := filepath.Join(dir, "packer")
	has, err := os.Stat(packer)
	if err == nil && (os.SameFile(from, has) || from.Size() == has.Size() && !from.ModTime().After(has.ModTime())) {
		return nil
	}
	if err := os.RemoveAll(packer); err != nil || os.Link(program, packer) == nil {
		return err
	}
	return atomicfile.Copy(program, packer)
}

// embeddedFiles returns the files of package rules, by name in a workspace.
func embeddedFiles() (map[string][]byte, error) {
	made := map[string][]byte{}
	err := fs.WalkDir(rules.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		made[path.Join(rulesFolder, name)], err = rules.Files.ReadFile(name)
		return err
	})
	for _, f := range txtar.Parse(made[workspaceFile]).Files {
		made[f.Name] = f.Data
	}
	delete(made, workspaceFile)
	for _, name := range moduleFiles {
		made[name] = kit.Packed(name)
	}
	return made, err
}

// linkCode makes a folder that has a link to each file of another one, and a copy of each BUILD file: gazelle edits these, and adds those
// that are missing. It leaves out hidden files.
func linkCode(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	has, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	left, err := os.ReadDir(to)
	if err != nil {
		return err
	}
	for _, e := range left {
		same := func(h fs.DirEntry) bool { return h.Name() == e.Name() && h.IsDir() == e.IsDir() }
		if !isBuildFile(e.Name()) && !slices.ContainsFunc(has, same) {
			if err := os.RemoveAll(filepath.Join(to, e.Name())); err != nil {
				return err
			}
		}
	}
	for _, e := range has {
		source, link := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case folder.Hidden(e.Name()):
		case e.IsDir():
			err = linkCode(source, link)
		case isBuildFile(e.Name()):
			err = atomicfile.Copy(source, link)
		default:
			err = linkFile(source, link)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isBuildFile(name string) bool { return name == "BUILD.bazel" || name == "BUILD" }

// linkFile makes a link to a file, or removes it if there is no such file.
func linkFile(file, link string) error {
	if to, err := os.Readlink(link); err == nil && to == file {
		return nil
	}
	if err := os.RemoveAll(link); err != nil {
		return err
	}
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return os.Symlink(file, link)
}
