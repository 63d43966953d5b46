package relink

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/atomicfile"
)

// Shortest is the length of a value, in bytes, from which it can be replaced. A shorter one might be anywhere in a program.
const Shortest = 16

// Mask returns flags of the linker with the lengths of long values instead of these, for keys, and the values, by the names of their variables. There
// are no values if nothing can be replaced.
func Mask(ldflags string) (masked string, values map[string]string) {
	if strings.ContainsAny(ldflags, `'"`) {
		return ldflags, nil // rare, and split in another way
	}
	values = map[string]string{}
	words := strings.Fields(ldflags)
	for i := 1; i < len(words); i++ {
		if name, value, _ := strings.Cut(words[i], "="); words[i-1] == "-X" && len(value) >= Shortest {
			values[name] = value
			words[i] = fmt.Sprintf("%s: %d bytes", name, len(value))
		}
	}
	return strings.Join(words, " "), values
}

// Links are programs that were linked on this machine, or copied here.
type Links struct {
	Folder string // below which they are kept
}

// kept is how many links of a program stay: those of a clean and a dirty tree, whose versions have different lengths.
const kept = 2

// The files of a link.
const (
	stateFile   = "link.json"
	programFile = "program" // a hard link
)

// A State is what is known of a program that was kept.
type state struct {
	Record   Record
	Values   map[string]string
	Modified time.Time // when the program was last written to
	Foreign  bool      // a cache of other machines had a part in it
	Checked  bool      // see check
}

// A Program is one that is to be made, or that was.
type Program struct {
	Name   string // the same for all versions: linux/amd64/kubectl
	Key    string // of all that decides its bytes, but values
	Values map[string]string
	File   string // absolute
}

// Copy makes a program from one that is kept. It reports whether there is one, and whether a cache of other machines had a part in it; that
// one is not used if own is set.
func (l Links) Copy(p Program, own bool) (made, foreign bool) {
	dir := l.dir(p)
	s, err := readState(dir)
	if err != nil || s.Foreign && own {
		return false, false
	}
	base := filepath.Join(dir, programFile)
	info, err := os.Stat(base)
	if err != nil || info.Size() != s.Record.Size || !info.ModTime().Equal(s.Modified) {
		return false, false
	}
	if !s.Checked && s.Record.check(base, p.File, s.Values) != nil {
		return false, false
	}
	if err := s.Record.copy(base, p.File, p.Values); err != nil {
		return false, false // the compile says what is wrong with the disk
	}
	if err := l.keep(p, state{Record: s.Record, Foreign: s.Foreign, Checked: true}); err != nil {
		return false, false
	}
	return true, s.Foreign
}

// Keep keeps a program that was linked, with the record of that. The file may be moved afterwards. If it changes, it is not used.
func (l Links) Keep(p Program, record string, foreign bool) error {
	r, err := readRecord(record)
	if err != nil {
		return err
	}
	return l.keep(p, state{Record: r, Foreign: foreign})
}

func (l Links) dir(p Program) string {
	return filepath.Join(l.Folder, url.PathEscape(p.Name), p.Key)
}

func (l Links) keep(p Program, s state) error {
	info, err := os.Stat(p.File)
	if err != nil {
		return err
	}
	s.Values, s.Modified = p.Values, info.ModTime()
	dir := l.dir(p)
	// Without a state, what an interrupted run leaves is not used.
	for _, name := range []string{stateFile, programFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Link(p.File, filepath.Join(dir, programFile)); err != nil {
		return nil // the file system has no hard links, and copies would take too much of it
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, stateFile), data, 0o644); err != nil {
		return err
	}
	return prune(filepath.Dir(dir))
}

func readState(dir string) (state, error) {
	var s state
	data, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(data, &s)
}

// prune removes all but the newest links of a program.
func prune(programs string) error {
	entries, err := os.ReadDir(programs)
	if err != nil {
		return err
	}
	written := map[string]time.Time{} // when a link's state was written; none for what an interrupted run has left
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(programs, e.Name(), stateFile)); err == nil {
			written[e.Name()] = info.ModTime()
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return written[b.Name()].Compare(written[a.Name()]) })
	var failed []error
	for _, e := range entries[min(kept, len(entries)):] {
		failed = append(failed, os.RemoveAll(filepath.Join(programs, e.Name())))
	}
	return errors.Join(failed...)
}

