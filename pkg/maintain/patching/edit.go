package patching

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/make/upstream"
	"slipway.build/pkg/mechanism/atomicdir"
	"slipway.build/pkg/mechanism/git"
	"slipway.build/pkg/tree/patch"
)

// Edited is the result of Edit.
type Edited struct {
	Copy       string             `json:"copy"`
	Version    string             `json:"version"` // of upstream, and the tag of its code in the copy
	State      State              `json:"state"`
	Patches    int                `json:"patches"`
	Unsaved    string             `json:"unsaved,omitempty"`    // work in the copy that is in no patch
	Missing    []upstream.Missing `json:"-"`                    // modules that the copy lacks
	Merged     []string           `json:"merged,omitempty"`     // patches that apply only by a three-way merge
	PassedOver []patch.Skipped    `json:"passedOver,omitempty"` // changes that are not in the copy
}

// A State says where a copy comes from.
type State string

// The states.
const (
	New  State = "new"
	Kept State = "kept" // it was there already
)

// A StoppedError says that a patch does not apply. In the copy, git am is in progress, and goes on with the patches after it.
type StoppedError struct {
	Copy     string
	Patch    string   // its file
	Conflict error    // a *patch.Conflict; nil if git am stopped in an earlier run
	Files    []string // with conflicts
	LeftOut  []string // binary files that could not be changed
	Later    int      // patches after it
}

func (e *StoppedError) Error() string {
	if e.Conflict != nil {
		return e.Conflict.Error()
	}
	return fmt.Sprintf("patch %s is not resolved yet", e.Patch)
}

func (e *StoppedError) Unwrap() error { return e.Conflict }

// Edit lays out the copy, or keeps one that has the tree's patches already. With force, it throws an existing copy away.
func (w *Workspace) Edit(ctx context.Context, force bool) (*Edited, error) {
	repo, rec, err := w.open()
	if err != nil {
		return nil, err
	}
	patches, err := w.load()
	if err != nil {
		return nil, err
	}
	up, err := w.upstream(ctx, patches)
	if err != nil {
		return nil, err
	}
	if rec == nil || force {
		return w.layOut(ctx, up, patches, nil)
	}
	current := rec.Key == up.Key() && maps.EqualFunc(rec.Patches, contents(patches), bytes.Equal)
	if current && rec.Tip == "" {
		if err := stoppedAt(ctx, repo, patches); err != nil {
			return nil, err
		}
	}
	err = rec.unsavedHere(ctx, repo)
	again := current && rec.Tip == "" // if git am was aborted
	if err == nil && !again {
		err = rec.unsaved(ctx, repo)
	}
	unsaved, ok := errors.AsType[*UnsavedError](err)
	switch {
	case err == nil && (!current || again):
		return w.layOut(ctx, up, patches, rec)
	case err != nil && !(ok && current):
		return nil, err
	}
	e := &Edited{Copy: repo.Dir, Version: rec.Version, State: Kept, Patches: len(patches)}
	if ok {
		e.Unsaved = unsaved.What
	}
	return e, nil
}

// layOut prepares a copy under another name, and replaces the old one by it. With the record of a copy that has the same code and nothing
// unsaved, it uses that copy again.
func (w *Workspace) layOut(ctx context.Context, up *source, patches []*patch.Patch, old *record) (*Edited, error) {
	dir, err := filepath.Abs(w.Folder())
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return nil, err
	}
	// A fixed name: the next run removes what a killed run leaves.
	tmp := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".new")
	if err := os.RemoveAll(tmp); err != nil {
		return nil, err
	}
	repo, err := git.At(tmp)
	if err != nil {
		return nil, err
	}
	rec := &record{Project: w.Project, Version: up.Version, Key: up.Key(), Patches: contents(patches)}
	e := &Edited{Copy: dir, Version: up.Version, State: New, Patches: len(patches), Missing: up.Missing}
	discard := func() error { return os.RemoveAll(tmp) }
	if old != nil && old.Key == rec.Key {
		rec.Base = old.Base
		if err := os.Rename(dir, tmp); err != nil {
			return nil, err
		}
		discard = func() error { return putBack(context.WithoutCancel(ctx), repo, old, dir) }
		_, err = repo.Run(ctx, "reset", "--quiet", "--hard", rec.Base)
	} else {
		rec.Base, err = w.commitUpstream(ctx, repo, up)
	}
	if err == nil {
		err = w.apply(ctx, repo, rec, up, patches, e)
	}
	stopped, ok := errors.AsType[*StoppedError](err)
	if ok {
		err, stopped.Copy = nil, dir
	}
	if err == nil {
		err = rec.write(tmp)
	}
	if err == nil {
		err = atomicdir.Replace(tmp, dir)
	}
	if err != nil {
		return nil, errors.Join(err, discard())
	}
	if ok {
		return nil, stopped
	}
	return e, nil
}

// putBack gives a copy that was to be used again its commits and its name: it may have files that git ignores.
func putBack(ctx context.Context, repo *git.Repo, rec *record, dir string) error {
	_, _ = repo.Run(ctx, "am", "--quit") // fails if git am has not begun
	if _, err := repo.Run(ctx, "reset", "--quiet", "--hard", cmp.Or(rec.Tip, rec.Base)); err != nil {
		return err
	}
	return errors.Join(rec.write(repo.Dir), os.Rename(repo.Dir, dir))
}

