package patching

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	gomod "golang.org/x/mod/module"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/tree/patch"
)

// Listed reports on a patch of a tree.
type Listed struct {
	Project    string          `json:"project"`
	Patch      string          `json:"patch"` // its file, relative to the tree's root
	SHA256     string          `json:"sha256"`
	Title      string          `json:"title,omitempty"`
	Commits    int             `json:"commits"`
	Files      []string        `json:"files"` // in upstream's repository
	Verdict    string          `json:"verdict"`
	Offset     int             `json:"offset"` // lines by which the hunk that has moved farthest has moved
	Moved      []patch.Moved   `json:"moved,omitempty"`
	PassedOver []patch.Skipped `json:"passedOver,omitempty"`
	Conflict   *patch.Conflict `json:"conflict,omitempty"`
	Err        error           `json:"-"` // as patch.Report.Err says it
}

// List reports on the project's patches, in the order in which they apply.
func (w *Workspace) List(ctx context.Context) ([]Listed, error) {
	patches, err := w.load()
	if err != nil || len(patches) == 0 {
		return nil, err
	}
	reports, err := w.check(ctx, patches)
	if err != nil {
		return nil, err
	}
	var list []Listed
	for _, r := range reports {
		list = append(list, Listed{
			Project: w.Project, Patch: r.Patch.Name, SHA256: r.Patch.SHA256, Title: r.Patch.Title(), Commits: len(r.Patch.Commits),
			Files: r.Patch.Paths(), Verdict: r.Verdict.String(), Offset: r.Offset(), Moved: r.Moved, PassedOver: r.Skipped,
			Conflict: r.Conflict, Err: r.Err(),
		})
	}
	return list, nil
}

// check applies patches to upstream's code.
func (w *Workspace) check(ctx context.Context, patches []*patch.Patch) ([]patch.Report, error) {
	repository, err := w.whole()
	if err != nil {
		return nil, err
	}
	up, err := w.upstream(ctx, patches)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(up.before)
	for _, p := range patches {
		all = append(all, p.Mounted())
	}
	reports, err := patch.NewOverlay(repository, patch.Modules{Repository: repository, Dir: func(p patch.Place) (string, error) {
		for _, m := range up.Modules {
			if m.Path == p.Module || m.Dir == path.Clean(p.Folder) {
				return m.Source, nil
			}
		}
		return "", fmt.Errorf("module %s is none of %s", p.Module, up.Path)
	}}).Check(all)
	if err != nil {
		return nil, err
	}
	reports = reports[len(up.before):]
	for i := range reports {
		reports[i].Patch = patches[i]
	}
	return reports, nil
}

// Added is the result of Add.
type Added struct {
	Patch      string          `json:"patch"` // its file, relative to the tree's root
	Title      string          `json:"title,omitempty"`
	Verdict    string          `json:"verdict"`
	Offset     int             `json:"offset"` // as in Listed
	PassedOver []patch.Skipped `json:"passedOver,omitempty"`
}

// A NothingError says that adding a patch would change nothing.
type NothingError struct {
	text     string
	Upstream bool // the code has the change; false if the tree has the patch
}

func (e *NothingError) Error() string { return e.text }

// Add adds a patch as the last one. It keeps the name if that sorts last, and otherwise puts a number before it. With force, it adds a
// patch even if that does not apply, for Edit to resolve.
func (w *Workspace) Add(ctx context.Context, name string, data []byte, force bool) (*Added, error) {
	label := name
	if label == "" {
		label = "on standard input"
	}
	p, err := patch.Parse(label, data)
	if err == nil {
		err = p.AgreesWithGit(ctx)
	}
	if err != nil {
		return nil, badrequest.Mark(err)
	}
	folder := w.series().Dir()
	files, err := readPatches(w.abs(folder))
	if err != nil {
		return nil, err
	}
	for base, have := range files {
		if bytes.Equal(have, data) {
			return nil, &NothingError{path.Join(folder, base) + " is this patch already", false}
		}
	}
	base, err := newName(slices.Sorted(maps.Keys(files)), name, p)
	if err != nil {
		return nil, err
	}
	if err := w.Unsaved(ctx); err != nil && !force {
		return nil, err
	}
	p.Name, p.Project, p.Module = path.Join(folder, base), w.series().Project, w.series().Module
	before, err := w.load()
	if err != nil {
		return nil, err
	}
	reports, err := w.check(ctx, append(before, p))
	if err != nil {
		return nil, err
	}
	r := reports[len(reports)-1]
	switch {
	case r.Err() != nil && !force:
		return nil, r.Err()
	case r.Verdict == patch.Upstream && !force:
		return nil, &NothingError{fmt.Sprintf("patch %s changes nothing: upstream, or a patch before it, has it already", label), true}
	}
	added := &Added{p.Name, p.Title(), r.Verdict.String(), r.Offset(), r.Skipped}
	if w.assumed != nil {
		return added, nil
	}
	files[base] = data
	return added, w.write(folder, files)
}

