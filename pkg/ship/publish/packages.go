package publish

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"slipway.build/pkg/mechanism/apt"
	"slipway.build/pkg/mechanism/deb"
	"slipway.build/pkg/release"
)

// newPackages reads the packages of the release in a folder, and adds the one with the keys.
func newPackages(ctx context.Context, dir string, r *release.Release, q Repositories, c Channel) (*packages, error) {
	rs := &packages{Repositories: q, channel: c, folder: repositoryFolder(r.Version), version: r.Version, date: r.Date,
		base: r.BasePackages}
	for _, a := range r.Artifacts {
		file := filepath.Join(dir, filepath.FromSlash(a.Path))
		p := packageFile{name: path.Base(a.Path), size: a.Size, open: func() (opened, error) { return os.Open(file) }}
		var err error
		switch a.Kind {
		case release.Deb:
			err = rs.addDeb(a.Identity.Arch, p, a.SHA256)
		case release.RPM:
			err = rs.addRPM(a.Identity.Arch, p, rs.date)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return rs, rs.addKeyring(ctx)
}

// A packageFile is a deb, or an rpm without a signature.
type packageFile struct {
	name string
	size int64 // bytes
	open func() (opened, error)
}

type opened interface {
	io.ReadCloser
	io.ReaderAt
}

func (rs *packages) addDeb(arch string, p packageFile, sum string) error {
	f, err := p.open()
	if err != nil {
		return err
	}
	defer f.Close()
	control, err := deb.Control(f)
	if err != nil {
		return err
	}
	name := path.Join(arch, p.name)
	rs.debs = append(rs.debs, apt.NewEntry(control, name, p.size, sum))
	rs.objects = append(rs.objects, Object{Path: path.Join(rs.folder, "deb", name), Size: p.size, SHA256: sum,
		open: func() (io.ReadCloser, error) { return p.open() }})
	return nil
}
