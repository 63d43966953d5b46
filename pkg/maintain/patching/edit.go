package patching

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/make/upstream"
	"slipway.build/pkg/mechanism/atomicdir"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/git"
	"slipway.build/pkg/tree/patch"
)

// Edited says what Edit has laid out.
type Edited struct {
	Copy       string             `json:"copy"`
	Version    string             `json:"version"` // of upstream, and the tag of its code in the copy
	State      State              `json:"state"`
	Patches    int                `json:"patches"`              // with commits in the copy
	Unsaved    string             `json:"unsaved,omitempty"`    // what is in the copy and in no patch
	Missing    []upstream.Missing `json:"-"`                    // modules that the copy lacks
	Merged     []string           `json:"merged,omitempty"`     // patches that apply only by a three-way merge
	PassedOver []PassedOver       `json:"passedOver,omitempty"` // changes that are not in the copy
}

// A State says where a copy comes from.
type State string

// The states.
const (
	New       State = "new"
	Continued State = "continued" // patches were applied after the one that had stopped it
	Kept      State = "kept"      // it was there, and nothing had to be done
)

// A StoppedError says that a patch does not apply, and is waiting in the copy to be resolved.
type StoppedError struct {
	Copy     string
	Patch    string          // its file
	Conflict *patch.Conflict // nil if it stopped at an earlier time
	Files    []string        // to resolve
	LeftOut  []string        // changes of whole files that could not be marked
	Later    int             // patches after it
}

func (e *StoppedError) Error() string {
	if e.Conflict != nil {
		return e.Conflict.Error()
	}
	return fmt.Sprintf("patch %s is not resolved yet", e.Patch)
}

func (e *StoppedError) Unwrap() error {
	if e.Conflict == nil {
		return nil
	}
	return e.Conflict
}

// Edit lays out the copy, or goes on where a patch stopped it. With force, it throws an existing copy away.
func (d *Desk) Edit(ctx context.Context, force bool) (*Edited, error) {
	repo, rec, err := d.open()
	if err != nil {
		return nil, err
	}
	patches, err := d.load()
	if err != nil {
		return nil, err
	}
	up, err := d.upstream(ctx)
	if err != nil {
		return nil, err
	}
	if rec == nil || force {
		return d.layOut(ctx, up, patches)
	}
	if rec.Moving {
		if err := d.recover(ctx, repo, rec); err != nil {
			return nil, err
		}
	}
	pending := unsaved(ctx, repo, rec)
	if bad := new(UnsavedError); pending != nil && !errors.As(pending, &bad) {
		return nil, pending
	}
	current := rec.Key == up.Key() && rec.holds(patches)
	switch {
	case !current && pending != nil:
		return nil, pending
	case !current && rec.Key == up.Key():
		return d.again(ctx, repo, rec, patches)
	case !current:
		return d.layOut(ctx, up, patches)
	case rec.next() >= 0:
		return d.goOn(ctx, repo, rec, patches)
	}
	e := &Edited{Copy: repo.Dir, Version: rec.Version, State: Kept, Patches: len(rec.Patches)}
	if bad := new(UnsavedError); errors.As(pending, &bad) {
		e.Unsaved = bad.What
	}
	return e, nil
}

// An InterruptedError says that a person committed to a copy in which patches were still being applied when the run was killed.
type InterruptedError struct {
	Copy string
	What string // "2 commits"
	Tip  string // the last commit that came of a patch
}

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("%s has %s on top of patches that were still being applied", e.Copy, e.What)
}

// recover puts a copy back in which a run was killed.
func (d *Desk) recover(ctx context.Context, repo *git.Repo, rec *record) error {
	if err := d.setAside(ctx, repo); err != nil {
		return err
	}
	return rec.putBack(ctx, repo)
}

// setAsideRef is the commit of what setAside has kept.
const setAsideRef = "refs/slipway/set-aside"