// Try is Add, but adds nothing, and has the tree require newer versions of linked modules.
func (w *Workspace) Try(ctx context.Context, name string, data []byte, newer []gomod.Version) (*Added, error) {
	tried := *w
	tried.assumed = newer
	return tried.Add(ctx, name, data, false)
}

// newName returns a file name for a new patch, which sorts last.
func newName(files []string, name string, p *patch.Patch) (string, error) {
	last := ""
	if len(files) > 0 {
		last = files[len(files)-1]
	}
	base := path.Base(strings.ReplaceAll(name, `\`, "/"))
	if name == "" {
		base = p.Title()
		if base == "" {
			base = "change " + path.Base(p.Paths()[0])
		}
	}
	base = strings.TrimSuffix(strings.TrimSuffix(base, ".diff"), patch.Suffix)
	inOrder := leading(last) == 0 || leading(base) > leading(last)
	if as := base + patch.Suffix; name != "" && as > last && inOrder && !strings.HasPrefix(as, ".") {
		return as, nil
	}
	as := numbered(leading(last)+1, number.ReplaceAllString(base, ""))
	if as <= last {
		return "", fmt.Errorf("patches apply in the order of their names, and no number sorts behind %s: give the file a name that does", last)
	}
	return as, nil
}

// Drop removes a patch by its file name, or by a unique part of that. With force, it does so even if other patches then do not apply.
func (w *Workspace) Drop(ctx context.Context, name string, force bool) (dropped string, err error) {
	folder := w.series().Dir()
	files, err := readPatches(w.abs(folder))
	if err != nil {
		return "", err
	}
	base, err := choose(slices.Sorted(maps.Keys(files)), folder, name)
	if err != nil {
		return "", err
	}
	delete(files, base)
	if !force {
		if err := w.Unsaved(ctx); err != nil {
			return "", err
		}
		if err := w.rest(ctx, base); err != nil {
			return "", fmt.Errorf("without %s: %w", base, err)
		}
	}
	return path.Join(folder, base), w.write(folder, files)
}

// choose returns the file that a name means.
func choose(files []string, folder, name string) (string, error) {
	if name == "" {
		return "", badrequest.Mark(errors.New("no patch is named: give its file's name, or a part of it"))
	}
	base := path.Base(name)
	if slices.Contains(files, base) && (base == name || path.Dir(name) == folder) {
		return base, nil
	}
	var like []string
	for _, f := range files {
		if strings.Contains(f, name) {
			like = append(like, f)
		}
	}
	switch len(like) {
	case 1:
		return like[0], nil
	case 0:
		return "", badrequest.Mark(fmt.Errorf("no patch in %s is called %q%s", folder, name, suggest.DidYouMean(suggest.Near(name, files))))
	}
	return "", badrequest.Mark(fmt.Errorf("%q means several patches: %s", name, strings.Join(like, ", ")))
}

// rest returns an error if a patch that applies now does not apply without the one in a file.
func (w *Workspace) rest(ctx context.Context, base string) error {
	patches, err := w.load()
	if errors.As(err, new(*patch.InvalidError)) {
		return nil // dropping is how to get rid of one
	}
	if err != nil {
		return err
	}
	with, err := w.check(ctx, patches)
	if err != nil {
		return err
	}
	applies := map[*patch.Patch]bool{}
	for _, r := range with {
		applies[r.Patch] = r.Verdict != patch.Conflicts
	}
	without, err := w.check(ctx, slices.DeleteFunc(patches, func(p *patch.Patch) bool { return path.Base(p.Name) == base }))
	for _, r := range without {
		if r.Verdict == patch.Conflicts && applies[r.Patch] {
			return r.Conflict
		}
	}
	return err
}
