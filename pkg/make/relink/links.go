package relink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// Shortest is the length of a value, in bytes, from which it can be replaced. A shorter one might be anywhere in a program. A version
// such as v1.37.1+acme.1 is long enough: twelve random letters have 72 bits.
const Shortest = 12

// Mask replaces long values in flags of the linker by their lengths, for keys, and returns the values, by the names of their variables.
// There are no values if nothing can be replaced.
func Mask(ldflags string) (masked string, values map[string]string) {
	if strings.ContainsAny(ldflags, `'"`) {
		return ldflags, nil // rare, and split in another way
	}
	values = map[string]string{}
	names := map[string]bool{}
	words := strings.FieldsFunc(ldflags, func(r rune) bool { return strings.ContainsRune(" \t\r\n", r) }) // as the go command splits them
	for i := 1; i < len(words); i++ {
		if words[i-1] != "-X" {
			continue
		}
		name, value, _ := strings.Cut(words[i], "=")
		if names[name] {
			return ldflags, nil
		}
		if names[name] = true; len(value) >= Shortest {
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

// A state describes a program that was kept.
type state struct {
	Record   Record
	Modified time.Time // when the program was last written to
	Origin   action.Origin
}

// A Program identifies a program.
type Program struct {
	Name   string            // the same for all versions: linux/amd64/kubectl
	Key    string            // covers everything that decides its bytes except the values
	Values map[string]string // by the names of variables
}

// Copy makes a new file of a program that is kept. It returns the record of the new file and the origin of the kept one, or nil if none
// can be copied. With own set, it copies only what is [action.Origin.Own].
func (l Links) Copy(p Program, file string, own bool) (made *Record, origin action.Origin) {
	dir := l.dir(p)
	var s state
	data, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil || json.Unmarshal(data, &s) != nil || own && !s.Origin.Own() {
		return nil, ""
	}
	base := filepath.Join(dir, programFile)
	info, err := os.Stat(base)
	if err != nil || !info.ModTime().Equal(s.Modified) {
		return nil, ""
	}
	if made, err = s.Record.copy(base, file, p.Values); err != nil {
		return nil, "" // if it is the disk, the compile says so
	}
	return made, s.Origin
}

// Keep keeps a program with its origin. If its file changes afterwards, it is not used.
func (l Links) Keep(p Program, file string, r Record, origin action.Origin) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	dir := l.dir(p)
	// Freeing a large file takes some hundredths of a second, which need not be waited for.
	old, _ := os.Open(filepath.Join(dir, programFile))
	defer func() { go old.Close() }()
	// Without a state, what an interrupted run leaves is not used.
	for _, name := range []string{stateFile, programFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Link(file, filepath.Join(dir, programFile)); err != nil {
		return nil // the file system has no hard links, and copies would take too much of it
	}
	data, err := json.Marshal(state{r, info.ModTime(), origin})
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, stateFile), data, 0o644); err != nil {
		return err
	}
	return prune(filepath.Dir(dir))
}

func (l Links) dir(p Program) string {
	return filepath.Join(l.Folder, url.PathEscape(p.Name), p.Key)
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

// copy makes a new file of a program, with other values. It returns the record of that.
func (r Record) copy(from, to string, values map[string]string) (*Record, error) {
	other, err := r.with(values)
	if err != nil {
		return nil, err
	}
	in, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) { // it may have other names, which stay as they are
		return nil, err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o777)
	if err != nil {
		return nil, err
	}
	err = r.rewrite(in, out, other)
	if err := errors.Join(err, out.Close()); err != nil {
		return nil, err
	}
	return &other, nil
}

// rewrite copies a program with the values of another record, if it is the program of this one.
func (r Record) rewrite(in, out *os.File, other Record) error {
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if info.Size() != r.Size {
		return fmt.Errorf("%w: it has %d bytes, not %d", errOther, info.Size(), r.Size)
	}
	l, err := r.layout(in)
	if err != nil {
		return err
	}
	content, otherContent, err := r.copyTo(out, in, l, other)
	if err != nil {
		return err
	}
	if err := r.check(in, l, content); err != nil {
		return err
	}
	return l.Identify(out, other.Link.BuildID(), otherContent)
}

// The files of a link in a shared cache.
const (
	sharedRecord  = "record.json"
	sharedProgram = "program"
)

// A Share keeps programs in a shared cache.
type Share struct {
	Cache   action.Cache
	Scratch string // a folder for temporary files
}

func shareKey(p Program) string { return action.BlobKey("link", p.Key) }

// Copy makes a new file of a program that the cache has. It returns the record of the new file, or nil if the cache has none.
func (s Share) Copy(ctx context.Context, p Program, file string) (*Record, error) {
	dir, err := os.MkdirTemp(s.Scratch, "link")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	found, err := action.FetchFiles(ctx, s.Cache, shareKey(p), dir, sharedRecord, sharedProgram)
	if !found || err != nil {
		return nil, err
	}
	r, err := ReadRecord(filepath.Join(dir, sharedRecord))
	if err != nil {
		return nil, err
	}
	return r.copy(filepath.Join(dir, sharedProgram), file, p.Values)
}

// Store keeps a program in the cache, unless the cache has one with that key, or the program is not what its record says.
func (s Share) Store(ctx context.Context, p Program, file string, r Record) error {
	if s.Cache.LookupBlob(ctx, shareKey(p)) != nil { // then nothing has to be read
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := r.verify(f); errors.Is(err, errOther) {
		return nil
	} else if err != nil {
		return err
	}
	record := filepath.Join(s.Scratch, p.Key+recordSuffix)
	if err := r.write(record); err != nil {
		return err
	}
	return action.StoreFiles(ctx, s.Cache, shareKey(p), map[string]string{sharedProgram: file, sharedRecord: record})
}
