package patching

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/git"
	"slipway.build/pkg/tree/patch"
)

// Saved says what Save has done to the files of patches. Names are relative to the tree's root.
type Saved struct {
	Copy       string       `json:"copy"`
	Version    string       `json:"version"` // of upstream in the copy
	Kept       []string     `json:"kept,omitempty"`
	Written    []string     `json:"written,omitempty"` // new, or changed
	Renamed    []Renamed    `json:"renamed,omitempty"`
	Removed    []string     `json:"removed,omitempty"`
	PassedOver []PassedOver `json:"passedOver,omitempty"`
	Stale      string       `json:"stale,omitempty"` // the version that the tree takes, if it is another one
}

// Renamed is a patch with the same content under another name.
type Renamed struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// A ChangedError says that a file of a patch is not as it was when the copy was laid out or saved.
type ChangedError struct{ Patch string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("patch %s has changed since the copy was laid out", e.Patch)
}

// A NoCopyError says that Save has nothing to save from.
type NoCopyError struct{ Copy, Project string }

func (e *NoCopyError) Error() string {
	return fmt.Sprintf("%s: there is no copy of %s to save", e.Copy, e.Project)
}

// A NotYetError says that a patch has no commit in the copy yet.
type NotYetError struct{ Copy, Patch string }

func (e *NotYetError) Error() string { return fmt.Sprintf("%s is not in %s yet", e.Patch, e.Copy) }

// A file is a patch that Save writes.
type file struct {
	name string // base name; empty if the commit is new
	data []byte
	was  string // base name of the recorded patch that it comes of
	kept bool   // the data are the recorded patch's

	commits []recordedMail
}

// Save writes the copy's commits back as patches. Commits that nobody changed keep their files as they are. With force, Save replaces files
// that have changed since.
func (d *Desk) Save(ctx context.Context, force bool) (*Saved, error) {
	repo, rec, err := d.open()
	if err != nil {
		return nil, err
	}
	if rec == nil {
		return nil, &NoCopyError{repo.Dir, d.Project}
	}
	if rec.Moving {
		if err := d.recover(ctx, repo, rec); err != nil {
			return nil, err
		}
	}
	if err := savable(ctx, repo, rec); err != nil {
		return nil, err
	}
	commits, err := commits(ctx, repo, rec)
	if err != nil {
		return nil, err
	}
	// A file whose hunks have only moved stays as it is, unless they would then apply elsewhere.
	var files []file
	var skipped []patch.Skipped
	for _, moved := range []bool{true, false} {
		if files, err = d.match(ctx, repo, rec, commits, moved); err != nil {
			return nil, err
		}
		var differs string
		if differs, skipped, err = d.check(ctx, repo, rec, files); err != nil {
			return nil, err
		}
		if differs == "" {
			break
		}
		if !moved {
			return nil, fmt.Errorf("%s cannot be saved as a patch: applied again, its content is another one", differs)
		}
	}
	name(files)
	s := &Saved{Copy: repo.Dir, Version: rec.Version, PassedOver: passedOver(skipped)}
	if err := d.replace(rec, files, force, s); err != nil {
		return nil, err
	}
	if err := d.record(ctx, repo, rec, files); err != nil {
		return nil, err
	}
	if r, err := d.repository(); err == nil {
		if i := slices.IndexFunc(r.Places, func(p patch.Place) bool { return p.Folder == "" }); i >= 0 && r.Places[i].Version != rec.Version {
			s.Stale = r.Places[i].Version
		}
	}
	return s, nil
}

// savable returns an error if the copy is in the middle of something.
func savable(ctx context.Context, repo *git.Repo, rec *record) error {
	if operation := inProgress(repo); operation != "" {
		return &UnsavedError{rec.Project, repo.Dir, operation + " in progress"}
	}
	dirty, err := repo.Line(ctx, "status", "--porcelain", "--untracked-files=normal")
	if err != nil {
		return err
	}
	if dirty != "" {
		return &UnsavedError{rec.Project, repo.Dir, count(len(strings.Split(dirty, "\n")), "file") + " with changes that are not committed"}
	}
	if err := rec.resolve(ctx, repo); err != nil {
		return err
	}
	if n := rec.next(); n >= 0 {
		return &NotYetError{repo.Dir, rec.Patches[n].Name}
	}
	base, err := repo.Line(ctx, "rev-list", "--max-count=1", rec.Base, "^HEAD") // empty if HEAD has it
	if err != nil {
		return err
	}
	if base != "" {
		return fmt.Errorf("%s: its commits do not begin at %s %s", repo.Dir, rec.Project, rec.Version)
	}
	merges, err := repo.Line(ctx, "rev-list", "--merges", rec.Base+"..HEAD")
	if err != nil {
		return err
	}
	if first, _, _ := strings.Cut(merges, "\n"); first != "" {
		return fmt.Errorf("%s: commit %s is a merge, which no patch can hold: rebase on %s", repo.Dir, first, rec.Version)
	}
	return nil
}

