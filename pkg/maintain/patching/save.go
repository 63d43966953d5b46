package patching

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/git"
	"slipway.build/pkg/tree/patch"
)

// Saved is the result of Save. The names of files are relative to the tree's root.
type Saved struct {
	Copy       string          `json:"copy"`
	Version    string          `json:"version"` // of upstream in the copy
	Kept       []string        `json:"kept,omitempty"`
	Written    []string        `json:"written,omitempty"` // new, or changed
	Renamed    []Renamed       `json:"renamed,omitempty"`
	Removed    []string        `json:"removed,omitempty"`
	PassedOver []patch.Skipped `json:"passedOver,omitempty"`
	Stale      string          `json:"stale,omitempty"` // the version that the tree takes, if it differs
}

// Renamed is a patch with the same content under another name.
type Renamed struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// A ChangedError says that a patch's file has changed since the copy was laid out or saved.
type ChangedError struct{ Patch string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("patch %s has changed since the copy was laid out", e.Patch)
}

// A NoCopyError says that Save has nothing to save from.
type NoCopyError struct{ Copy, Project string }

func (e *NoCopyError) Error() string {
	return fmt.Sprintf("%s: there is no copy of %s to save", e.Copy, e.Project)
}

// A NotYetError says that the patches of a copy are not in it, since git am was aborted.
type NotYetError struct{ Copy, Patch string }

func (e *NotYetError) Error() string { return fmt.Sprintf("%s is not in %s yet", e.Patch, e.Copy) }

// A file is the file of a patch after Save.
type file struct {
	name  string // base name; empty if the commit is new
	title string // of the first commit
	data  []byte
	was   string // base name of the recorded patch that it replaces, or is
	kept  bool   // it is that patch, unchanged
}

// Save writes the copy's commits back as patches. The files of commits that did not change stay as they are. With force, Save replaces
// files that have changed since.
func (w *Workspace) Save(ctx context.Context, force bool) (*Saved, error) {
	repo, rec, err := w.open()
	if err != nil {
		return nil, err
	}
	if rec == nil {
		return nil, &NoCopyError{repo.Dir, w.Project}
	}
	if err := w.savable(ctx, repo, rec); err != nil {
		return nil, err
	}
	repository, err := w.repository()
	if err != nil {
		return nil, err
	}
	s := &Saved{Copy: repo.Dir, Version: rec.Version}
	files, err := w.match(ctx, repo, rec, repository, s)
	if err != nil {
		return nil, err
	}
	name(files)
	if err := w.replace(rec, files, force, s); err != nil {
		return nil, err
	}
	rec.Patches = map[string][]byte{}
	for _, f := range files {
		rec.Patches[f.name] = f.data
	}
	if rec.Tip, err = repo.Line(ctx, "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	if err := rec.write(repo.Dir); err != nil {
		return nil, err
	}
	for _, p := range repository.Places {
		if p.Folder == "" && p.Version != rec.Version {
			s.Stale = p.Version
		}
	}
	return s, nil
}

