// Package execute carries out a request in a tree, from the lock to the finished release: it waits for another run, plans, runs the
// stale actions, and leaves the tree's output folder in order. [Run] does all of it.
//
// What must never be in here: what a request needs (package plan), and what users see of it (package cli).
package execute

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"slipway.build/pkg/make/codegen"
	"slipway.build/pkg/make/plan"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/stamp"
)

// Options say what to carry out, and how.
type Options struct {
	Root string // of the tree, absolute

	// Plan opens the tree and plans the request. Run calls it if it waited for another run, since the tree may have changed
	// meanwhile.
	Plan func(ctx context.Context) (*project.Project, *plan.Plan, error)

	Output string       // a folder that gets copies of the results; may be empty
	Cache  action.Cache // may be nil
	Budget action.Budget
	Events func(action.Event) // may be nil

	NoCachedResults bool          // see action.Options
	Program         action.Origin // of this program
}

// A FailedError says that an action failed. The events said why.
type FailedError struct{ error }

func (e FailedError) Unwrap() error { return e.error }

// An Outcome is the result of a run.
type Outcome struct {
	Plan   *plan.Plan
	Worked bool  // an action ran
	Untidy error // why the cache could not be trimmed; the results are complete all the same

	Stale []codegen.Difference // the components' generated code that is not up to date, though it was compiled
}

// Run carries out a request. P and planned are what the caller's first call of Options.Plan returned.
func Run(ctx context.Context, o Options, p *project.Project, planned *plan.Plan) (*Outcome, error) {
	out := &Outcome{Plan: planned}
	waited := false
	events := func(e action.Event) {
		waited = waited || e.Kind == action.Waiting
		out.Worked = out.Worked || e.Kind == action.Started
		if o.Events != nil {
			o.Events(e)
		}
	}
	return out, action.Locked(ctx, o.Root, project.State, events, func() (err error) {
		if waited {
			if p, out.Plan, err = o.Plan(ctx); err != nil {
				return err
			}
		}
		if err := linkEarly(p.Root, p.HostBinaries(), out.Plan.Graph.Actions); err != nil {
			return err
		}
		run := action.Options{Budget: o.Budget, Events: events, Locked: true, Cache: o.Cache, Program: o.Program,
			NoCachedResults: o.NoCachedResults, Wanted: out.Plan.Wanted()}
		told, err := checkFirst(ctx, out.Plan, run)
		if err != nil {
			return err
		}
		run.Events = func(e action.Event) {
			if e.Kind != action.Skipped || !told[e.Action] {
				events(e)
			}
		}
		if err := out.Plan.Graph.Run(ctx, run); err != nil {
			return FailedError{err}
		}
		if err := settle(ctx, p, out); err != nil || o.Output == "" {
			return err
		}
		return deliver(o.Root, out.Plan.Results, o.Output)
	})
}

// settle puts the output folder in order after a run without failures.
func settle(ctx context.Context, p *project.Project, out *Outcome) error {
	if err := linkBin(p.Root, p.HostBinaries()); err != nil {
		return err
	}
	if err := sweep(p, out.Plan); err != nil {
		return err
	}
	for _, g := range out.Plan.Generated {
		stale, err := g.Stale()
		if err != nil {
			return err
		}
		out.Stale = append(out.Stale, stale...)
	}
	if !out.Worked {
		return nil
	}
	if err := p.Unchanged(ctx); err != nil {
		return err
	}
	out.Untidy = (&archive.Packer{Cache: p.ArchiveCache()}).Trim()
	return nil
}

// sweep removes the tarballs of earlier requests from the release's folder, so that it holds only what its release.json describes.
// Files that slipway does not make stay.
func sweep(p *project.Project, planned *plan.Plan) error {
	if planned.Release == nil {
		return nil
	}
	for _, name := range p.Catalog.Tarballs(p.Catalog.AllPlatforms()) {
		if _, ok := planned.Release.Artifact(name); ok {
			continue
		}
		err := os.Remove(filepath.Join(p.Root, filepath.FromSlash(project.Tars), name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove what an earlier request made: %w", err)
		}
	}
	if err := sweepPackages(p.Root, planned.Release); err != nil {
		return err
	}
	if err := sweepSignatures(p.Root); err != nil {
		return err
	}
	return sweepInputs(p, planned)
}

// sweepPackages removes the packages of another release, and their digests. Their names have its version.
func sweepPackages(root string, r *release.Release) error {
	for _, parent := range []string{project.Tars, project.Sums512} {
		dir := filepath.Join(root, filepath.FromSlash(parent), release.PackageFolder)
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if _, ok := r.Artifact(path.Join(release.PackageFolder, e.Name())); ok {
				continue
			}
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return fmt.Errorf("remove a package of an earlier release: %w", err)
			}
		}
	}
	return nil
}

// sweepSignatures removes the signatures of an earlier release, if one of them is no longer of what is there.
func sweepSignatures(root string) error {
	dir := filepath.Join(root, filepath.FromSlash(project.Tars))
	stale := false
	for _, name := range release.Signed() {
		bundle, err := os.ReadFile(filepath.Join(dir, name+release.BundleSuffix))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		signed, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		b, err := signature.Unmarshal(bundle)
		stale = stale || err != nil || !b.Of(signed)
	}
	if !stale {
		return nil
	}
	stales := []string{filepath.Join(root, filepath.FromSlash(project.Signed))}
	for _, name := range append(release.Signatures(), release.Attestations, release.Added, release.Rebuilds) {
		stales = append(stales, filepath.Join(dir, name))
	}
	for _, name := range stales {
		if err := os.RemoveAll(name); err != nil {
			return fmt.Errorf("remove a signature of an earlier release: %w", err)
		}
	}
	return nil
}

// sweepInputs removes the tarball of inputs if it is of another version than the release. It need not be part of a release.
func sweepInputs(p *project.Project, planned *plan.Plan) error {
	if planned.Inputs != nil {
		return nil
	}
	file := filepath.Join(p.Root, filepath.FromSlash(project.Tars), input.Tarball)
	version, err := input.Version(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		if packed, err := stamp.Unmarshal(version); err == nil && packed == p.Stamp {
			return nil
		}
	}
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("remove what an earlier request made: %w", err)
	}
	return nil
}

// copyTo copies a file, or the files in a folder. Other files that are in a folder already stay.
func copyTo(from, to string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		return atomicfile.Copy(name, filepath.Join(to, rel))
	})
}

// deliver copies results into a folder of the user's: side by side, or in folders if they come from several (one for each platform).
func deliver(root string, results []plan.Result, dir string) error {
	folders := map[string]bool{}
	for _, r := range results {
		folders[path.Dir(r.Name)] = true
	}
	for _, r := range results {
		name := path.Base(r.Name)
		if len(folders) > 1 {
			name = r.Name
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := copyTo(filepath.Join(root, filepath.FromSlash(r.Path)), to); err != nil {
			return err
		}
	}
	return nil
}