// A commit is a commit of the copy as a mail.
type commit struct {
	recordedMail
	text  []byte
	empty bool
}

func commits(ctx context.Context, repo *git.Repo, rec *record) ([]commit, error) {
	out, err := repo.Line(ctx, "log", "--reverse", "--topo-order", "--format=%H %T %s", rec.Base+"..HEAD")
	if err != nil || out == "" {
		return nil, err
	}
	before, err := repo.Line(ctx, "rev-parse", rec.Base+"^{tree}")
	if err != nil {
		return nil, err
	}
	var list []commit
	for line := range strings.SplitSeq(out, "\n") {
		id, rest, _ := strings.Cut(line, " ")
		tree, title, _ := strings.Cut(rest, " ")
		c := commit{recordedMail: recordedMail{ID: id, Title: title}, empty: tree == before}
		if c.text, err = format(ctx, repo, id); err != nil {
			return nil, err
		}
		list = append(list, c)
		before = tree
	}
	return list, nil
}

// match returns a file for each commit, or for several that a recorded patch holds unchanged.
func (d *Desk) match(ctx context.Context, repo *git.Repo, rec *record, commits []commit, moved bool) ([]file, error) {
	var files []file
	left := slices.Clone(rec.Patches)
	for len(commits) > 0 {
		i, err := unchanged(ctx, repo, left, commits, moved)
		if err != nil {
			return nil, err
		}
		if i >= 0 {
			p := left[i]
			data, err := d.recordedData(ctx, repo, p)
			if err != nil {
				return nil, err
			}
			f := file{name: path.Base(p.Name), was: path.Base(p.Name), data: data, kept: true}
			for _, c := range commits[:p.Size] {
				f.commits = append(f.commits, c.recordedMail)
			}
			files, commits, left = append(files, f), commits[p.Size:], slices.Delete(left, i, i+1)
			continue
		}
		c := commits[0]
		if c.empty {
			return nil, fmt.Errorf("commit %.12s (%s) changes nothing: drop it, with git rebase", c.ID, c.Title)
		}
		f := file{data: c.text, commits: []recordedMail{c.recordedMail}}
		if i := slices.IndexFunc(left, c.replaces); i >= 0 {
			f.name, f.was = path.Base(left[i].Name), path.Base(left[i].Name)
			left = slices.Delete(left, i, i+1)
		}
		files, commits = append(files, f), commits[1:]
	}
	return files, nil
}

// unchanged returns the index of the patch whose commits are the next ones, or -1.
func unchanged(ctx context.Context, repo *git.Repo, left []recorded, commits []commit, moved bool) (int, error) {
next:
	for i, p := range left {
		if p.Size > len(commits) {
			continue
		}
		for j, known := range p.Commits {
			if known.Resolved {
				continue next
			}
			if known.ID == commits[j].ID {
				continue
			}
			text, err := format(ctx, repo, known.ID)
			if err != nil {
				return 0, err
			}
			if !alike(text, commits[j].text, moved) {
				continue next
			}
		}
		return i, nil
	}
	return -1, nil
}

// replaces reports whether the commit is a patch's, amended.
func (c commit) replaces(p recorded) bool {
	return p.Size == 1 && (p.Commits[0].Title == c.Title || p.Commits[0].ID == c.ID)
}

// check applies the files to upstream's code, as builds will. It returns the first file whose content is then not the copy's, or "".
func (d *Desk) check(ctx context.Context, repo *git.Repo, rec *record, files []file) (differs string, skipped []patch.Skipped, err error) {
	repository, err := d.repository()
	if err != nil {
		return "", nil, err
	}
	overlay := patch.NewOverlay(repository, commitTree{ctx, repo, rec.Base})
	for _, f := range files {
		p, err := patch.Parse(f.label(), f.data)
		if err != nil {
			return "", nil, fmt.Errorf("%s cannot be saved: %w", f.title(), err)
		}
		report, err := overlay.Apply(p)
		if err != nil {
			return "", nil, err
		}
		if report.Verdict == patch.Conflicts {
			return report.Conflict.File, nil, nil
		}
		if err := report.Err(); err != nil && !f.kept {
			return "", nil, fmt.Errorf("%s cannot be saved: %w", f.title(), err)
		}
		skipped = append(skipped, report.Skipped...)
	}
	for name, change := range overlay.Changes() {
		data, err := patch.Dir(repo.Dir).ReadFile(name)
		gone := errors.Is(err, fs.ErrNotExist)
		if err != nil && !gone {
			return "", nil, err
		}
		if gone != change.Removed || !bytes.Equal(data, change.Data) {
			return name, nil, nil
		}
	}
	return "", skipped, nil
}

