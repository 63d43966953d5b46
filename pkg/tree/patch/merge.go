package patch

import (
	"io"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"slipway.build/pkg/tree/folder"
)

// A Merge is a commit in a form that `git am --3way` merges even if it does not apply.
type Merge struct {
	Text    []byte   // as in Commit, but index lines name the merge bases
	Bases   [][]byte // the contents of the merge bases
	LeftOut []string // binary files whose new content is unknown without the old one
}

// Merge returns a commit in a form that git can merge, and changes the overlay as the commit would. Find looks up the content that a
// change was made for, by path and the beginning of git's name for it. If it finds none, the merge base is a guess: the file as it is now,
// but where it is most like what a hunk expects, it has just that.
func (o *Overlay) Merge(c Commit, find func(name, blob string) ([]byte, bool)) (*Merge, error) {
	m := &Merge{}
	text := c.Message
	for _, f := range c.Files {
		if skip, err := o.attempt(false).skip(f); err != nil {
			return nil, err
		} else if skip {
			continue
		}
		var now, found []byte
		var ok bool
		if f.Old != "" {
			var err error
			if now, err = o.ReadFile(f.Old); err != nil && !folder.Missing(err) {
				return nil, err
			}
			found, ok = find(f.Old, f.diff.OldOIDPrefix)
		}
		diff := *f.diff
		if !diff.IsBinary {
			found = o.mergeText(f, &diff, now, found)
		} else if !ok {
			found = m.binary(f, &diff, now)
		}
		if f.Old != "" {
			diff.OldOIDPrefix = Blob(found)
			m.Bases = append(m.Bases, found)
		}
		text += diff.String()
	}
	m.Text = []byte(text)
	return m, nil
}

// mergeText returns the merge base of a text.
func (o *Overlay) mergeText(f File, diff *gitdiff.File, now, found []byte) (base []byte) {
	all := hunks(diff, false)
	base = ancestor(now, all)
	result, _, _ := patchText(base, all)
	if f.Old != "" && f.Old != f.New && !f.Copy {
		o.Set(f.Old, Change{Removed: true})
	}
	if f.New != "" {
		o.Set(f.New, Change{Data: result})
	}
	if patched, _, bad := patchText(found, all); found != nil && bad == nil {
		base, result = found, patched
	}
	if f.New != "" {
		diff.NewOIDPrefix = Blob(result)
	}
	return base
}

// binary returns the merge base of a binary file. If the change was made for another file, the base differs from both, so that git
// reports a conflict.
func (m *Merge) binary(f File, diff *gitdiff.File, now []byte) (base []byte) {
	const emptyZlib = "x\x9c\x03\x00\x00\x00\x00\x01"
	if f.Old == "" || isBlob(now, diff.OldOIDPrefix) {
		return now
	}
	if diff.BinaryFragment.Method != gitdiff.BinaryPatchLiteral {
		m.LeftOut = append(m.LeftOut, f.Path())
		diff.BinaryFragment = &gitdiff.BinaryFragment{Method: gitdiff.BinaryPatchLiteral, RawData: []byte(emptyZlib)}
	}
	if result, err := io.ReadAll(diff.BinaryFragment.Data()); err == nil && f.New != "" {
		diff.NewOIDPrefix = Blob(result)
	}
	return append([]byte{0}, now...)
}