// commitUpstream makes a repository with upstream's code as its only commit.
func (w *Workspace) commitUpstream(ctx context.Context, repo *git.Repo, up *source) (string, error) {
	if w.Progress != nil {
		w.Progress(fmt.Sprintf("laying out %s %s", up.Path, up.Version))
	}
	if err := up.Copy(ctx, repo.Dir); err != nil {
		return "", err
	}
	if err := w.applyBefore(repo.Dir, up.before); err != nil {
		return "", err
	}
	if err := repo.Init(ctx); err != nil {
		return "", err
	}
	if _, err := repo.Run(ctx, "config", "merge.conflictStyle", "diff3"); err != nil {
		return "", err
	}
	id, err := repo.Commit(ctx, fmt.Sprintf("%s %s\n", up.Path, up.Version))
	if err != nil {
		return "", err
	}
	_, err = repo.Run(ctx, "tag", up.Version)
	return id, err
}

// applyBefore applies patches to the files in a folder. They are edited elsewhere, and must apply.
func (w *Workspace) applyBefore(dir string, patches []*patch.Patch) error {
	repository, err := w.whole()
	if err != nil {
		return err
	}
	overlay := patch.NewOverlay(repository, patch.Dir(dir))
	reports, err := overlay.Check(patches)
	for _, r := range reports {
		err = cmp.Or(err, r.Err())
	}
	if err != nil {
		return err
	}
	for name, c := range overlay.Changes() {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if c.Removed {
			err = os.RemoveAll(file)
		} else if err = os.MkdirAll(filepath.Dir(file), 0o777); err == nil {
			err = os.WriteFile(file, c.Data, 0o666)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// apply commits patches with git am.
func (w *Workspace) apply(ctx context.Context, repo *git.Repo, rec *record, up *source, patches []*patch.Patch,
	e *Edited) error {
	repository, err := w.repository()
	if err != nil {
		return err
	}
	overlay := patch.NewOverlay(repository, patch.Dir(repo.Dir))
	conflicts, leftOut := map[string]error{}, map[string][]string{} // by patch
	var all []mail
	for _, p := range patches {
		report, err := patch.NewOverlay(repository, overlay).Apply(p)
		if err != nil {
			return err
		}
		e.PassedOver = append(e.PassedOver, report.Skipped...)
		parts := mails(p, report.Verdict)
		if report.Verdict == patch.Upstream {
			all = append(all, parts...)
			continue
		}
		for _, m := range parts {
			report, err := patch.NewOverlay(repository, overlay).Apply(m.patch)
			if err != nil {
				return err
			}
			switch {
			case report.Verdict == patch.Upstream:
				m.text = m.unchanged()
			case report.Verdict == patch.Conflicts, len(conflicts) > 0: // a resolved conflict may cause more
				merge, err := overlay.Merge(m.patch.Commits[0], inModuleCache(up))
				if err != nil {
					return err
				}
				for _, base := range merge.Bases {
					if _, err := repo.Feed(ctx, bytes.NewReader(base), "hash-object", "-w", "--no-filters", "--stdin"); err != nil {
						return err
					}
				}
				m.text = m.with(merge.Text)
				leftOut[p.Name] = append(leftOut[p.Name], merge.LeftOut...)
				if report.Conflict != nil && conflicts[p.Name] == nil {
					conflicts[p.Name] = report.Conflict
				}
			default:
				if _, err := overlay.Apply(m.patch); err != nil {
					return err
				}
			}
			all = append(all, m)
		}
	}
	if _, err := messages(ctx, all); err != nil { // git refuses some mails whatever the code is
		return err
	}
	failed := am(ctx, repo, all, exclude(e.PassedOver)...)
	if failed == nil {
		for _, p := range patches {
			if conflicts[p.Name] != nil {
				e.Merged = append(e.Merged, p.Name)
			}
		}
		rec.Tip, err = repo.Line(ctx, "rev-parse", "HEAD")
		return err
	}
	if ctx.Err() != nil {
		return failed
	}
	err = stoppedAt(ctx, repo, patches)
	stopped, ok := errors.AsType[*StoppedError](err)
	if !ok {
		return errors.Join(failed, err)
	}
	stopped.Conflict, stopped.LeftOut = conflicts[stopped.Patch], leftOut[stopped.Patch]
	return stopped
}

// stoppedAt returns a *StoppedError if git am has stopped at a patch.
func stoppedAt(ctx context.Context, repo *git.Repo, patches []*patch.Patch) error {
	name := waiting(ctx, repo)
	if name == "" {
		return nil
	}
	files, err := repo.Line(ctx, "diff", "--name-only", "--diff-filter=U", "-z")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(patches, func(p *patch.Patch) bool { return p.Name == name })
	return &StoppedError{Copy: repo.Dir, Patch: name, Files: strings.FieldsFunc(files, func(r rune) bool { return r == 0 }),
		Later: len(patches) - i - 1}
}

// inModuleCache returns a function that finds a content in any version of a module that the module cache has, such as the one before
// a bump.
func inModuleCache(up *source) func(name, blob string) ([]byte, bool) {
	return func(name, blob string) ([]byte, bool) {
		m, rest, ok := up.Find(name)
		if !ok || strings.Trim(blob, "0") == "" {
			return nil, false
		}
		base, _, _ := strings.Cut(filepath.Base(m.Source), "@")
		versions, err := filepath.Glob(filepath.Join(filepath.Dir(m.Source), base+"@*", filepath.FromSlash(rest)))
		if err != nil {
			return nil, false
		}
		for _, file := range versions {
			if data, err := os.ReadFile(file); err == nil && strings.HasPrefix(patch.Blob(data), blob) {
				return data, true
			}
		}
		return nil, false
	}
}

// contents returns the data of patches by base name.
func contents(patches []*patch.Patch) map[string][]byte {
	all := map[string][]byte{}
	for _, p := range patches {
		all[path.Base(p.Name)] = p.Data
	}
	return all
}
