package plan

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"slipway.build/pkg/tree/catalog"
)

// LinkBin points _output/bin at the host's binaries, where Kubernetes has them, if the road is one for that and there are any. The
// tree must be locked.
func (p *Project) LinkBin() error {
	if !p.road.Info().Linked {
		return nil
	}
	if _, err := os.Stat(p.abs(p.hostBin())); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	link, target := p.abs(slashed(Output, "bin")), strings.TrimPrefix(p.hostBin(), Output+"/")
	if old, err := os.Readlink(link); err == nil && old == target {
		return nil
	}
	if err := p.moveBin(link); err != nil {
		return err
	}
	tmp := filepath.Join(p.abs(State), "bin.link")
	_ = os.Remove(tmp) // of a run that was killed
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, link)
}

// hostBin is the folder of the road's binaries for the host.
func (p *Project) hostBin() string { return slashed(p.road.Info().Output, catalog.Host().String()) }

// moveBin makes way for the link where _output/bin is a folder, as `make slipway` leaves it in a fresh tree: what is in it
// goes to where the link will lead, unless something of that name is there.
func (p *Project) moveBin(bin string) error {
	if info, err := os.Lstat(bin); err != nil || !info.IsDir() {
		return nil
	}
	entries, err := os.ReadDir(bin)
	if err != nil {
		return err
	}
	for _, e := range entries {
		to := filepath.Join(p.abs(p.hostBin()), e.Name())
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err := os.Rename(filepath.Join(bin, e.Name()), to); err != nil {
			return err
		}
	}
	return os.RemoveAll(bin)
}
