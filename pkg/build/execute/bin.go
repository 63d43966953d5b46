package execute

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"slipway.build/pkg/build/plan"
)

// linkBin links _output/bin, where Kubernetes users look for binaries, to the host's binaries if there are any. The caller holds the
// tree's lock.
func linkBin(p *plan.Project) error {
	folder := p.HostBinaries()
	if folder == "" {
		return nil
	}
	binaries := filepath.Join(p.Root, filepath.FromSlash(folder))
	if _, err := os.Stat(binaries); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	output := filepath.Join(p.Root, plan.Output)
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
	tmp := filepath.Join(p.Root, filepath.FromSlash(plan.State), "bin.link")
	_ = os.Remove(tmp) // left by a run that was killed
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, link)
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
