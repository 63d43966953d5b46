package inputs

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"slipway.build/pkg/make/pack"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/ctxio"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/tree/input"
)

// A Spec decides the bytes of the file, together with the contents of the folder of modules and of the tree.
type Spec struct {
	Name    string        // of the file
	Time    time.Time     // of all members
	Tree    string        // identifies the members that Place.List returns, and that are not in files of Place.Inputs
	Modules string        // the folder of modules, relative to the tree's root
	Debian  []debian.Lock // packages
}

// A Place says where the file is packed, and from what. Its paths decide no bytes.
type Place struct {
	pack.Place
	Debian debian.Sources
}

// Action returns the action that makes the file.
func Action(s Spec, at Place) *action.Action {
	tar, sum := at.Tarball(s.Name), at.SHA512(s.Name)
	modules := s.Modules + "/"
	return &action.Action{
		ID:      "package " + s.Name,
		Phase:   phase,
		Recipe:  code.Recipe(s, at.Code),
		Inputs:  append(slices.Clone(at.Inputs), modules),
		Outputs: []string{tar, sum},
		Run: func(ctx context.Context, t *action.Task) error {
			entries, err := at.List(ctx)
			if err != nil {
				return err
			}
			more, err := pack.Folder(filepath.Join(at.Root, filepath.FromSlash(s.Modules)), input.Modules, func(rel string) string {
				return t.Sum(modules + rel)
			})
			if err != nil {
				return err
			}
			entries = append(entries, more...)
			if more, err = s.packages(ctx, at.Debian, t.Report.Progress); err != nil {
				return err
			}
			if entries, err = withSums(append(entries, more...)); err != nil {
				return err
			}
			digest, err := checksum.Create(t.Path(tar), func(w io.Writer) error {
				return archive.Tar(ctxio.Writer(ctx, w), entries, s.Time)
			})
			if err != nil {
				return err
			}
			t.SetDigest(tar, digest.SHA256)
			return os.WriteFile(t.Path(sum), []byte(digest.SHA512+"\n"), 0o644)
		},
	}
}

// packages returns the Debian packages as members.
func (s Spec) packages(ctx context.Context, from debian.Sources, progress func(string)) ([]archive.Entry, error) {
	var entries []archive.Entry
	for _, lock := range s.Debian {
		files, err := debian.Fetch(ctx, from, &lock, progress)
		if err != nil {
			return nil, err
		}
		for i, p := range lock.Packages {
			entries = append(entries, archive.Entry{Name: input.Debian + "/" + p.FileName(), Mode: 0o644, Path: files[i], Sum: p.SHA256})
		}
	}
	return entries, nil
}

// withSums adds the member with the sums of all members.
func withSums(entries []archive.Entry) ([]archive.Entry, error) {
	sums := checksum.Sums{}
	for i := range entries {
		e := &entries[i]
		if e.Mode.Type() == fs.ModeSymlink {
			continue // git has links in a tree, and sha256sum would follow them
		}
		sum, err := e.SHA256()
		if err != nil {
			return nil, err
		}
		sums[e.Name] = checksum.Digest{SHA256: sum}
	}
	return append(entries, archive.Entry{Name: input.Sums, Mode: 0o644, Data: sums.SHA256SUMS()}), nil
}
