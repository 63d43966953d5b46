package packer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"slipway.build/pkg/make/plan"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/debian"
)

// A part of a release is made in the tree, in a new folder. It returns what to pack.
type part func(ctx context.Context, a arguments, scratch string) ([]archive.Entry, error)

// inTree packs a part into a tar file. The sources must be those whose digests Bazel knows: the result belongs to
// them, in a cache that is shared, too.
//
// The environment, with the user's settings of Go, is that of the machine, and comes in a file: if Bazel knew it, machines with other
// settings would not share results.
func (a arguments) inTree(ctx context.Context, of part) (err error) {
	if a.to, err = filepath.Abs(a.to); err != nil {
		return err
	}
	if a.tree, err = filepath.EvalSymlinks(a.tree); err != nil {
		return err
	}
	if a.want, err = os.ReadFile(a.digests); err != nil {
		return err
	}
	if err := setEnvironment(a.environment); err != nil {
		return err
	}
	prefix := filepath.Base(a.to) + "-"
	left, err := filepath.Glob(filepath.Join(filepath.Dir(a.to), prefix+"*")) // of a run that was killed
	if err != nil {
		return err
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	scratch, err := os.MkdirTemp(filepath.Dir(a.to), prefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	entries, err := of(ctx, a, scratch)
	if err != nil {
		return err
	}
	return write(a.to, func(w io.Writer) error { return archive.Tar(w, entries, time.Time{}) })
}

// sourcesOf returns an error unless the sources of a tree, or of a copy of it, are those that Bazel has seen.
func (a arguments) sourcesOf(ctx context.Context, p *project.Project, tree string) error {
	got, err := p.Digests(ctx, a.names)
	if err == nil && !bytes.Equal(got, a.want) {
		err = fmt.Errorf("%s: the sources are not those that Bazel has seen: they were edited after the build began. Run it again; if a patch "+
			"was edited, run make update first", tree)
	}
	return err
}

// licenses gathers the license files of what the components link. It only reads the tree, which may be edited meanwhile.
func licenses(ctx context.Context, a arguments, scratch string) ([]archive.Entry, error) {
	seen := func() (*project.Project, error) {
		p, err := project.Open(ctx, a.tree, project.Settings{}, os.Getenv)
		if err == nil {
			err = a.sourcesOf(ctx, p, p.Root)
		}
		return p, err
	}
	p, err := seen()
	if err != nil {
		return nil, err
	}
	if err := plan.GatherLicenses(ctx, p, scratch, a.platform); err != nil {
		return nil, err
	}
	if _, err := seen(); err != nil {
		return nil, err
	}
	return files(scratch, ".")
}

// thirdParty makes the third-party parts of a release, to unpack over the sources. It works in a copy of the tree, because only one run
// at a time may work in a tree, and that may be a release by the Bazel road, which waits for Bazel.
func thirdParty(ctx context.Context, a arguments, scratch string) ([]archive.Entry, error) {
	from, err := project.Open(ctx, a.tree, project.Settings{}, os.Getenv)
	if err != nil {
		return nil, err
	}
	if err := from.CopySources(ctx, scratch); err != nil {
		return nil, err
	}
	p, err := project.Open(ctx, scratch, project.Settings{
		Debian: debian.SourcesFrom(os.Getenv),
		Inputs: from.Inputs(), // the copy does not have them
	}, os.Getenv)
	if err != nil {
		return nil, err
	}
	if err := a.sourcesOf(ctx, p, from.Root); err != nil {
		return nil, err
	}
	graph, made, err := plan.ThirdParty(ctx, p, a.platform)
	if err != nil {
		return nil, err
	}
	if err := runGraph(ctx, graph); err != nil {
		return nil, err
	}
	var entries []archive.Entry
	for _, name := range made {
		more, err := files(scratch, name)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	return entries, nil
}

// setEnvironment makes the variables in a file this process's environment.
func setEnvironment(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var environment map[string]string
	if err := json.Unmarshal(data, &environment); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	os.Clearenv()
	for name, value := range environment {
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("%s: %s: %w", file, name, err)
		}
	}
	return nil
}

// files lists the files in a folder, or the file of that name, with names relative to dir.
func files(dir, name string) ([]archive.Entry, error) {
	var entries []archive.Entry
	err := filepath.WalkDir(filepath.Join(dir, filepath.FromSlash(name)), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		entries = append(entries, archive.Entry{Name: filepath.ToSlash(rel), Mode: info.Mode().Perm(), Path: file})
		return nil
	})
	return entries, err
}
