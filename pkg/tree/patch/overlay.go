package patch

import (
	"bytes"
	"crypto/sha1" // git's name for a content
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"slipway.build/pkg/tree/folder"
)

// A Change is the new state of a file.
type Change struct {
	Data    []byte
	Removed bool
	Exec    bool // a patch gave it an executable bit, which modules do not hold
}

// An Overlay is a tree with changes in memory. It is a Tree itself.
type Overlay struct {
	repo    *Repository
	below   Tree
	changes map[string]Change // by repository path
}

// NewOverlay returns a tree, which holds the modules of a repository, without changes.
func NewOverlay(r *Repository, t Tree) *Overlay {
	return &Overlay{r, t, map[string]Change{}}
}

// ReadFile returns the content of a file.
func (o *Overlay) ReadFile(name string) ([]byte, error) {
	if c, ok := o.changes[name]; ok {
		if c.Removed {
			return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
		}
		return c.Data, nil
	}
	return o.below.ReadFile(name)
}

// Unpatched returns the content of a file as it is without changes.
func (o *Overlay) Unpatched(name string) ([]byte, error) { return o.below.ReadFile(name) }

// Set changes a file.
func (o *Overlay) Set(name string, c Change) { o.changes[name] = c }

// Changes returns what has changed, by repository path. A file that was added and removed again is in it, as removed.
func (o *Overlay) Changes() map[string]Change { return maps.Clone(o.changes) }

// A Verdict is the outcome of applying a patch.
type Verdict int

// The verdicts.
const (
	Applies   Verdict = iota
	Upstream          // it changes nothing: the tree has it already
	Conflicts         // it does not apply
	NoEffect          // it applies, and no module has what it changes
)

func (v Verdict) String() string {
	return [...]string{"applies", "upstream already", "conflicts", "no effect"}[v]
}

// A Report is the result of applying a patch.
type Report struct {
	Patch    *Patch
	Verdict  Verdict
	Moved    []Moved   // hunks that apply elsewhere than the patch says
	Skipped  []Skipped // changes of files that no module has
	Conflict *Conflict // if it conflicts
}

// Offset returns by how many lines the hunk that has moved farthest has moved: negative if it is nearer to the start of its file.
func (r Report) Offset() int {
	farthest := 0
	for _, m := range r.Moved {
		if distance(m.By, 0) > distance(farthest, 0) {
			farthest = m.By
		}
	}
	return farthest
}

// Err returns an error if the patch must not be used: a *[Conflict] or a *[NoEffectError].
func (r Report) Err() error {
	switch r.Verdict {
	case Conflicts:
		return r.Conflict
	case NoEffect:
		return &NoEffectError{r.Patch.Name, r.Skipped}
	}
	return nil
}

// A NoEffectError says that a patch changes nothing that is compiled, such as one of vendored code. Its author believes that the
// release has the fix.
type NoEffectError struct {
	Patch   string // name of the file
	Skipped []Skipped
}

func (e *NoEffectError) Error() string {
	text := fmt.Sprintf("patch %s has no effect on what is compiled", e.Patch)
	if len(e.Skipped) == 0 {
		return text + ": it changes only modes of files, which modules do not hold"
	}
	for _, s := range e.Skipped[:min(3, len(e.Skipped))] {
		text += fmt.Sprintf("\n\t%s: %s", s.File, s.Why)
	}
	if more := len(e.Skipped) - 3; more > 0 {
		text += fmt.Sprintf("\n\tand %d more", more)
	}
	return text
}

// Moved is a hunk that applies elsewhere than the patch says.
type Moved struct {
	File string `json:"file"`
	Hunk int    `json:"hunk"` // the first is 1
	By   int    `json:"by"`   // lines
}

