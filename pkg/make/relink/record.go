package relink

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"

	"slipway.build/pkg/make/buildid"
	"slipway.build/pkg/mechanism/atomicfile"
)

// A Record says what in a program depends on its values, and how.
type Record struct {
	Size    int64   // bytes
	Values  []Value // all long ones
	BuildID []int64 // offsets, bytes
	HostID  int64   // see buildid.Layout
	Link    buildid.Link
}

// A Value is a string that -X sets.
type Value struct {
	Name    string // of the variable, with the import path of its package
	Text    string
	Offsets []int64 // bytes; none if the program does not use the variable
}

// errOther means that a program is not what its record says.
var errOther = errors.New("the program is not that of its record")

// find finds what the linker has written into a program because of a build ID.
func (r *Record) find(data []byte, buildID string) error {
	l, err := buildid.Find(data, buildID)
	r.Size, r.BuildID, r.HostID = l.Size, l.IDs, l.Host
	return err
}

// layout returns where the program depends on its build ID.
func (r Record) layout(f io.ReaderAt) (buildid.Layout, error) {
	l, err := buildid.FormatOf(f, r.Size)
	l.IDs, l.Host = r.BuildID, r.HostID
	return l, err
}

// with returns the record of the program with other values, by name: they must be those that the record names, in their lengths.
func (r Record) with(values map[string]string) (Record, error) {
	if len(values) != len(r.Values) {
		return r, fmt.Errorf("%w: it has %d values, not %d", errOther, len(r.Values), len(values))
	}
	r.Values, r.Link.Flags = slices.Clone(r.Values), slices.Clone(r.Link.Flags)
	for i := range r.Values {
		v := &r.Values[i]
		value, ok := values[v.Name]
		at := slices.Index(r.Link.Flags, v.Name+"="+v.Text)
		if !ok || len(value) != len(v.Text) || at < 1 || r.Link.Flags[at-1] != "-X" {
			return r, fmt.Errorf("%w: it has no value of %d bytes for %s", errOther, len(value), v.Name)
		}
		v.Text = value
		r.Link.Flags[at] = v.Name + "=" + value
	}
	return r, nil
}

// verify compares a program with its record: every byte, by the digest in its build ID, and all that with depends on.
func (r Record) verify(f io.ReaderAt) error {
	l, err := r.layout(f)
	if err != nil {
		return err
	}
	content, _, err := r.copyTo(io.Discard, f, l, r)
	if err != nil {
		return err
	}
	return r.check(f, l, content)
}

// check compares a program with its record, given its content ID.
func (r Record) check(f io.ReaderAt, l buildid.Layout, content string) error {
	if len(r.BuildID) == 0 {
		return fmt.Errorf("%w: it has no build ID", errOther)
	}
	linked := r.Link.BuildID()
	texts := map[string][]int64{buildid.WithContent(linked, content): r.BuildID}
	if host := l.HostID(linked); host != "" {
		texts[host] = []int64{r.HostID}
	}
	for _, v := range r.Values {
		texts[v.Text] = append(texts[v.Text], v.Offsets...)
	}
	for text, offsets := range texts {
		for _, at := range offsets {
			found := make([]byte, len(text))
			if _, err := f.ReadAt(found, at); err != nil {
				return err
			}
			if string(found) != text {
				return fmt.Errorf("%w: offset %d", errOther, at)
			}
		}
	}
	sums, at, err := l.Sign(f)
	if err != nil {
		return err
	}
	found := make([]byte, len(sums))
	if _, err := f.ReadAt(found, at); err != nil {
		return err
	}
	if !bytes.Equal(found, sums) {
		return fmt.Errorf("%w: its signature", errOther)
	}
	return nil
}

// copyTo copies a program with the values of another record, which differs in nothing else. It returns the last part of the build ID of
// both: the digest of a program with zeros where it depends on the build ID (FindAndHash in cmd/internal/buildid). The copy keeps the old
// bytes there; identify overwrites them.
func (r Record) copyTo(w io.Writer, f io.ReaderAt, l buildid.Layout, other Record) (content, otherContent string, err error) {
	type piece struct {
		at, size int64
		text     string // of a value, in the copy; "" stands for zeros
	}
	pieces := []piece{{at: l.Code, size: l.Signature}, {at: l.Host, size: l.HostSize}}
	for _, at := range l.IDs {
		pieces = append(pieces, piece{at: at, size: int64(len(r.Link.BuildID()))})
	}
	for i, v := range r.Values {
		if text := other.Values[i].Text; text != v.Text {
			for _, at := range v.Offsets {
				pieces = append(pieces, piece{at, int64(len(text)), text})
			}
		}
	}
	pieces = slices.DeleteFunc(pieces, func(p piece) bool { return p.size == 0 })
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Compare(a.at, b.at) })
	h := sha256.New()
	otherHash := h // until a byte differs
	both := func() io.Writer {
		if otherHash == h {
			return h
		}
		return io.MultiWriter(h, otherHash)
	}
	end, buffer := int64(0), make([]byte, 128<<10)
	for _, p := range append(pieces, piece{at: r.Size}) {
		if p.at < end || p.at+p.size > r.Size {
			return "", "", fmt.Errorf("%w: offset %d", errOther, p.at)
		}
		if _, err := io.CopyBuffer(io.MultiWriter(w, both()), io.NewSectionReader(f, end, p.at-end), buffer); err != nil {
			return "", "", err
		}
		end = p.at + p.size
		found := make([]byte, p.size)
		if _, err := f.ReadAt(found, p.at); err != nil && p.size > 0 { // the last piece is the end
			return "", "", err
		}
		if p.text == "" {
			if _, err := w.Write(found); err != nil {
				return "", "", err
			}
			both().Write(make([]byte, p.size))
			continue
		}
		if otherHash == h {
			clone, err := h.(hash.Cloner).Clone()
			if err != nil {
				return "", "", err
			}
			otherHash = clone
		}
		if _, err := io.WriteString(w, p.text); err != nil {
			return "", "", err
		}
		h.Write(found)
		io.WriteString(otherHash, p.text)
	}
	return buildid.Sum(h), buildid.Sum(otherHash), nil
}

// ReadRecord reads a record that a link has written.
func ReadRecord(file string) (Record, error) {
	var r Record
	data, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("the record of a link: %w", err)
	}
	return r, nil
}

func (r Record) write(file string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(file, append(data, '\n'), 0o644)
}
