package patch

// A Merge is a commit in a form that `git am --3way` merges even if it does not apply.
type Merge struct {
	Text    []byte   // as in Commit, but index lines name the merge bases
	Bases   [][]byte // the contents of the merge bases
	LeftOut []string // binary files without a merge base, whose changes are not in Text
}

// Merge returns a commit in a form that git can merge, and changes the overlay as the commit would. Find looks up the content that a
// commit was made for, by path and the beginning of git's name for it. If it finds none, the merge base is a guess: the file as it is now,
// but with what a hunk expects where the file is most like that.
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
			if now, err = o.ReadFile(f.Old); err != nil && !missing(err) {
				return nil, err
			}
			found, ok = find(f.Old, f.diff.OldOIDPrefix)
		}
		diff := *f.diff
		if diff.IsBinary {
			if !ok && !isBlob(now, diff.OldOIDPrefix) {
				m.LeftOut = append(m.LeftOut, f.Path())
				continue
			}
			if !ok {
				found = now
			}
		} else {
			all := hunks(f.diff, false)
			base := ancestor(now, all)
			result, _, _ := patchText(base, all)
			if f.Old != "" && f.Old != f.New && !f.Copy {
				o.Set(f.Old, Change{Removed: true})
			}
			if f.New != "" {
				o.Set(f.New, Change{Data: result})
			}
			if patched, _, bad := patchText(found, all); ok && bad == nil {
				base, result = found, patched
			}
			if f.Old != "" {
				found, diff.OldOIDPrefix = base, Blob(base)
			}
			if f.New != "" {
				diff.NewOIDPrefix = Blob(result)
			}
		}
		if f.Old != "" {
			m.Bases = append(m.Bases, found)
		}
		text += diff.String()
	}
	m.Text = []byte(text)
	return m, nil
}