// Skipped is a change that is passed over.
type Skipped struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// Check applies patches, in their order, and reports on each. Those that conflict change nothing. The error is not about patches: a file
// could not be read.
func (o *Overlay) Check(patches []*Patch) ([]Report, error) {
	var reports []Report
	for _, p := range patches {
		r, err := o.Apply(p)
		if err != nil {
			return nil, fmt.Errorf("patch %s: %w", p.Name, err)
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// Apply applies a patch, all of it or nothing. If upstream has it already, nothing changes. The error is not about the patch: a file could
// not be read.
func (o *Overlay) Apply(p *Patch) (Report, error) {
	wanted, lacking := o.repo.requires(p)
	if lacking != nil {
		return Report{Patch: p, Verdict: Conflicts, Conflict: lacking}, nil
	}
	forward, reverse := o.attempt(false), o.attempt(true)
	forward.module, reverse.module, forward.wanted, reverse.wanted = p.Module, p.Module, wanted, wanted
	if err := forward.patch(p); err != nil {
		return Report{}, err
	}
	if err := reverse.patch(p); err != nil {
		return Report{}, err
	}
	r := Report{Patch: p, Skipped: forward.skipped}
	switch {
	case reverse.applies() && (!forward.applies() || reverse.distance() < forward.distance()):
		// Code that repeats itself may match both ways. The way that has moved less is the one that the patch means.
		r.Verdict = Upstream
	case !forward.applies():
		r.Verdict, r.Conflict = Conflicts, forward.conflict
		r.Conflict.Patch = p.Name
	case forward.changed == 0:
		r.Verdict, r.Skipped = NoEffect, append(r.Skipped, forward.tests...)
	default:
		r.Moved = forward.moved
		maps.Copy(o.changes, forward.tree.changes)
	}
	for i := range r.Skipped {
		r.Skipped[i].File = p.own(r.Skipped[i].File)
	}
	for i := range r.Moved {
		r.Moved[i].File = p.own(r.Moved[i].File)
	}
	if r.Conflict != nil {
		r.Conflict.File = p.own(r.Conflict.File)
	}
	return r, nil
}

// An attempt applies a patch, or takes it back, on top of an overlay.
type attempt struct {
	tree     *Overlay          // with the changes of the attempt alone
	module   string            // whose patch it is, as in Series
	wanted   map[string]string // versions of linked modules that the patch requires, by path
	reverse  bool
	moved    []Moved
	skipped  []Skipped
	changed  int       // files that something is made of
	tests    []Skipped // changes of other files
	conflict *Conflict
}

func (o *Overlay) attempt(reverse bool) *attempt {
	return &attempt{tree: NewOverlay(o.repo, o), reverse: reverse}
}

func (a *attempt) applies() bool { return a.conflict == nil && (a.changed > 0 || !a.reverse) }

// distance returns by how many lines hunks have moved in total.
func (a *attempt) distance() int {
	total := 0
	for _, m := range a.moved {
		total += distance(m.By, 0)
	}
	return total
}

// patch applies a patch until something conflicts.
func (a *attempt) patch(p *Patch) error {
	for _, c := range inOrder(p.Commits, a.reverse) {
		for _, f := range inOrder(c.Files, a.reverse) {
			err := a.file(f)
			if errors.As(err, &a.conflict) {
				if len(p.Commits) > 1 {
					a.conflict.Commit = c.Title
				}
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func inOrder[T any](list []T, reverse bool) []T {
	if reverse {
		list = slices.Clone(list)
		slices.Reverse(list)
	}
	return list
}

// skip reports whether a change is passed over.
func (a *attempt) skip(f File) (bool, error) {
	why := ""
	for _, name := range []string{f.Old, f.New} {
		if name == "" || why != "" {
			continue
		}
		var in Place
		in, _, why = a.tree.repo.Locate(name)
		switch {
		case why != "":
		case !strings.HasPrefix(name, vendor):
		case a.module != "" && in.Module != a.module:
			why = "it is in the module " + in.Module
		case a.module == "" && a.wanted[in.Module] != "":
			why = fmt.Sprintf("it comes with %s %s, which is required", in.Module, a.wanted[in.Module])
		}
	}
	switch kind := max(f.diff.OldMode, f.diff.NewMode) & typeBits; {
	case why != "":
	case kind == link:
		why = "modules hold no symbolic links"
	case kind == submodule:
		why = "modules hold no submodules"
	case f.Old != "" && prose(f.Old):
		if _, err := a.tree.ReadFile(f.Old); folder.Missing(err) {
			why = "the module lacks it"
		} else if err != nil {
			return false, err
		}
	}
	if why != "" {
		a.skipped = append(a.skipped, Skipped{f.Path(), why})
	}
	return why != "", nil
}

// file applies a change of a file, or takes it back. An error may be a *[Conflict].
func (a *attempt) file(f File) error {
	if skip, err := a.skip(f); skip || err != nil {
		return err
	}
	from, to, mode := f.Old, f.New, f.diff.NewMode
	if a.reverse {
		from, to, mode = to, from, f.diff.OldMode
	}
	var data []byte
	if from != "" {
		var err error
		if data, err = a.tree.ReadFile(from); folder.Missing(err) {
			return &Conflict{File: from, Why: "there is no such file"}
		} else if err != nil {
			return err
		}
	}
	if to != "" && to != from && !(a.reverse && f.Copy) {
		if _, err := a.tree.ReadFile(to); err == nil {
			return &Conflict{File: to, Why: "the file exists already"}
		} else if !folder.Missing(err) {
			return err
		}
		for parent := path.Dir(to); parent != "."; parent = path.Dir(parent) {
			if _, err := a.tree.ReadFile(parent); err == nil && (parent != from || f.Copy) {
				return &Conflict{File: to, Why: parent + " is a file"}
			}
		}
	}
	result, err := a.content(f, data)
	if err != nil {
		return err
	}
	if to == "" && len(result) > 0 {
		return &Conflict{File: from, Why: "it is to be deleted, but holds more than the patch knows"}
	}
	if a.reverse && f.Copy {
		to = ""
	}
	if from != "" && from != to && (a.reverse || !f.Copy) {
		a.set(from, Change{Removed: true})
	}
	if to != "" && (to != from || !bytes.Equal(result, data)) { // modules do not hold modes
		a.set(to, Change{Data: result, Exec: mode&0o100 != 0})
	}
	return nil
}

func (a *attempt) set(name string, c Change) {
	a.tree.Set(name, c)
	if strings.HasPrefix(name, vendor) && inNoProgram(name) {
		a.tests = append(a.tests, Skipped{name, "no program has it"})
		return
	}
	a.changed++
}

// inNoProgram reports whether no program has a file of a module, by its name: tests, and documents.
func inNoProgram(name string) bool {
	return strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/testdata/") || prose(name)
}

// content changes the content of a file.
func (a *attempt) content(f File, data []byte) ([]byte, error) {
	name := f.Path()
	if f.diff.IsBinary {
		return a.binary(f.diff, name, data)
	}
	all := hunks(f.diff, a.reverse)
	result, offsets, bad := patchText(data, all)
	if bad != nil {
		bad.File = name
		return nil, bad
	}
	if why := damaged(f.diff, a.reverse, data, result); why != "" {
		return nil, &Conflict{File: name, Why: why}
	}
	for i, by := range offsets {
		if by != 0 {
			a.moved = append(a.moved, Moved{name, i + 1, by})
		}
	}
	return result, nil
}

// damaged returns why a result cannot be the one of the patch's author, or "": an index line names the contents before and after. Git
// reads it only for binary files and three-way merges.
func damaged(d *gitdiff.File, reverse bool, data, result []byte) string {
	before, after := d.OldOIDPrefix, d.NewOIDPrefix
	if reverse {
		before, after = after, before
	}
	unknown := func(prefix string, data []byte) bool {
		return prefix == "" || strings.Trim(prefix, "0") == "" && len(data) > 0
	}
	if unknown(before, data) || unknown(after, result) || !isBlob(data, before) || isBlob(result, after) {
		return ""
	}
	return fmt.Sprintf("its index line names another result, git's blob %s and not %.12s: the patch is damaged, or was edited by hand and "+
		"must lose that line", after, Blob(result))
}

// binary changes the content of a binary file. Git names the content before and after; nothing else can tell whether it is the right one.
func (a *attempt) binary(d *gitdiff.File, name string, data []byte) ([]byte, error) {
	before, after, fragment := d.OldOIDPrefix, d.NewOIDPrefix, d.BinaryFragment
	if a.reverse {
		before, after, fragment = after, before, d.ReverseBinaryFragment
	}
	if fragment == nil {
		return nil, &Conflict{File: name, Why: "the patch does not hold its content"}
	}
	if !isBlob(data, before) {
		return nil, &Conflict{File: name, Why: fmt.Sprintf("the binary file is not the one that the patch changes: expected git's blob %s, "+
			"there is %s", before, Blob(data))}
	}
	var result bytes.Buffer
	change := &gitdiff.File{IsBinary: true, BinaryFragment: fragment}
	if err := gitdiff.Apply(&result, bytes.NewReader(data), change); err != nil && !errors.Is(err, io.EOF) {
		return nil, &Conflict{File: name, Why: err.Error()}
	}
	if !isBlob(result.Bytes(), after) {
		return nil, &Conflict{File: name, Why: "the binary content in the patch is damaged"}
	}
	return result.Bytes(), nil
}

// isBlob reports whether git's name of a content begins with a prefix. The name of no content is all zeros.
func isBlob(data []byte, prefix string) bool {
	if strings.Trim(prefix, "0") == "" {
		return len(data) == 0
	}
	return strings.HasPrefix(Blob(data), prefix)
}

// Blob returns git's name of a content.
func Blob(data []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}
