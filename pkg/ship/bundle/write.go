package bundle

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/ctxio"
	"slipway.build/pkg/mechanism/workdir"
	"slipway.build/pkg/release"
)

// A Summary says what a bundle has.
type Summary struct {
	File     string   `json:"file"`
	Request  Request  `json:"request"`
	Images   []string `json:"images"` // their names
	Packages int      `json:"packages"`
	Tarballs []string `json:"tarballs"`
	Size     int64    `json:"size"` // bytes
}

// summary says what a request asks for.
func (q Request) summary(r *release.Release, name string) *Summary {
	s := &Summary{File: name, Request: q, Images: []string{}, Tarballs: []string{}}
	for _, i := range q.images(r) {
		s.Images = append(s.Images, i.Names...)
	}
	for _, a := range q.files(r) {
		switch {
		case a.Kind == release.Tarball && strings.HasSuffix(a.Path, ".tar.gz"):
			s.Tarballs = append(s.Tarballs, a.Path)
		case strings.HasSuffix(a.Path, ".deb") || strings.HasSuffix(a.Path, ".rpm"):
			s.Packages++
		}
	}
	return s
}

// Write makes a bundle of the release in a folder, whose images are in an OCI image layout. The caller has verified the release. The
// bundle has its name when it is whole and on the disk, and replaces a file of that name. Write calls waiting if somebody else is writing
// it. The error is a [*MissingError] if the layout lacks a part of an image.
func (q Request) Write(ctx context.Context, dir, layout, output string, waiting func()) (*Summary, error) {
	description, err := os.ReadFile(filepath.Join(dir, release.File))
	if err != nil {
		return nil, err
	}
	r, err := release.Unmarshal(description)
	if err != nil {
		return nil, err
	}
	files, err := q.contents(r, description, source{os.DirFS(dir), os.DirFS(layout)})
	if err != nil {
		return nil, err
	}
	var entries []archive.Entry
	for _, f := range files {
		e := archive.Entry{Name: f.name, Data: f.data, Sum: f.sum, Last: strings.HasPrefix(f.name, blobs)} // what says most is first
		if f.sum != "" {
			in := layout
			name, ok := strings.CutPrefix(f.name, folder+"/")
			if ok {
				in = dir
			}
			e.Path = filepath.Join(in, filepath.FromSlash(name))
		}
		entries = append(entries, e)
	}
	tarball, err := archive.NewTarball(entries, r.Date)
	if err != nil {
		return nil, err
	}
	s := q.summary(r, output)
	s.Size = tarball.Size()
	parent := filepath.Dir(output)
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("there is no folder %s: make it first", parent)
	}
	return s, workdir.In(ctx, parent, "."+filepath.Base(output)+".slipway", waiting, func(work string) error {
		return atomicfile.WriteVia(work, output, 0o644, func(w io.Writer) error {
			if _, err := tarball.WriteTo(ctxio.Writer(ctx, w)); err != nil {
				return err
			}
			if f, ok := w.(*os.File); ok { // it may be carried away at once
				return f.Sync()
			}
			return nil
		})
	})
}
