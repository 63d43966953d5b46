package pack

import (
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
)

// A List returns members that are not files of the tree.
type List func(ctx context.Context) ([]archive.Entry, error)

// And returns a list of the members of two lists, of which either may be nil.
func (l List) And(other List) List {
	if l == nil {
		return other
	}
	return func(ctx context.Context) ([]archive.Entry, error) {
		entries, err := l(ctx)
		if err != nil {
			return nil, err
		}
		more, err := other(ctx)
		return append(entries, more...), err
	}
}

// With returns a list with a text added, which is written when the list is read.
func (l List) With(write func(ctx context.Context) (Text, error)) List {
	return func(ctx context.Context) ([]archive.Entry, error) {
		t, err := write(ctx)
		if err != nil {
			return nil, err
		}
		entries, err := l(ctx)
		return append(entries, archive.Entry{Name: t.Name, Mode: 0o644, Data: []byte(t.Content)}), err
	}
}

// Module returns a list of parts (files and folders, below top) of a module that the module in dir requires. It fetches the module if the
// module cache lacks it.
func Module(find func(context.Context, func(string)) (*toolchain.Go, error), dir, module, goflags, top string, parts ...string) List {
	return func(ctx context.Context) ([]archive.Entry, error) {
		g, err := find(ctx, nil)
		if err != nil {
			return nil, err
		}
		from, err := g.ModuleDir(ctx, dir, module, goflags)
		if err != nil {
			return nil, err
		}
		var entries []archive.Entry
		for _, part := range parts {
			more, err := Folder(filepath.Join(from, filepath.FromSlash(part)), path.Join(top, part), func(string) string { return "" })
			if err != nil {
				return nil, err
			}
			entries = append(entries, more...)
		}
		return entries, nil
	}
}

// Write writes a list as a tarball, without an action.
func (l List) Write(ctx context.Context, w io.Writer, at time.Time) error {
	entries, err := l(ctx)
	if err != nil {
		return err
	}
	packer := archive.Packer{Time: at}
	return packer.TarGz(ctx, w, entries)
}

// Copy writes the members that want selects as files below dir.
func (l List) Copy(ctx context.Context, dir string, want func(name string) bool) error {
	entries, err := l(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !want(e.Name) {
			continue
		}
		if err := copyEntry(e, filepath.Join(dir, filepath.FromSlash(e.Name))); err != nil {
			return err
		}
	}
	return nil
}

func copyEntry(e archive.Entry, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if e.Link != "" {
		return os.Symlink(e.Link, to)
	}
	data := e.Data
	if e.Path != "" {
		var err error
		if data, err = os.ReadFile(e.Path); err != nil {
			return err
		}
	}
	return os.WriteFile(to, data, e.Mode.Perm())
}

// A CopySpec describes a copy of sources.
type CopySpec struct {
	ID     string   // of the action
	Inputs []string // the sources
	Tree   string   // also identifies their content
	Output string   // a folder
}

// CopyAction returns the action that copies the members of a list that want selects. By identifies the code that makes the list.
func CopyAction(s CopySpec, l List, want func(name string) bool, by string) *action.Action {
	out := s.Output + "/"
	return &action.Action{
		ID:      s.ID,
		Phase:   "sources",
		Recipe:  code.Recipe(s, by),
		Inputs:  s.Inputs,
		Outputs: []string{out},
		Run:     func(ctx context.Context, t *action.Task) error { return l.Copy(ctx, t.Path(out), want) },
	}
}