// setAside keeps what is not committed in a commit that is on no branch: a person may have edited files since the run was killed.
func (d *Desk) setAside(ctx context.Context, repo *git.Repo) error {
	dirty, err := repo.Line(ctx, "status", "--porcelain", "--untracked-files=normal")
	if err != nil || dirty == "" {
		return err
	}
	index := filepath.Join(repo.Dir, ".git", "slipway-index") // the work tree and its own index stay as they are
	if err := os.RemoveAll(index + ".lock"); err != nil {     // of a git that was killed here
		return err
	}
	if err := atomicfile.Copy(filepath.Join(repo.Dir, ".git", "index"), index); err != nil {
		return err
	}
	defer os.Remove(index)
	aside := repo.With("GIT_INDEX_FILE=" + index)
	if _, err := aside.Run(ctx, "add", "--all"); err != nil {
		return err
	}
	tree, err := aside.Line(ctx, "write-tree")
	if err != nil {
		return err
	}
	id, err := repo.Line(ctx, "commit-tree", "-p", "HEAD", "-m", "What was not committed when slipway put the copy back", tree)
	if err != nil {
		return err
	}
	d.progress("a run was killed while it changed %s; what was not committed there is kept: git -C %[1]s show %s", repo.Dir, setAsideRef)
	return setRef(ctx, repo, setAsideRef, id)
}

// putBack puts the copy back to the last patch that was committed before a run ended early. What that run left is nobody's work.
func (r *record) putBack(ctx context.Context, repo *git.Repo) error {
	if r.next() >= 0 || r.Before != "" { // otherwise, all that was missing is the record's last line
		if err := r.reset(ctx, repo); err != nil {
			return err
		}
	}
	r.Moving, r.Before = false, ""
	return r.write(repo.Dir)
}

func (r *record) reset(ctx context.Context, repo *git.Repo) error {
	args := []string{"log", "--format=%ce", r.Tip + "..HEAD"}
	if r.Before != "" {
		args = append(args, "^"+r.Before)
	}
	committers, err := repo.Line(ctx, args...)
	if err != nil {
		return err
	}
	others := 0
	for email := range strings.SplitSeq(committers, "\n") {
		if email != "" && email != git.Email {
			others++
		}
	}
	if others > 0 {
		return &InterruptedError{repo.Dir, count(others, "commit"), r.Tip}
	}
	for _, name := range []string{"index.lock", "HEAD.lock", filepath.Join("refs", "heads", "main.lock"), "rebase-apply"} {
		if err := os.RemoveAll(filepath.Join(repo.Dir, ".git", name)); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"reset", "--quiet", "--hard", r.Tip}, {"clean", "--quiet", "--force", "-d"}} {
		if _, err := repo.Run(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// load reads the project's patches.
func (d *Desk) load() ([]*patch.Patch, error) {
	return patch.LoadProject(d.Root, d.series().Project)
}

// holds reports whether the record is of these patches.
func (r *record) holds(patches []*patch.Patch) bool {
	return slices.EqualFunc(r.Patches, patches, func(known recorded, p *patch.Patch) bool {
		return known.Name == p.Name && known.SHA256 == p.SHA256
	})
}

// layOut makes a new copy under another name, and replaces the old one by it.
func (d *Desk) layOut(ctx context.Context, up *upstream.Repository, patches []*patch.Patch) (*Edited, error) {
	dir, err := filepath.Abs(d.Folder())
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return nil, err
	}
	// One name, so that what a killed run leaves is removed by the next one.
	tmp := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".new")
	if err := os.RemoveAll(tmp); err != nil {
		return nil, err
	}
	e, stopped := d.fill(ctx, up, patches, tmp)
	if conflict := new(StoppedError); stopped != nil && !errors.As(stopped, &conflict) {
		return nil, errors.Join(stopped, os.RemoveAll(tmp))
	} else if stopped != nil {
		conflict.Copy = dir
	}
	if err := atomicdir.Replace(tmp, dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(tmp))
	}
	if stopped != nil {
		return nil, stopped
	}
	e.Copy = dir
	return e, nil
}

