package patch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"slipway.build/pkg/mechanism/git"
)

// An InvalidError says that a file is no patch that can be used.
type InvalidError struct {
	Patch string // name of the file
	Path  string // in the repository, if the fault is that of a change of a file
	Why   string
}

func (e *InvalidError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("patch %s: %s", e.Patch, e.Why)
	}
	return fmt.Sprintf("patch %s: %s: %s", e.Patch, e.Path, e.Why)
}

// commitLine begins each commit in the output of git format-patch.
var commitLine = regexp.MustCompile(`(?m)^From [0-9a-f]{40,64} .*\n`)

// header finds a line that only a patch has, with the line end of another system.
var dosHeader = regexp.MustCompile(`(?m)^(diff --git |--- |\+\+\+ |@@ -).*\r$`)

// gitHeader begins the change of a file in git's own form.
var gitHeader = regexp.MustCompile(`(?m)^diff --git `)

// Parse reads a patch: the output of git format-patch or git diff, or a pull request's .patch. Name is for messages. Its errors are of
// type *[InvalidError].
func Parse(name string, data []byte) (*Patch, error) {
	p := &Patch{Name: name, SHA256: sum(data), Data: data}
	var err error
	if p.Text, err = decode(data); err != nil {
		return nil, &InvalidError{Patch: name, Why: "it is encoded as a mail that git does not decode: " + err.Error()}
	}
	if dosHeader.Match(p.Text) {
		return nil, &InvalidError{Patch: name, Why: "its lines end with CR LF, as a mail program or an editor on Windows writes them; " +
			"get the patch again, or convert it with dos2unix"}
	}
	for _, text := range commits(p.Text) {
		c, err := parseCommit(text)
		if err != nil {
			return nil, &InvalidError{Patch: name, Why: "not a patch as git makes them: " + strings.TrimPrefix(err.Error(), "gitdiff: ")}
		}
		for _, f := range c.Files {
			if why := refuse(f); why != "" {
				return nil, &InvalidError{name, f.Path(), why}
			}
		}
		if len(c.Files) > 0 {
			p.Commits = append(p.Commits, c)
		}
	}
	if len(p.Commits) == 0 {
		return nil, &InvalidError{Patch: name, Why: "changes no file; want the output of git format-patch or git diff, or a pull " +
			"request's .patch"}
	}
	return p, nil
}

// AgreesWithGit lets git read a patch, too. An error of type *[InvalidError] says that git refuses it, or finds changes of other files in
// it.
func (p *Patch) AgreesWithGit(ctx context.Context) error {
	tmp, err := os.MkdirTemp("", "slipway-patch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	repo, err := git.At(tmp)
	if err != nil {
		return err
	}
	out, err := repo.Feed(ctx, bytes.NewReader(p.Text), "apply", "--numstat", "-z", "-")
	if failed := new(git.Error); errors.As(err, &failed) {
		return &InvalidError{Patch: p.Name, Why: "git does not read it: " + failed.Problem}
	}
	if err != nil {
		return err
	}
	var want, got []string
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		_, name, _ := strings.Cut(line, "\t") // after the number of lines added
		_, name, _ = strings.Cut(name, "\t")
		want = append(want, name)
	}
	for _, c := range p.Commits {
		for _, f := range c.Files {
			got = append(got, f.Path())
		}
	}
	if !slices.Equal(got, want) {
		return &InvalidError{Patch: p.Name, Why: fmt.Sprintf("git finds changes of %q in it, and slipway of %q; make it again with git "+
			"format-patch", want, got)}
	}
	return nil
}

// commits cuts a patch at its commits. Gitdiff reads one commit.
func commits(data []byte) [][]byte {
	starts := commitLine.FindAllIndex(data, -1)
	if len(starts) == 0 {
		return [][]byte{data}
	}
	var parts [][]byte
	for i, at := range starts {
		end := len(data)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		parts = append(parts, data[at[0]:end])
	}
	return parts
}

func parseCommit(text []byte) (Commit, error) {
	diffs, preamble, err := gitdiff.Parse(bytes.NewReader(text))
	if err != nil {
		return Commit{}, err
	}
	message, _, _ := strings.Cut(preamble, "\n---\n")
	if IsMail(text) && strings.Contains(message, "\x00") {
		return Commit{}, errors.New("its message has a NUL byte, which git does not allow")
	}
	c := Commit{Text: text, Message: preamble}
	if h, err := gitdiff.ParsePatchHeader(preamble); err == nil { // a patch may begin with any text
		c.Title = h.Title
	}
	headers := len(gitHeader.FindAll(text, -1))
	plain := headers == 0
	if !plain && headers != len(diffs) { // of the others, gitdiff would take other paths than git
		return Commit{}, fmt.Errorf("it has %d headers of git, and changes %d files", headers, len(diffs))
	}
	for _, d := range diffs {
		if plain { // gitdiff takes a/ and b/ only from git's own headers
			d.OldName, d.NewName = cut(d.OldName), cut(d.NewName)
		}
		if kind := d.OldMode & typeBits; d.OldMode != 0 && kind != regular && kind != link && kind != submodule {
			return Commit{}, fmt.Errorf("%s has the mode %o in it, which no file of git has", d.OldName, d.OldMode)
		}
		otherMode := d.OldMode != 0 && d.NewMode != 0 && d.OldMode != d.NewMode // an index line has the old one alone
		if len(d.TextFragments) == 0 && !d.IsBinary && !d.IsNew && !d.IsDelete && !d.IsRename && !d.IsCopy && !otherMode {
			return Commit{}, fmt.Errorf("it has a header of %s, and no change", d.NewName)
		}
		f := File{Old: d.OldName, New: d.NewName, Copy: d.IsCopy, diff: d}
		if d.IsNew {
			f.Old = ""
		}
		if d.IsDelete {
			f.New = ""
		}
		c.Files = append(c.Files, f)
	}
	return c, nil
}

// Modes as git writes them begin with the type of the file.
const (
	typeBits  = 0o170000
	regular   = 0o100000
	link      = 0o120000
	submodule = 0o160000
)

// cut removes the first folder of a path, as git apply does.
func cut(name string) string {
	if _, rest, ok := strings.Cut(name, "/"); ok {
		return rest
	}
	return name
}

// Path returns the path that the file has after the change, or had before it was deleted.
func (f File) Path() string {
	if f.New != "" {
		return f.New
	}
	return f.Old
}

// ofGit reports whether a path is in a folder of git's own, or looks like one on some file system. Git changes no such file.
func ofGit(name string) bool {
	for part := range strings.SplitSeq(strings.ToLower(name), "/") {
		part = strings.TrimRight(part, " .")
		if base, _, _ := strings.Cut(part, ":"); base == ".git" || base == "git~1" {
			return true
		}
	}
	return false
}

// refuse returns why a change cannot be made, or "".
func refuse(f File) string {
	for _, name := range []string{f.Old, f.New} {
		if name != "" && (!fs.ValidPath(name) || name == "." || strings.Contains(name, `\`) || ofGit(name)) {
			return "not a path inside the repository"
		}
	}
	if f.diff.IsBinary && f.diff.BinaryFragment == nil {
		return "the content of the binary file is missing: make the patch with git format-patch, or git diff --binary"
	}
	return ""
}