// savable returns an error if the commits of the copy are no series of patches.
func (w *Workspace) savable(ctx context.Context, repo *git.Repo, rec *record) error {
	if err := rec.uncommitted(ctx, repo); err != nil {
		return err
	}
	if aborted, err := rec.aborted(ctx, repo); err != nil {
		return err
	} else if aborted {
		return &NotYetError{repo.Dir, path.Join(w.series().Dir(), slices.Min(slices.Collect(maps.Keys(rec.Patches))))}
	}
	head, err := repo.Line(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if _, detached := repo.Line(ctx, "symbolic-ref", "--quiet", "HEAD"); detached != nil && head == rec.Base && len(rec.Patches) > 0 {
		return fmt.Errorf("%s: upstream's version is checked out, without the patches and on no branch", repo.Dir)
	}
	base, err := repo.Line(ctx, "rev-list", "--max-count=1", rec.Base, "^HEAD") // empty if HEAD has it
	if err != nil {
		return err
	}
	if base != "" {
		return fmt.Errorf("%s: its commits do not begin at %s %s", repo.Dir, rec.Project, rec.Version)
	}
	merge, err := repo.Line(ctx, "rev-list", "--merges", "--max-count=1", rec.Base+"..HEAD")
	if err != nil {
		return err
	}
	if merge != "" {
		return fmt.Errorf("%s: commit %s is a merge, which no patch can hold: rebase on %s", repo.Dir, merge, rec.Version)
	}
	return nil
}

// A commit is a commit of the copy.
type commit struct {
	id, tree, title string
	data            []byte // as a mail
	message         string // that git am reads in the mail
}

func (c commit) String() string {
	if c.title == "" {
		return "a commit without a title"
	}
	return fmt.Sprintf("commit %q", c.title)
}

func commits(ctx context.Context, repo *git.Repo, rec *record) ([]commit, error) {
	out, err := repo.Line(ctx, "log", "--reverse", "--topo-order", "--format=%H %T %s", rec.Base+"..HEAD")
	if err != nil || out == "" {
		return nil, err
	}
	var list []commit
	var all []mail
	for line := range strings.SplitSeq(out, "\n") {
		words := strings.SplitN(line, " ", 3)
		c := commit{id: words[0], tree: words[1], title: words[2]}
		if c.data, err = format(ctx, repo, c.id); err != nil {
			return nil, err
		}
		list = append(list, c)
		m := mail{patch: &patch.Patch{Commits: []patch.Commit{{Text: c.data, Message: string(c.data)}}}}
		m.text = m.unchanged()
		all = append(all, m)
	}
	read, err := messages(ctx, all)
	for i := range read {
		list[i].message = read[i]
	}
	return list, err
}

// format returns a commit as a mail. It depends on the commit alone, not on the machine, the user or other objects.
func format(ctx context.Context, repo *git.Repo, commit string) ([]byte, error) {
	return repo.Run(ctx, "format-patch", "--stdout", "-1", "--always", "--no-numbered", "--zero-commit", "--no-signature", "--full-index",
		"--binary", "--find-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", "--stat=72",
		"--encode-email-headers", "--no-attach", "--no-thread", "--no-notes", "--subject-prefix=PATCH", commit)
}

// A recorded patch is one that the copy was laid out with, or that was saved last.
type recorded struct {
	*patch.Patch
	messages []string // of its commits
}

func (w *Workspace) recorded(ctx context.Context, rec *record) ([]recorded, error) {
	var list []recorded
	var all []mail
	for _, base := range slices.Sorted(maps.Keys(rec.Patches)) {
		p, err := patch.Parse(path.Join(w.series().Dir(), base), rec.Patches[base])
		if err != nil {
			return nil, err
		}
		list = append(list, recorded{Patch: p})
		all = append(all, mails(p, patch.Applies)...)
	}
	read, err := messages(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range list {
		n := len(list[i].Commits)
		list[i].messages, read = read[:n], read[n:]
	}
	return list, nil
}

// match returns a file for each commit, or for several that a recorded patch has unchanged. It applies the files as builds do.
func (w *Workspace) match(ctx context.Context, repo *git.Repo, rec *record, repository *patch.Repository, s *Saved) ([]file, error) {
	commits, err := commits(ctx, repo, rec)
	if err != nil {
		return nil, err
	}
	left, err := w.recorded(ctx, rec)
	if err != nil {
		return nil, err
	}
	overlay := patch.NewOverlay(repository, commitTree{ctx, repo, rec.Base})
	var files []file
	for len(commits) > 0 {
		c := commits[0]
		f, size := file{title: c.title}, 1
		var p *patch.Patch
		at := slices.IndexFunc(left, func(r recorded) bool {
			var n int
			if n, err = r.unchanged(ctx, repo, patch.NewOverlay(repository, overlay), commits); n > 0 {
				p, size = r.Patch, n
			}
			return n > 0 || err != nil
		})
		if err != nil {
			return nil, err
		}
		if f.kept = p != nil; !f.kept {
			if !bytes.Contains(c.data, []byte("\ndiff --git ")) {
				return nil, fmt.Errorf("commit %.12s (%s) changes nothing: drop it, with git rebase", c.id, c.title)
			}
			if p, err = patch.Parse(c.String(), c.data); err != nil {
				return nil, fmt.Errorf("%s cannot be saved: %w", c, err)
			}
			at = slices.IndexFunc(left, func(r recorded) bool { return len(r.Commits) == 1 && title(r.messages[0]) == title(c.message) })
		}
		if at >= 0 {
			f.was = path.Base(left[at].Name)
			f.name = f.was
			left = slices.Delete(left, at, at+1)
		}
		report, err := overlay.Apply(p)
		if err == nil && !f.kept {
			err = report.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("%s cannot be saved: %w", c, err)
		}
		s.PassedOver = append(s.PassedOver, report.Skipped...)
		f.data = p.Data
		files, commits = append(files, f), commits[size:]
	}
	for name, change := range overlay.Changes() {
		data, err := patch.Dir(repo.Dir).ReadFile(name)
		gone := errors.Is(err, fs.ErrNotExist)
		if err != nil && !gone {
			return nil, err
		}
		if gone != change.Removed || !bytes.Equal(data, change.Data) {
			return nil, fmt.Errorf("%s cannot be saved as a patch: applied again, it has other content", name)
		}
	}
	return files, nil
}

// unchanged returns how many of the next commits git would make of the patch, and 0 if these differ or builds do not apply it.
func (r recorded) unchanged(ctx context.Context, repo *git.Repo, overlay *patch.Overlay, commits []commit) (int, error) {
	if r.messages[0] != commits[0].message {
		return 0, nil
	}
	report, err := overlay.Apply(r.Patch)
	if err != nil {
		return 0, err
	}
	parts := mails(r.Patch, report.Verdict)
	if report.Verdict == patch.Conflicts || len(parts) > len(commits) {
		return 0, nil
	}
	for i, m := range parts {
		tree, err := applied(ctx, repo, commits[i].id+"^", m, exclude(report.Skipped))
		if err != nil || tree != commits[i].tree || r.messages[i] != commits[i].message {
			return 0, err
		}
	}
	return len(parts), nil
}

// applied returns the tree that a mail makes of another. It is empty if the mail does not apply.
func applied(ctx context.Context, repo *git.Repo, tree string, m mail, options []string) (string, error) {
	tmp, err := os.MkdirTemp("", "slipway-index-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	repo = repo.With("GIT_INDEX_FILE=" + filepath.Join(tmp, "index"))
	if _, err := repo.Run(ctx, "read-tree", tree); err != nil {
		return "", err
	}
	args := append([]string{"apply", "--cached", "--whitespace=nowarn"}, options...)
	if _, err := repo.Feed(ctx, bytes.NewReader(m.text), args...); err != nil {
		if errors.As(err, new(*git.Error)) {
			err = nil
		}
		return "", err
	}
	return repo.Line(ctx, "write-tree")
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

// replace replaces the folder of patches, if any of them differs.
func (w *Workspace) replace(rec *record, files []file, force bool, s *Saved) error {
	folder := w.series().Dir()
	now, err := readPatches(w.abs(folder))
	if err != nil {
		return err
	}
	next := maps.Clone(now)
	maps.DeleteFunc(next, func(base string, _ []byte) bool { return rec.Patches[base] != nil }) // the rest was added while the copy was edited
	used := map[string]bool{}
	for _, f := range files {
		full := path.Join(folder, f.name)
		same := bytes.Equal(now[f.name], f.data)
		if _, taken := next[f.name]; taken && !force && !same {
			return &ChangedError{full}
		}
		next[f.name] = f.data
		used[f.was] = true
		switch {
		case f.was != "" && f.was != f.name && f.kept:
			s.Renamed = append(s.Renamed, Renamed{path.Join(folder, f.was), full})
		case same:
			s.Kept = append(s.Kept, full)
		default:
			s.Written = append(s.Written, full)
		}
	}
	differs := !maps.EqualFunc(now, next, bytes.Equal)
	for _, base := range slices.Sorted(maps.Keys(rec.Patches)) {
		full := path.Join(folder, base)
		if differs && !force && !bytes.Equal(now[base], rec.Patches[base]) {
			return &ChangedError{full}
		}
		if now[base] != nil && !used[base] {
			s.Removed = append(s.Removed, full)
		}
	}
	if !differs {
		return nil
	}
	return w.write(folder, next)
}