// fill makes a copy in dir.
func (d *Desk) fill(ctx context.Context, up *upstream.Repository, patches []*patch.Patch, dir string) (*Edited, error) {
	d.progress("laying out %s %s", up.Path, up.Version)
	if err := up.Copy(ctx, dir); err != nil {
		return nil, err
	}
	repo, err := git.At(dir)
	if err != nil {
		return nil, err
	}
	if err := repo.Init(ctx); err != nil {
		return nil, err
	}
	rec := &record{Project: d.Project, Version: up.Version, Key: up.Key()}
	if rec.Base, err = repo.Commit(ctx, fmt.Sprintf("%s %s\n", up.Path, up.Version)); err != nil {
		return nil, err
	}
	if _, err := repo.Run(ctx, "tag", up.Version); err != nil {
		return nil, err
	}
	if err := rec.begin(ctx, repo, patches); err != nil {
		return nil, err
	}
	return d.apply(ctx, repo, rec, patches, &Edited{Version: up.Version, State: New, Missing: up.Missing})
}

// begin makes the record that of a copy without any of the patches.
func (r *record) begin(ctx context.Context, repo *git.Repo, patches []*patch.Patch) error {
	r.Before, r.Tip = r.Tip, r.Base
	r.Patches, r.Stopped, r.Moving = nil, false, true
	for _, p := range patches {
		all, err := mails(p)
		if err != nil {
			return err
		}
		if err := keepPatch(ctx, repo, p.SHA256, p.Data); err != nil {
			return err
		}
		r.Patches = append(r.Patches, recorded{Name: p.Name, SHA256: p.SHA256, Size: len(all)})
	}
	return r.write(repo.Dir)
}

// again applies other patches in a copy of the same code. Nothing in it is unsaved.
func (d *Desk) again(ctx context.Context, repo *git.Repo, rec *record, patches []*patch.Patch) (*Edited, error) {
	if err := rec.begin(ctx, repo, patches); err != nil {
		return nil, err
	}
	if err := rec.putBack(ctx, repo); err != nil {
		return nil, err
	}
	return d.move(ctx, repo, rec, patches, &Edited{Copy: repo.Dir, Version: rec.Version, State: New})
}

// goOn applies the patches after the one that had stopped.
func (d *Desk) goOn(ctx context.Context, repo *git.Repo, rec *record, patches []*patch.Patch) (*Edited, error) {
	if operation := inProgress(repo); operation != "" {
		files, err := unmerged(ctx, repo)
		if err != nil {
			return nil, err
		}
		n := rec.next()
		return nil, &StoppedError{Copy: repo.Dir, Patch: rec.Patches[n].Name, Files: files, Later: len(rec.Patches) - n - 1}
	}
	dirty, err := repo.Line(ctx, "status", "--porcelain", "--untracked-files=normal")
	if err != nil {
		return nil, err
	}
	if dirty != "" {
		return nil, &UnsavedError{rec.Project, repo.Dir, "changes that are not committed"}
	}
	if err := rec.resolve(ctx, repo); err != nil {
		return nil, err
	}
	return d.move(ctx, repo, rec, patches, &Edited{Copy: repo.Dir, Version: rec.Version, State: Continued})
}

// move applies patches in a copy that has its name already. If that is canceled or fails, it leaves the patches that were committed, so
// that nothing in the copy is taken for a person's.
func (d *Desk) move(ctx context.Context, repo *git.Repo, rec *record, patches []*patch.Patch, e *Edited) (*Edited, error) {
	rec.Moving = true
	if err := rec.write(repo.Dir); err != nil {
		return nil, err
	}
	e, err := d.apply(ctx, repo, rec, patches, e)
	if stopped := new(StoppedError); err == nil || errors.As(err, &stopped) {
		return e, err
	}
	return nil, errors.Join(err, rec.putBack(context.WithoutCancel(ctx), repo))
}

