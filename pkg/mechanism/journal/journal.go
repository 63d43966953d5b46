// Package journal replaces many files of a folder all at once: all of them, or none.
//
// [Apply] writes the new contents, and copies of the old ones, into a folder of its own on the same file system. Then it writes a
// journal, and from there on the change counts as made: Apply moves each file into place, and removes the journal. If that fails, it
// moves the old files back. If it is killed, [Recover] finishes the change, or undoes it if that cannot be done. That is so after a power
// failure, too: each step is on the disk, the entries of folders included, before the next one counts on it. (On Windows, folders cannot
// be synced: the system writes entries in its own time.)
//
// # What must never be in here
//
// What the files are, and who may change them at the same time: callers hold a lock.
package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// A Change is a file that is written or removed.
type Change struct {
	Name   string      // relative to the root, with slashes
	Data   []byte      // the new content
	Mode   fs.FileMode // its permissions
	Remove bool        // no file has the name any more
	From   string      // Sum of the content that the change was made from; empty: there was no file
}

// file is the journal, in a folder that also has the contents.
const file = "journal.json"

// A record is a change that a journal describes.
type record struct {
	Title string `json:"title"` // for people: what the change is
	Steps []step `json:"steps"`
}

// A step replaces one file. Sums are SHA-256 in hex; that of a missing file is empty.
type step struct {
	Name string `json:"name"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// Pending reports whether a change waits in dir, relative to root.
func Pending(root, dir string) bool {
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(dir), file))
	return err == nil
}

// An EditedError says that a file is no longer the one that a change was made from.
type EditedError struct{ Name string }

func (e *EditedError) Error() string { return e.Name + " was edited while the change was prepared" }

// A PendingError says that an earlier change was interrupted, and neither finished nor undone.
type PendingError struct{ Dir string }

func (e *PendingError) Error() string { return e.Dir + " holds a change that is not finished" }

// Apply makes all changes below root, or none. dir is a folder relative to root for what it writes meanwhile. Title says what the
// change is. An error is an *EditedError if a file is not what a change was made from, and a *PendingError if there is an earlier
// change for Recover.
func Apply(root, dir, title string, changes []Change) error {
	if Pending(root, dir) {
		return &PendingError{dir}
	}
	j := open(root, dir, title)
	if err := j.stage(changes); err != nil {
		return errors.Join(err, os.RemoveAll(j.dir))
	}
	return j.carryOut()
}

// Recover finishes a change that Apply left behind when it was killed, or undoes it. It returns the title of the change and what
// became of it, or nothing if there was none.
func Recover(root, dir string) (title string, undone bool, err error) {
	j := open(root, dir, "")
	data, err := os.ReadFile(filepath.Join(j.dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	if err := json.Unmarshal(data, &j.record); err != nil {
		return "", false, fmt.Errorf("%s: %w", filepath.Join(j.dir, file), err)
	}
	err = j.carryOut()
	var back *UndoneError
	if errors.As(err, &back) {
		return j.Title, true, nil
	}
	return j.Title, false, err
}

// An UndoneError says that a change could not be made, and that the files are as before.
type UndoneError struct{ Err error }

func (e *UndoneError) Error() string { return e.Err.Error() + "; nothing was changed" }
func (e *UndoneError) Unwrap() error { return e.Err }

// A journal is a change that is under way.
type journal struct {
	root, dir string
	sync      func(folder string) error // waits until the disk has a folder's entries
	record
}

func open(root, dir, title string) *journal {
	return &journal{root: root, dir: filepath.Join(root, filepath.FromSlash(dir)), sync: syncFolder, record: record{Title: title}}
}

func (j *journal) target(s step) string { return filepath.Join(j.root, filepath.FromSlash(s.Name)) }
func (j *journal) content(kind string, i int) string {
	return filepath.Join(j.dir, kind+strconv.Itoa(i))
}

// stage writes the contents, new and old, and then the journal. All are on the disk when it returns.
func (j *journal) stage(changes []Change) error {
	if err := os.RemoveAll(j.dir); err != nil {
		return err
	}
	if err := j.makeFolder(j.dir); err != nil {
		return err
	}
	for i, c := range changes {
		if !filepath.IsLocal(filepath.FromSlash(c.Name)) {
			return fmt.Errorf("%q is not a file below %s", c.Name, j.root)
		}
		s := step{Name: c.Name}
		var err error
		if s.Old, err = j.keep(s, i); err != nil {
			return err
		}
		if s.Old != c.From {
			return &EditedError{c.Name}
		}
		if !c.Remove {
			s.New = Sum(c.Data)
			if err := write(j.content("new", i), c.Data, c.Mode); err != nil {
				return err
			}
		}
		j.Steps = append(j.Steps, s)
	}
	data, err := json.MarshalIndent(j.record, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(j.dir, file)
	if err := write(name+".tmp", append(data, '\n'), 0o666); err != nil {
		return err
	}
	if err := os.Rename(name+".tmp", name); err != nil {
		return err
	}
	return j.sync(j.dir)
}

// makeFolder makes a folder and those above it, as far as they are missing, and waits until the disk has their entries.
func (j *journal) makeFolder(name string) error {
	err := os.Mkdir(name, 0o777)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := j.makeFolder(filepath.Dir(name)); err != nil {
			return err
		}
		return j.makeFolder(name)
	case errors.Is(err, fs.ErrExist):
		return os.MkdirAll(name, 0o777) // an error unless it is a folder
	case err != nil:
		return err
	}
	return j.sync(filepath.Dir(name))
}

// syncFolder waits until the disk has the entries of a folder: what was renamed, made or removed there.
func syncFolder(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) { // file systems that sync no folders
		err = nil
	}
	return errors.Join(err, f.Close())
}

// keep copies the old content of a file, and returns its sum, or "" if there is no file.
func (j *journal) keep(s step, i int) (string, error) {
	data, err := read(j.target(s))
	if err != nil || data == nil {
		return "", err
	}
	info, err := os.Stat(j.target(s))
	if err != nil {
		return "", err
	}
	return Sum(data), write(j.content("old", i), data, info.Mode().Perm())
}

// write writes a file and waits until the disk has it.
func write(name string, data []byte, mode fs.FileMode) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	return f.Sync()
}

// carryOut moves the new files into place, or, if that fails, the old ones.
func (j *journal) carryOut() error {
	for _, s := range j.Steps {
		switch now, err := sumOf(j.target(s)); {
		case err != nil:
			return j.undo(err)
		case now != s.Old && now != s.New:
			return fmt.Errorf("%s was edited while the change %q was under way: it waits in %s: remove the edit, or that folder to keep the files "+
				"as they are",
				j.target(s), j.Title, j.dir)
		}
	}
	for i, s := range j.Steps {
		if err := j.place(s, s.New, j.content("new", i)); err != nil {
			return j.undo(err)
		}
	}
	return j.close()
}

func (j *journal) undo(cause error) error {
	for i, s := range j.Steps {
		if err := j.place(s, s.Old, j.content("old", i)); err != nil {
			return fmt.Errorf("%w; then the old files could not be put back, which are in %s: %w", cause, j.dir, err)
		}
	}
	if err := j.close(); err != nil {
		return errors.Join(cause, err)
	}
	return &UndoneError{cause}
}

// place gives a file the content with a sum, which is in the file from unless it is in place already. An empty sum means no file.
func (j *journal) place(s step, want, from string) error {
	target := j.target(s)
	now, err := sumOf(target)
	if err != nil || now == want {
		return err
	}
	if want == "" {
		if err := os.Remove(target); err != nil {
			return err
		}
		return j.sync(filepath.Dir(target))
	}
	if has, err := sumOf(from); err != nil {
		return err
	} else if has != want {
		return fmt.Errorf("%s is damaged: it is not what was written for %s", from, s.Name)
	}
	if err := j.makeFolder(filepath.Dir(target)); err != nil {
		return err
	}
	if err := os.Rename(from, target); err != nil {
		return err
	}
	return j.sync(filepath.Dir(target))
}

// close ends the change: first the journal goes, without which the rest means nothing.
func (j *journal) close() error {
	if err := os.Remove(filepath.Join(j.dir, file)); err != nil {
		return err
	}
	if err := j.sync(j.dir); err != nil {
		return err
	}
	return os.RemoveAll(j.dir)
}

// sumOf returns the sum of a file's content, or "" if there is none.
func sumOf(name string) (string, error) {
	data, err := read(name)
	if err != nil || data == nil {
		return "", err
	}
	return Sum(data), nil
}

// read returns a file's content, or nil if there is no file.
func read(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	return data, err
}

// Sum returns the SHA-256 of a content in hex.
func Sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}
