package lines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/worktree"
)

// File is the list of a tree's lines, relative to its root.
const File = "release/lines.yaml"

// A Line is a minor version of Kubernetes that a distribution maintains.
type Line struct {
	Name        string `json:"name" file:"required"`
	Branch      string `json:"branch,omitempty" file:"optional"` // of the tree's repository; may be a remote's, such as origin/acme-1.36
	Tree        string `json:"tree,omitempty" file:"optional"`   // instead of Branch: the folder of another tree, relative to this one
	Minor       Minor  `json:"minor" file:"required"`
	Maintenance Day    `json:"maintenance,omitempty" file:"optional"` // the first day on which the line gets only security fixes
	End         Day    `json:"end" file:"required"`                   // the last day of support
	Owner       string `json:"owner" file:"required"`
	Release     string `json:"release,omitempty" file:"optional"` // the folder of its last release, relative to this tree

	root   string // of the tree that Folder is in
	repo   *worktree.Repo
	base   string // the commit that the line is at
	getenv func(string) string
}

// A Minor is a minor version of Kubernetes, such as 1.36.
type Minor string

var minor = regexp.MustCompile(`^[1-9]\d*\.(0|[1-9]\d*)$`)

// UnmarshalText reads a minor version.
func (m *Minor) UnmarshalText(text []byte) error {
	if !minor.Match(text) {
		return fmt.Errorf("minor: %q is not a minor version of Kubernetes such as 1.36", text)
	}
	*m = Minor(text)
	return nil
}

// A Day is a date, such as 2027-10-28.
type Day string

// UnmarshalText reads a date.
func (d *Day) UnmarshalText(text []byte) error {
	if _, err := time.Parse(time.DateOnly, string(text)); err != nil {
		return fmt.Errorf("%q is not a date like 2027-10-28", text)
	}
	*d = Day(text)
	return nil
}

// After returns the number of days from now until the day, in UTC. It is negative if the day has passed.
func (d Day) After(now time.Time) int {
	day, _ := time.Parse(time.DateOnly, string(d))
	return int(day.Sub(now.UTC().Truncate(24*time.Hour)) / (24 * time.Hour))
}

// name is what a line can be called: it is part of the names of a branch and a folder.
var name = regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+)*$`)

// Read reads the lines of the tree at root, from its [File] or, without one, from the user's. Mistakes in the file are the request's.
func Read(ctx context.Context, root, user string, getenv func(string) string) ([]*Line, error) {
	from := filepath.Join(root, filepath.FromSlash(File))
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		from = user
		data, err = os.ReadFile(from)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, badrequest.Mark(fmt.Errorf("no lines are named, in %s or %s", filepath.Join(root, filepath.FromSlash(File)), user))
	}
	if err != nil {
		return nil, err
	}
	var all []*Line
	var file struct {
		Lines []Line `json:"lines" file:"required" each:"a line"`
	}
	err = catalog.Decode(from, data, &file, func(line func(any) int, add func(int, string, ...any)) {
		first := map[string]int{}
		for i := range file.Lines {
			l := &file.Lines[i]
			l.root, l.getenv = root, getenv
			at := line(l)
			if l.Name != "" {
				at = line(&l.Name)
				if other, seen := first[l.Name]; seen {
					add(at, "two lines are called %s; the other one is on line %d", l.Name, other)
				} else {
					first[l.Name] = at
				}
				if !name.MatchString(l.Name) {
					add(at, "name: %q must be lower-case letters and digits, with single dots and hyphens between them", l.Name)
				}
			}
			if l.Maintenance > l.End && l.End != "" {
				add(line(&l.Maintenance), "line %s: maintenance begins on %s, after the end on %s", l.Name, l.Maintenance, l.End)
			}
			switch {
			case line(&l.Branch) != 0 && line(&l.Tree) != 0:
				add(at, "line %s has both a branch and a tree", l.Name)
			case line(&l.Branch) == 0 && line(&l.Tree) == 0:
				add(at, "line %s has neither a branch nor a tree", l.Name)
			default:
				if err := l.find(ctx); err != nil {
					add(max(line(&l.Branch), line(&l.Tree)), "line %s: %v", l.Name, err)
				}
			}
			all = append(all, l)
		}
	})
	if err != nil {
		return nil, badrequest.Mark(err)
	}
	return all, nil
}

// find finds the line's repository, and the commit that it is at.
func (l *Line) find(ctx context.Context) (err error) {
	if l.Branch == "" && l.Tree == "" {
		return nil // a malformed one, which is reported
	}
	if l.repo, err = worktree.Open(l.path(l.Tree), l.getenv); err != nil {
		return fmt.Errorf("%s: %w", cmp.Or(l.Tree, l.root), err)
	}
	if l.Tree != "" {
		l.base, err = l.line(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
		return err
	}
	for _, kind := range []string{"refs/heads/", "refs/remotes/"} {
		if l.base, err = l.line(ctx, "rev-parse", "--verify", "--quiet", kind+l.Branch+"^{commit}"); err == nil {
			return nil
		}
	}
	if ctx.Err() != nil {
		return err
	}
	all, err := l.line(ctx, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads", "refs/remotes")
	if err != nil {
		return err
	}
	return fmt.Errorf("there is no branch %q%s", l.Branch, suggest.DidYouMean(suggest.Near(l.Branch, strings.Fields(all))))
}

// Choose returns the lines of some names, in their order in the file. Without names, it returns all.
func Choose(all []*Line, names []string) ([]*Line, error) {
	var known []string
	for _, l := range all {
		known = append(known, l.Name)
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, badrequest.Mark(suggest.Unknown("line", n, known))
		}
	}
	return slices.DeleteFunc(all, func(l *Line) bool { return len(names) > 0 && !slices.Contains(names, l.Name) }), nil
}
