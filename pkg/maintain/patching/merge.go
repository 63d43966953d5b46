package patching

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/make/upstream"
	"slipway.build/pkg/mechanism/git"
	"slipway.build/pkg/tree/patch"
)

// merge applies a mail that conflicts, as `git am --3way` does: with the contents that it was made for, if git has them. If that
// fails, git am stays in progress, and the files that a person must decide about are unmerged in the index.
func (d *Desk) merge(ctx context.Context, repo *git.Repo, repository *patch.Repository, m mail, report patch.Report) (recordedMail, error) {
	if err := d.fetchContents(ctx, repo, m); err != nil {
		return recordedMail{}, err
	}
	args := []string{"am", "--quiet", "--3way", "--keep-cr", "--no-scissors", "--committer-date-is-author-date"}
	for _, s := range report.Skipped {
		args = append(args, "--exclude="+s.File)
	}
	before, err := repo.Line(ctx, "rev-parse", "HEAD")
	if err != nil {
		return recordedMail{}, err
	}
	_, failed := repo.Feed(ctx, bytes.NewReader(m.text()), args...)
	if failed != nil && ctx.Err() != nil {
		return recordedMail{}, failed
	}
	if failed == nil {
		id, err := repo.Line(ctx, "rev-parse", "HEAD")
		if err != nil {
			return recordedMail{}, err
		}
		if id == before { // everything is there already, in another form
			id, title, err := m.commit(ctx, repo)
			return recordedMail{ID: id, Title: title, Resolved: true}, err
		}
		title, err := repo.Line(ctx, "log", "-1", "--format=%s")
		return recordedMail{ID: id, Title: title, Resolved: true}, err
	}
	if inProgress(repo) == "" {
		return recordedMail{}, failed
	}
	stopped := &StoppedError{Copy: repo.Dir, Patch: m.patch.Name, Conflict: report.Conflict}
	if stopped.Files, err = unmerged(ctx, repo); err != nil {
		return recordedMail{}, err
	}
	if len(stopped.Files) == 0 {
		if stopped.Files, stopped.LeftOut, err = mark(ctx, repo, repository, m); err != nil {
			return recordedMail{}, err
		}
	}
	return recordedMail{}, stopped
}

// mark applies what applies of a mail, and marks the rest.
func mark(ctx context.Context, repo *git.Repo, repository *patch.Repository, m mail) (marked, leftOut []string, err error) {
	overlay := patch.NewOverlay(repository, patch.Dir(repo.Dir))
	if marked, leftOut, err = overlay.Mark(m.patch); err != nil {
		return nil, nil, err
	}
	changes := overlay.Changes()
	// git am goes on only when the files with markers were added. In the index, stages 1 to 3 say that they are not resolved.
	var index strings.Builder
	for _, name := range marked {
		entry, err := repo.Line(ctx, "ls-files", "--stage", "--", name)
		if err != nil {
			return nil, nil, err
		}
		mode, rest, _ := strings.Cut(entry, " ")
		blob, _, _ := strings.Cut(rest, " ")
		fmt.Fprintf(&index, "0 %s\t%s\n", strings.Repeat("0", len(blob)), name)
		for stage := 1; stage <= 3; stage++ {
			fmt.Fprintf(&index, "%s %s %d\t%s\n", mode, blob, stage, name)
		}
	}
	if err := put(ctx, repo, changes); err != nil {
		return nil, nil, err
	}
	if index.Len() > 0 {
		if _, err := repo.Feed(ctx, strings.NewReader(index.String()), "update-index", "--index-info"); err != nil {
			return nil, nil, err
		}
	}
	return marked, leftOut, nil
}

// unmerged lists the files with conflicts.
func unmerged(ctx context.Context, repo *git.Repo) ([]string, error) {
	out, err := repo.Line(ctx, "ls-files", "--unmerged", "-z")
	if err != nil {
		return nil, err
	}
	files := map[string]bool{}
	for entry := range strings.SplitSeq(out, "\x00") {
		if _, name, ok := strings.Cut(entry, "\t"); ok {
			files[name] = true
		}
	}
	return slices.Sorted(maps.Keys(files)), nil
}

// fetchContents puts the files that a mail was made for into the copy's objects, so that git can merge three ways. It looks for them
// in other versions of the modules in the module cache, such as the one before a bump.
func (d *Desk) fetchContents(ctx context.Context, repo *git.Repo, m mail) error {
	up, err := d.upstream(ctx)
	if err != nil {
		return err
	}
	for _, want := range contents(m.patch.Text) {
		if _, err := repo.Run(ctx, "cat-file", "-e", want.blob); err == nil {
			continue
		}
		data, ok := find(up, want)
		if !ok {
			continue
		}
		if _, err := repo.Feed(ctx, bytes.NewReader(data), "hash-object", "-w", "--no-filters", "--stdin"); err != nil {
			return err
		}
	}
	return nil
}

// A content is a file at the time when a mail was made.
type content struct {
	file string // in the repository
	blob string // how git's name for it begins
}

// contents lists the contents that a mail changes.
func contents(mail []byte) []content {
	var list []content
	var file string
	for line := range strings.Lines(string(mail)) {
		line = strings.TrimRight(line, "\n")
		if rest, ok := strings.CutPrefix(line, "diff --git a/"); ok {
			file, _, _ = strings.Cut(rest, " b/")
		}
		if match := indexLine.FindStringSubmatch(line + "\n"); match != nil && file != "" && strings.Trim(match[1], "0") != "" {
			list = append(list, content{file, match[1]})
		}
	}
	return list
}

// find looks for a content in the module cache.
func find(up *upstream.Repository, want content) ([]byte, bool) {
	m, rest, ok := up.Find(want.file)
	if !ok {
		return nil, false
	}
	parent, name := filepath.Split(m.Source)
	path, _, _ := strings.Cut(name, "@")
	versions, err := filepath.Glob(filepath.Join(parent, path+"@*"))
	if err != nil {
		return nil, false
	}
	for _, version := range versions {
		data, err := os.ReadFile(filepath.Join(version, filepath.FromSlash(rest)))
		if err != nil {
			continue
		}
		if strings.HasPrefix(patch.Blob(data), want.blob) {
			return data, true
		}
	}
	return nil, false
}
