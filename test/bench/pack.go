package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/tree/catalog"
)

// A packing has the measurements that the rows about packing share, because tar czf takes long.
type packing struct {
	pack, repack, tar      []Sample
	packedSize, tarredSize int64 // bytes
}

// A tarball is a release's server tarball with its files, unpacked.
type tarball struct {
	sum     string // of the tarball, SHA-256 in hex
	time    time.Time
	dir     string
	entries []archive.Entry
}

func pack(ctx context.Context, b *bench, row *Row) error {
	p, err := b.packed(ctx)
	if err != nil {
		return err
	}
	row.Ours, row.Theirs = p.pack, p.tar
	return nil
}

func size(ctx context.Context, b *bench, row *Row) error {
	p, err := b.packed(ctx)
	if err != nil {
		return err
	}
	row.Ours, row.Theirs = []Sample{{Value: float64(p.packedSize)}}, []Sample{{Value: float64(p.tarredSize)}}
	return nil
}

func repack(ctx context.Context, b *bench, row *Row) error {
	p, err := b.packed(ctx)
	if err != nil {
		return err
	}
	row.Ours, row.Theirs = p.repack, p.tar
	return nil
}

// packed measures packing with two releases of one stamp, between which one component changed.
func (b *bench) packed(ctx context.Context) (*packing, error) {
	if b.packing != nil {
		return b.packing, nil
	}
	s, err := b.warmed(ctx)
	if err != nil {
		return nil, err
	}
	b.say("  building two releases to pack")
	first, err := s.tarball(ctx, "first")
	if err != nil {
		return nil, err
	}
	second, err := s.tarball(ctx, "second")
	if err != nil {
		return nil, err
	}
	p := &packing{}
	ours, theirs := filepath.Join(b.dir, "slipway.tar.gz"), filepath.Join(b.dir, "tar.tar.gz")
	cache := filepath.Join(b.dir, "archive-cache")
	c := contest{}
	c.ours = func() (Sample, error) {
		if err := os.RemoveAll(cache); err != nil {
			return Sample{}, err
		}
		sample, err := b.pack(ctx, "pack with an empty cache", first, cache, ours)
		if err != nil {
			return sample, err
		}
		if p.packedSize, err = fileSize(ours); err != nil {
			return sample, err
		}
		again, err := b.pack(ctx, "pack after "+edited+" has changed", second, cache, ours)
		p.repack = append(p.repack, again)
		return sample, err
	}
	c.theirs = func() (Sample, error) {
		cmd := exec.CommandContext(ctx, "tar", "czf", theirs, "-C", first.dir, "kubernetes")
		return b.command(ctx, "tar czf", cmd)
	}
	var row Row
	if err := c.rounds(b.n, &row); err != nil {
		return nil, err
	}
	p.pack, p.tar = row.Ours, row.Theirs
	if p.tarredSize, err = fileSize(theirs); err != nil {
		return nil, err
	}
	b.packing = p
	return p, nil
}

// pack measures package archive with a tarball's files, and checks that the release's own tarball comes out.
func (b *bench) pack(ctx context.Context, name string, t *tarball, cache, to string) (Sample, error) {
	sample, err := b.time(ctx, name, func() error {
		f, err := os.Create(to)
		if err != nil {
			return err
		}
		defer f.Close()
		packer := archive.Packer{Cache: cache, Time: t.time}
		if err := packer.TarGz(ctx, f, t.entries); err != nil {
			return err
		}
		return f.Close()
	})
	if err != nil {
		return sample, err
	}
	got, err := sum(to)
	if err != nil {
		return sample, err
	}
	if got != t.sum {
		return sample, fmt.Errorf("%s is not what the release has: %s, not %s", to, got, t.sum)
	}
	return sample, nil
}

// tarball makes a release with an edit of its own, and unpacks its server tarball.
func (s *sides) tarball(ctx context.Context, name string) (*tarball, error) {
	if _, err := s.edit(s.ours); err != nil {
		return nil, err
	}
	if err := execute(ctx, s.make(ctx, "quick-release"), nil); err != nil {
		return nil, err
	}
	p, err := s.project(ctx)
	if err != nil {
		return nil, err
	}
	from := filepath.Join(s.ours, filepath.FromSlash(project.Tars), catalog.Tarball(catalog.Server, s.platform))
	t := &tarball{dir: filepath.Join(s.dir, "unpacked-"+name), time: p.Stamp.Date}
	if t.sum, err = sum(from); err != nil {
		return nil, err
	}
	return t, t.unpack(from)
}

// unpack reads every file of a tarball. The entries have the files' sums, because a release knows them, too, as inputs of its actions.
func (t *tarball) unpack(from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeDir {
			continue // the packer adds them by itself
		}
		e := archive.Entry{Name: h.Name, Mode: h.FileInfo().Mode(), Path: filepath.Join(t.dir, filepath.FromSlash(h.Name))}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			return fmt.Errorf("%s: %s: neither a file nor a folder", from, h.Name)
		}
		if err := create(e.Path, e.Mode, r); err != nil {
			return err
		}
		if e.Sum, err = sum(e.Path); err != nil {
			return err
		}
		t.entries = append(t.entries, e)
	}
}

func create(name string, mode os.FileMode, from io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, from); err != nil {
		return err
	}
	return f.Close()
}

func fileSize(name string) (int64, error) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
