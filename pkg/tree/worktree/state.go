package worktree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A State is the commit that a work tree is at, and whether files have changed since. It is the same in a shallow and in a
// full clone.
type State struct {
	Commit string    // of HEAD, in hex
	Tree   string    // the hash of the commit's content
	Time   time.Time // of the commit (committer's date), UTC
	Tags   []string  // names of tags on the commit, without refs/tags/
	Dirty  bool      // some file differs from the commit, or is neither in it nor ignored
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

// look reads the state with two processes in parallel.
func (r *Repo) look(ctx context.Context) (State, error) {
	var (
		s            State
		head         string
		dirty        bool
		errLog, errS error
		wg           sync.WaitGroup
	)
	wg.Go(func() { s, errLog = r.head(ctx) })
	head, dirty, errS = r.status(ctx)
	wg.Wait()
	if errS != nil {
		return State{}, errS
	}
	if head == "(initial)" {
		return State{}, errors.New("git: no commit yet")
	}
	if errLog != nil {
		return State{}, errLog
	}
	if head != s.Commit {
		return State{}, fmt.Errorf("git: HEAD moved from %s to %s while it was read; run again", s.Commit, head)
	}
	s.Dirty = dirty
	return s, nil
}

// head reads all of a State but Dirty. Its options override the user's configuration of git log.
func (r *Repo) head(ctx context.Context) (State, error) {
	out, err := r.Run(ctx, nil, "log", "-1", "-s", "--no-color", "--no-show-signature", "--decorate=full",
		"--decorate-refs=refs/tags/*", "--format=%H%n%T%n%ct%n%D", "HEAD", "--")
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

func (r *Repo) status(ctx context.Context) (head string, dirty bool, err error) {
	out, err := r.Run(ctx, nil, "status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind",
		"--untracked-files=normal", "--ignore-submodules=none", "--no-renames")
	if err != nil {
		return "", false, err
	}
	for record := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		header, ok := strings.CutPrefix(record, "# ")
		if !ok {
			dirty = true
			break
		}
		if oid, ok := strings.CutPrefix(header, "branch.oid "); ok {
			head = oid
		}
	}
	if head == "" {
		return "", false, fmt.Errorf("git status: no commit in %.200q", out)
	}
	return head, dirty, nil
}