// copy makes a program with other values. What has its name before stays as it is under other names.
func (r Record) copy(from, to string, values map[string]string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o777)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, in)
	if err == nil && n != r.Size {
		err = fmt.Errorf("%w: it has %d bytes, and %d when it was linked", errOther, n, r.Size)
	}
	if err == nil {
		err = r.with(out, values)
	}
	return errors.Join(err, out.Close())
}

// check makes a program with the values that it has. If that is not the same program, the record is of no use: this package computes
// something differently from the go command. The copy is left in a file.
func (r Record) check(program, copied string, values map[string]string) error {
	if err := r.copy(program, copied, values); err != nil {
		return err
	}
	want, _, err := sum(program)
	if err != nil {
		return err
	}
	got, _, err := sum(copied)
	if err == nil && got != want {
		err = errOther
	}
	return err
}

// sum returns a file's SHA-256 in hex, and its size in bytes.
func sum(name string) (string, int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// The files of a link in a cache that machines share.
const (
	sharedRecord  = "record.json"
	sharedProgram = "program"
)

// A Share is a cache that machines share.
type Share struct {
	Cache   action.Cache
	Scratch string // an empty folder
}

func shareKey(key string) string { return action.FindKey("link 1", key) }

// Copy makes a program from one that the cache has, and keeps it in links. It reports whether the cache has one.
func (s Share) Copy(ctx context.Context, links Links, p Program) (made bool, err error) {
	found := s.Cache.Find(ctx, shareKey(p.Key))
	if found == nil {
		return false, nil
	}
	dir, err := os.MkdirTemp(s.Scratch, "link")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	files := map[string]string{}
	var contents []action.Content
	for _, e := range found.Entries {
		if e.Path != sharedRecord && e.Path != sharedProgram || files[e.Path] != "" {
			return false, fmt.Errorf("a link in the cache has a file %s", e.Path)
		}
		files[e.Path] = filepath.Join(dir, e.Path)
		contents = append(contents, action.Content{SHA256: e.SHA256, Size: e.Size, File: files[e.Path]})
	}
	if len(files) != 2 {
		return false, errors.New("a link in the cache lacks a file")
	}
	if err := s.Cache.Fetch(ctx, contents); err != nil {
		return false, err
	}
	r, err := readRecord(files[sharedRecord])
	if err != nil {
		return false, err
	}
	if err := r.copy(files[sharedProgram], p.File, p.Values); err != nil {
		return false, err
	}
	return true, links.keep(p, state{Record: r, Foreign: true, Checked: true})
}

// Store keeps in the cache a program that links have, unless the cache has one with that key.
func (s Share) Store(ctx context.Context, links Links, p Program) error {
	if s.Cache.Find(ctx, shareKey(p.Key)) != nil {
		return nil
	}
	dir := links.dir(p)
	known, err := readState(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it could not be kept
	}
	if err != nil {
		return err
	}
	copied := filepath.Join(s.Scratch, programFile)
	if err := known.Record.check(filepath.Join(dir, programFile), copied, known.Values); errors.Is(err, errOther) {
		return nil
	} else if err != nil {
		return err
	}
	program, size, err := sum(copied)
	if err != nil {
		return err
	}
	record, err := json.Marshal(known.Record)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(record)
	return s.Cache.Store(ctx, shareKey(p.Key), &action.Result{Entries: []action.Entry{
		{Path: sharedProgram, Kind: action.ExecutableFile, SHA256: program, Size: size},
		{Path: sharedRecord, Kind: action.RegularFile, SHA256: hex.EncodeToString(digest[:]), Size: int64(len(record))},
	}}, func(path string) (io.ReadCloser, error) {
		if path == sharedRecord {
			return io.NopCloser(bytes.NewReader(record)), nil
		}
		return os.Open(copied)
	})
}