func (f file) title() string {
	if len(f.commits) == 0 || f.commits[0].Title == "" {
		return "a commit without a title"
	}
	return fmt.Sprintf("commit %q", f.commits[0].Title)
}

func (f file) label() string {
	if f.name != "" {
		return f.name
	}
	return f.title()
}

// A commitTree reads files of a commit.
type commitTree struct {
	ctx    context.Context
	repo   *git.Repo
	commit string
}

func (t commitTree) ReadFile(name string) ([]byte, error) {
	// A failure of cat-file does not say whether there is no such file, or git cannot read it. The list of none is empty.
	entry, err := t.repo.Line(t.ctx, "--literal-pathspecs", "ls-tree", "-z", "--full-tree", t.commit, "--", name)
	if err != nil {
		return nil, err
	}
	mode, rest, _ := strings.Cut(entry, " ")
	kind, rest, _ := strings.Cut(rest, " ")
	if mode == "" || kind != "blob" {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	blob, _, _ := strings.Cut(rest, "\t")
	return t.repo.Run(t.ctx, "cat-file", "blob", blob)
}

// replace replaces the folder of patches, if one is another.
func (d *Desk) replace(rec *record, files []file, force bool, s *Saved) error {
	folder := d.series().Dir()
	now, err := readPatches(d.abs(folder))
	if err != nil {
		return err
	}
	next := map[string][]byte{}
	known := map[string]bool{}
	for _, p := range rec.Patches {
		known[path.Base(p.Name)] = true
	}
	for base, data := range now {
		if !known[base] {
			next[base] = data // added while the copy was edited
		}
	}
	used := map[string]bool{}
	for _, f := range files {
		if _, taken := next[f.name]; taken && !force && !bytes.Equal(now[f.name], f.data) {
			return &ChangedError{path.Join(folder, f.name)}
		}
		next[f.name] = f.data
		used[f.was] = true
		full := path.Join(folder, f.name)
		switch {
		case f.was != "" && f.was != f.name && f.kept:
			s.Renamed = append(s.Renamed, Renamed{path.Join(folder, f.was), full})
		case bytes.Equal(now[f.name], f.data):
			s.Kept = append(s.Kept, full)
		default:
			s.Written = append(s.Written, full)
		}
	}
	for _, p := range rec.Patches {
		base := path.Base(p.Name)
		if _, there := now[base]; there && !used[base] {
			s.Removed = append(s.Removed, p.Name)
		}
	}
	if same(now, next) {
		return nil
	}
	if !force {
		for _, p := range rec.Patches {
			if digest(now[path.Base(p.Name)]) != p.SHA256 {
				return &ChangedError{p.Name}
			}
		}
	}
	return d.write(folder, next)
}

// recordedData returns the content of a recorded patch, which the copy keeps.
func (d *Desk) recordedData(ctx context.Context, repo *git.Repo, p recorded) ([]byte, error) {
	data, err := os.ReadFile(d.abs(p.Name))
	if err == nil && digest(data) == p.SHA256 {
		return data, nil
	}
	return repo.Run(ctx, "cat-file", "blob", "refs/slipway/patches/"+p.SHA256)
}

func (d *Desk) abs(name string) string { return filepath.Join(d.Root, filepath.FromSlash(name)) }

// record records what was saved.
func (d *Desk) record(ctx context.Context, repo *git.Repo, rec *record, files []file) error {
	rec.Patches = nil
	for _, f := range files {
		p := recorded{Name: path.Join(d.series().Dir(), f.name), SHA256: digest(f.data), Size: len(f.commits), Commits: f.commits}
		if err := keepPatch(ctx, repo, p.SHA256, f.data); err != nil {
			return err
		}
		rec.Patches = append(rec.Patches, p)
	}
	var err error
	if rec.Tip, err = repo.Line(ctx, "rev-parse", "HEAD"); err != nil {
		return err
	}
	return errors.Join(rec.keep(ctx, repo), rec.write(repo.Dir))
}

// keepPatch puts the content of a patch into the copy's objects.
func keepPatch(ctx context.Context, repo *git.Repo, sum string, data []byte) error {
	out, err := repo.Feed(ctx, bytes.NewReader(data), "hash-object", "-w", "--no-filters", "--stdin")
	if err != nil {
		return err
	}
	return setRef(ctx, repo, "refs/slipway/patches/"+sum, strings.TrimSpace(string(out)))
}

// setRef sets a reference below refs/slipway. Nobody else does, and one run at a time works in a tree, so a lock on it is of a git that
// was killed.
func setRef(ctx context.Context, repo *git.Repo, name, object string) error {
	lock := filepath.Join(repo.Dir, ".git", filepath.FromSlash(name)+".lock")
	if err := os.Remove(lock); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_, err := repo.Run(ctx, "update-ref", name, object)
	return err
}
