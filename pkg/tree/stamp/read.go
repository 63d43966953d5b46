package stamp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/tree/worktree"
)

// A Request describes the tree to find the stamp of.
type Request struct {
	Root string              // the top of the source tree
	Base string              // the version of Kubernetes that cmd/go.mod requires: v1.36.3
	Env  func(string) string // the environment; nil is os.Getenv
	Git  worktree.Opener     // opens the repository at Root, if that is shared with others
}

// Read finds out which version a source tree is, by the rules in the package comment.
func Read(ctx context.Context, q Request) (Stamp, error) {
	if q.Env == nil {
		q.Env = os.Getenv
	}
	if q.Git == nil {
		q.Git = worktree.Once(q.Root, q.Env)
	}
	s, err := q.read(ctx)
	if err != nil {
		return Stamp{}, fmt.Errorf("stamp %s: %w", q.Root, err)
	}
	return s, nil
}

func (q Request) read(ctx context.Context) (Stamp, error) {
	if !isSemver(q.Base) || semver.Build(q.Base) != "" {
		return Stamp{}, fmt.Errorf("base %q is not a semantic version without build metadata", q.Base)
	}
	s, err := q.given()
	if err != nil {
		return Stamp{}, badrequest.Mark(err)
	}
	versionGiven := s.Version != ""
	if len(s.missing()) > 0 {
		if err := q.complete(ctx, &s); err != nil {
			return Stamp{}, err
		}
	}
	err = admit(s.Version, q.Base)
	if err != nil && versionGiven {
		err = badrequest.Mark(err)
	}
	if err != nil {
		return Stamp{}, err
	}
	s.derive()
	return s, nil
}

// given returns the fields that the environment has, or the file that it names.
func (q Request) given() (Stamp, error) {
	var s Stamp
	for _, f := range fields {
		value := q.Env(f.key)
		if value == "" {
			continue
		}
		if err := f.set(&s, value); err != nil {
			return Stamp{}, fmt.Errorf("%s: %w", f.key, err)
		}
	}
	name := q.Env("KUBE_GIT_VERSION_FILE")
	if name == "" {
		return s, nil
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(q.Root, name)
	}
	file, err := readFile(name)
	if err != nil {
		return Stamp{}, fmt.Errorf("KUBE_GIT_VERSION_FILE: %w", err)
	}
	s.fill(file)
	return s, nil
}

// complete takes the fields that s lacks from git, or without git from the version file in the root.
func (q Request) complete(ctx context.Context, s *Stamp) error {
	repo, err := q.Git()
	if errors.Is(err, worktree.ErrNone) {
		return q.completeFromFile(s)
	}
	if err != nil {
		return unknown(s, err)
	}
	state, err := repo.State(ctx)
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		return unknown(s, err)
	}
	s.Commit = cmp.Or(s.Commit, state.Commit)
	s.TreeState = cmp.Or(s.TreeState, treeState(state))
	if s.Date.IsZero() {
		s.Date = state.Time
	}
	if s.Version != "" {
		return nil
	}
	s.Version, err = version(q.Base, *s, state)
	return err
}

func (q Request) completeFromFile(s *Stamp) error {
	file, err := readFile(filepath.Join(q.Root, File))
	if errors.Is(err, fs.ErrNotExist) {
		return unknown(s, errors.New("neither the top of a git work tree nor an unpacked source tarball"))
	}
	if err != nil {
		return err
	}
	s.fill(file)
	if len(s.missing()) > 0 {
		return unknown(s, fmt.Errorf("the file %s is incomplete", File))
	}
	return nil
}

// unknown adds to an error the variables that can be set instead.
func unknown(s *Stamp, err error) error {
	return fmt.Errorf("%w; to do without, set %s, or KUBE_GIT_VERSION_FILE", err, strings.Join(s.missing(), ", "))
}

func treeState(state worktree.State) string {
	if state.Dirty {
		return "dirty"
	}
	return "clean"
}

// version makes a version from the known commit and tree state, and from the tags and the time in state.
func version(base string, s Stamp, state worktree.State) (string, error) {
	v := fmt.Sprintf("%s+slipway.%s.%.12s", base, state.Time.UTC().Format("20060102150405"), s.Commit)
	if tag := versionTag(base, state.Tags); tag != "" && s.Commit == state.Commit {
		if !isSemver(tag) {
			return "", fmt.Errorf("tag %s: build metadata may have letters, digits and '-' between its dots", tag)
		}
		v = tag
	}
	if s.TreeState == "dirty" {
		v += ".dirty"
	}
	return v, nil
}

// versionTag returns the last of the tags that name a version of base, or "".
func versionTag(base string, tags []string) string {
	tags = slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { return !strings.HasPrefix(tag, base+"+") })
	if len(tags) == 0 {
		return ""
	}
	return slices.Max(tags)
}

func readFile(name string) (Stamp, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return Stamp{}, err
	}
	s, err := Unmarshal(data)
	if err != nil {
		return Stamp{}, fmt.Errorf("read %s: %w", name, err)
	}
	return s, nil
}
