package worktree

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/git"
	"slipway.build/pkg/mechanism/statcache"
	"slipway.build/pkg/tree/folder"
)

// A State is the commit that a work tree is at, and how the folder differs from it. It is the same in a shallow and in a full clone.
type State struct {
	Commit string        // of HEAD, in hex
	Tree   string        // the hash of the commit's content
	Time   time.Time     // of the commit (committer's date), UTC
	Tags   []string      // names of tags on the commit, without refs/tags/
	Dirty  bool          // the folder is not what the commit has
	Why    string        // the first difference, if it is dirty: "cmd/a.go is not what the commit has"
	Files  []folder.File // the commit's files, as they are in the folder; those that are missing there are left out
	Extra  []string      // other files in the folder, and folders, with a final slash; without those that nothing reads
}

// State returns the state at the time of its first successful call. A tree is clean if files were touched but not changed.
func (r *Repo) State(ctx context.Context) (State, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == nil {
		s, err := r.look(ctx)
		if err != nil {
			return State{}, err
		}
		r.state = &s
	}
	s := *r.state
	s.Tags = slices.Clone(s.Tags)
	return s, nil
}

// look compares the folder with the commit.
func (r *Repo) look(ctx context.Context) (State, error) {
	s, err := r.head(ctx)
	if err != nil {
		return State{}, err
	}
	commit, err := r.list(ctx, s.Tree)
	if err != nil {
		return State{}, err
	}
	if s.Files, err = r.files(ctx, slices.Sorted(maps.Keys(commit.files)), blobs(s.Commit)); err != nil {
		return State{}, err
	}
	extra, err := commit.extra(r.Root)
	if err != nil {
		return State{}, err
	}
	if s.Extra, err = r.relevant(ctx, extra); err != nil {
		return State{}, err
	}
	if s.Why = commit.differs(r.Root, s.Files); s.Why == "" && len(s.Extra) > 0 {
		s.Why = s.Extra[0] + " is not in the commit"
	}
	s.Dirty = s.Why != ""
	return s, nil
}

// files reads files of the folder. Their hashes are remembered where slipway keeps what it knows, once that folder is there.
func (r *Repo) files(ctx context.Context, names []string, blob func() hash.Hash) ([]folder.File, error) {
	state := filepath.Join(r.Root, filepath.FromSlash(folder.State))
	memory, err := statcache.Load(filepath.Join(state, "sources"))
	if err != nil {
		return nil, err
	}
	files, err := folder.Read(ctx, r.Root, names, blob, memory)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(state); err == nil {
		_ = memory.Save(filepath.Join(state, "sources"), state) // only saves time
	}
	return files, nil
}

// head reads what git knows of the commit. Its options override the user's configuration of git log.
func (r *Repo) head(ctx context.Context) (State, error) {
	out, err := r.Run(ctx, nil, "log", "-1", "-s", "--no-color", "--no-show-signature", "--decorate=full",
		"--decorate-refs=refs/tags/*", "--format=%H%n%T%n%ct%n%D", "HEAD", "--")
	if failed := new(git.Error); errors.As(err, &failed) && strings.Contains(failed.Problem, "bad revision 'HEAD'") {
		return State{}, errors.New("git: no commit yet")
	}
	if err != nil {
		return State{}, err
	}
	lines := strings.Split(string(out), "\n")
	if len(lines) < 4 {
		return State{}, fmt.Errorf("git log: cannot read %q", out)
	}
	seconds, err := strconv.ParseInt(lines[2], 10, 64)
	if err != nil {
		return State{}, fmt.Errorf("git log: commit time: %w", err)
	}
	s := State{Commit: lines[0], Tree: lines[1], Time: time.Unix(seconds, 0).UTC()}
	for ref := range strings.SplitSeq(lines[3], ", ") {
		if tag, ok := strings.CutPrefix(ref, "tag: refs/tags/"); ok {
			s.Tags = append(s.Tags, tag)
		}
	}
	return s, nil
}