// resolve adds the commit by which a person resolved a conflict to the record. Without a commit, the patch is tried again.
func (r *record) resolve(ctx context.Context, repo *git.Repo) error {
	if !r.Stopped {
		return nil
	}
	commits, err := repo.Line(ctx, "log", "--reverse", "--format=%H %s", r.Tip+"..HEAD")
	if err != nil || commits == "" {
		return err
	}
	first, _, _ := strings.Cut(commits, "\n")
	id, title, _ := strings.Cut(first, " ")
	n := r.next()
	r.Patches[n].Commits = append(r.Patches[n].Commits, recordedMail{id, title, true})
	r.Stopped = false
	r.Tip, err = repo.Line(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	return r.write(repo.Dir)
}

// apply commits the patches that are not in the copy yet. The record says that they are moving.
func (d *Desk) apply(ctx context.Context, repo *git.Repo, rec *record, patches []*patch.Patch, e *Edited) (*Edited, error) {
	repository, err := d.repository()
	if err != nil {
		return nil, err
	}
	for i, p := range patches {
		all, err := mails(p)
		if err != nil {
			return nil, err
		}
		done := &rec.Patches[i]
		there := false // upstream has the whole patch
		if len(done.Commits) == 0 {
			report, err := patch.NewOverlay(repository, patch.Dir(repo.Dir)).Apply(p)
			if err != nil {
				return nil, err
			}
			there = report.Verdict == patch.Upstream
			e.PassedOver = append(e.PassedOver, passedOver(report.Skipped)...)
		}
		for _, m := range all[len(done.Commits):] {
			commit, err := d.applyMail(ctx, repo, repository, m, there)
			if stopped := new(StoppedError); errors.As(err, &stopped) {
				stopped.Later = len(patches) - i - 1
				rec.Stopped, rec.Moving = true, false
				return nil, errors.Join(stopped, rec.write(repo.Dir))
			}
			if err != nil {
				return nil, err
			}
			done.Commits = append(done.Commits, commit)
			if rec.Tip = commit.ID; commit.Resolved {
				e.Merged = append(e.Merged, p.Name)
			}
			if err := rec.write(repo.Dir); err != nil {
				return nil, err
			}
		}
		e.Patches++
	}
	rec.Moving = false
	return e, errors.Join(rec.keep(ctx, repo), rec.write(repo.Dir))
}

// keep keeps git from removing the recorded commits when no branch has them any more.
func (r *record) keep(ctx context.Context, repo *git.Repo) error {
	return setRef(ctx, repo, "refs/slipway/tip", r.Tip)
}

// applyMail commits a mail: nothing if upstream has it, as there says for a whole patch.
func (d *Desk) applyMail(ctx context.Context, repo *git.Repo, repository *patch.Repository, m mail, there bool) (recordedMail, error) {
	overlay := patch.NewOverlay(repository, patch.Dir(repo.Dir))
	if !there {
		report, err := overlay.Apply(m.patch)
		if err != nil {
			return recordedMail{}, err
		}
		if report.Verdict == patch.Conflicts {
			return d.merge(ctx, repo, repository, m, report)
		}
	}
	if err := put(ctx, repo, overlay.Changes()); err != nil {
		return recordedMail{}, err
	}
	id, title, err := m.commit(ctx, repo)
	return recordedMail{ID: id, Title: title}, err
}

// put writes changed files into the work tree and the index.
func put(ctx context.Context, repo *git.Repo, changes map[string]patch.Change) error {
	var names strings.Builder
	for name, change := range changes {
		names.WriteString(name + "\x00")
		file := filepath.Join(repo.Dir, filepath.FromSlash(name))
		if change.Removed {
			if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}
		// An existing file keeps its mode.
		if err := os.WriteFile(file, change.Data, 0o666); err != nil {
			return err
		}
		if change.Exec {
			if err := os.Chmod(file, 0o777); err != nil {
				return err
			}
		}
	}
	if names.Len() == 0 {
		return nil
	}
	_, err := repo.Feed(ctx, strings.NewReader(names.String()), "update-index", "--add", "--remove", "-z", "--stdin")
	return err
}
