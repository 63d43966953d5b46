package execute

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
)

// linkBin links _output/bin, where Kubernetes users look for binaries, to the folder of the host's binaries, relative to the root, if there
// is one. The caller holds the tree's lock.
func linkBin(root, folder string) error {
	if folder == "" {
		return nil
	}
	binaries := filepath.Join(root, filepath.FromSlash(folder))
	if _, err := os.Stat(binaries); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	output := filepath.Join(root, project.Output)
	link := filepath.Join(output, "bin")
	target, err := filepath.Rel(output, binaries)
	if err != nil {
		return err
	}
	if old, err := os.Readlink(link); err == nil && old == target {
		return nil
	}
	if err := moveBin(link, binaries); err != nil {
		return err
	}
	tmp := filepath.Join(root, filepath.FromSlash(project.State), "bin.link")
	_ = os.Remove(tmp) // left by a run that was killed
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, link)
}

// linkEarly links _output/bin before anything is compiled, if the plan compiles binaries for the host: the components are there while
// the rest of a first run goes on. The caller holds the tree's lock.
func linkEarly(root, folder string, actions []*action.Action) error {
	makes := func(a *action.Action) bool {
		return slices.ContainsFunc(a.Outputs, func(output string) bool { return path.Dir(output) == folder })
	}
	if folder == "" || !slices.ContainsFunc(actions, makes) {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(root, filepath.FromSlash(folder)), 0o777); err != nil {
		return err
	}
	return linkBin(root, folder)
}

// moveBin makes room for the link if _output/bin is a folder, as after `make slipway` in a fresh tree. It moves files to where the
// link will lead, unless files with their names exist there.
func moveBin(bin, binaries string) error {
	if info, err := os.Lstat(bin); err != nil || !info.IsDir() {
		return nil
	}
	entries, err := os.ReadDir(bin)
	if err != nil {
		return err
	}
	for _, e := range entries {
		to := filepath.Join(binaries, e.Name())
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err := os.Rename(filepath.Join(bin, e.Name()), to); err != nil {
			return err
		}
	}
	return os.RemoveAll(bin)
}
