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
	"slipway.build/pkg/tree/folder"
	"slipway.build/pkg/tree/worktree"
)

// A Request describes the tree to find the stamp of.
type Request struct {
	Root string              // the top of the source tree
	Base string              // the version of Kubernetes that cmd/go.mod requires: v1.36.3
	Env  func(string) string // the environment; nil is os.Getenv
	Git  worktree.Opener     // opens the repository at Root, if callers share it

	Outside string // a folder outside of Root that the release is made with, which makes the tree dirty; may be empty
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
	s.fill(file.Stamp)
	return s, nil
}

// complete takes the fields that s lacks from git, or without git from the version file in the root.
func (q Request) complete(ctx context.Context, s *Stamp) error {
	repo, err := q.Git()
	if errors.Is(err, worktree.ErrNone) {
		return q.completeFromFile(ctx, s)
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
	state.Dirty = state.Dirty || q.Outside != ""
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

// completeFromFile takes fields from the version file of an unpacked source tarball. If the folder is no longer what was packed, the tree
// is dirty.
func (q Request) completeFromFile(ctx context.Context, s *Stamp) error {
	file, err := readFile(filepath.Join(q.Root, File))
	if errors.Is(err, fs.ErrNotExist) {
		return unknown(s, errors.New("neither the top of a git work tree nor an unpacked source tarball"))
	}
	if err != nil {
		return err
	}
	if file.Sources != "" {
		is, err := sourcesOf(ctx, q.Root)
		if err != nil {
			return err
		}
		if is != file.Sources && file.Stamp.TreeState != dirty {
			file.Stamp.TreeState = dirty
			if file.Stamp.Version != "" {
				file.Stamp.Version += "." + dirty
			}
		}
	}
	s.fill(file.Stamp)
	if len(s.missing()) > 0 {
		return unknown(s, fmt.Errorf("the file %s is incomplete", File))
	}
	return nil
}

// sourcesOf returns the digest of an unpacked tree.
func sourcesOf(ctx context.Context, root string) (string, error) {
	root, err := folder.Resolve(root)
	if err != nil {
		return "", err
	}
	names, err := folder.List(ctx, root)
	if err != nil {
		return "", err
	}
	files, err := folder.Read(ctx, root, names, nil, nil)
	return folder.Digest(files), err
}

// unknown adds to an error the variables that can be set instead.
func unknown(s *Stamp, err error) error {
	return fmt.Errorf("%w; to do without, set %s, or KUBE_GIT_VERSION_FILE", err, strings.Join(s.missing(), ", "))
}

// States of trees. A third one is "archive".
const (
	clean = "clean"
	dirty = "dirty"
)

func treeState(state worktree.State) string {
	if state.Dirty {
		return dirty
	}
	return clean
}

// version makes a version from the known commit and tree state, and from the tags and the time in state.
func version(base string, s Stamp, state worktree.State) (string, error) {
	v := fmt.Sprintf("%s+slipway.%s.%.12s", base, state.Time.UTC().Format("20060102150405"), s.Commit)
	if s.Commit == state.Commit {
		tag, err := versionTag(base, state.Tags)
		if err != nil {
			return "", err
		}
		v = cmp.Or(tag, v)
	}
	if s.TreeState == dirty {
		v += "." + dirty
	}
	return v, nil
}

// versionTag returns the newest version of base that tags name, or "". Other tags do not count, but a tag that was meant to be a version of
// the tree, and cannot be one, is an error: a pre-release, and a version of another Kubernetes.
func versionTag(base string, tags []string) (string, error) {
	newest := ""
	var errs []error
	for _, tag := range slices.Sorted(slices.Values(tags)) {
		if semver.Major(tag) == "v0" {
			continue // a version of slipway
		}
		other := semver.Prerelease(tag) != "" && semver.Major(tag) == semver.Major(base) && tag != base
		switch {
		case strings.HasPrefix(tag, base+"+") && !isSemver(tag):
			errs = append(errs, fmt.Errorf("tag %s: build metadata may have letters, digits and '-' between its dots", tag))
		case isSemver(tag) && (other || semver.Build(tag) != ""):
			if err := admit(tag, base); err != nil {
				errs = append(errs, fmt.Errorf("tag %s: %w; remove the tag from this commit, or name the version", tag, err))
			} else if newest == "" || Compare(tag, newest) > 0 {
				newest = tag
			}
		}
	}
	return newest, errors.Join(errs...)
}

func readFile(name string) (VersionFile, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return VersionFile{}, err
	}
	f, err := parseFile(data)
	if err != nil {
		return VersionFile{}, fmt.Errorf("read %s: %w", name, err)
	}
	return f, nil
}
