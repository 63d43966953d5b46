package relink

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/atomicfile"
)

// Links are programs that were linked before.
type Links struct {
	Folder  string // keeps the programs of one platform between runs
	Scratch string // an empty folder of this run
}

// argument is the first argument of this program where the go command calls it for a link. The others are Links.Folder, Links.Scratch, and
// the linker with its arguments.
const argument = "slipway-relink"

// The go command calls a shell for each tool, since a shell starts faster than this program, and all tools but the linker are started thousands of
// times. The words that follow the script are this program, Folder, Scratch, and the tool with its arguments. If this program was removed while it
// runs, the linker is called.
const script = `case $3 in */link) [ ! -x "$0" ] || exec "$0" ` + argument + ` "$@";; esac; shift 2; exec "$@"`

// Flag returns the flag of the go command by which its links are done here. The error says why that is not possible on this machine.
func (l Links) Flag() (string, error) {
	if runtime.GOOS == "windows" {
		return "", errors.New("no POSIX shell on Windows")
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		return "", err
	}
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	words := []string{shell, "-c", script, program, l.Folder, l.Scratch}
	for i, w := range words {
		if words[i], err = quote(w); err != nil {
			return "", err
		}
	}
	return "-toolexec=" + strings.Join(words, " "), nil
}

// quote quotes a word as the go command splits flags: quotes of either kind enclose all of it, and nothing escapes them.
func quote(word string) (string, error) {
	switch {
	case !strings.Contains(word, "'"):
		return "'" + word + "'", nil
	case !strings.Contains(word, `"`):
		return `"` + word + `"`, nil
	}
	return "", fmt.Errorf("%s: the go command takes no word with quotes of both kinds", word)
}

// A program is one that was linked. Its record is a JSON file beside it.
type program struct {
	Package  string  // import path
	Format   string  // elf, macho or pe
	Key      string  // of all that the linker has read but for the values and the build ID: see link.key
	IDs      []int64 // offsets of the build ID, bytes
	HostIDs  []int64 // offsets of the ID that the linker derives from it: see hostID
	Values   []value
	Size     int64     // bytes
	Modified time.Time // when the file that Keep has kept was last written
	Copied   bool      // from another program
}

// A value is a string that is written into a program.
type value struct {
	Name    string // of the variable, with its package's import path
	Text    string
	Offsets []int64 // bytes; none if the program does not use the variable
}

// kept is how many links of a program stay: those of a clean and a dirty tree, whose versions have different lengths.
const kept = 2

const (
	recordFile  = "link.json"
	programFile = "program"
)

// Keep keeps the programs that were linked in this run for later ones, and removes old ones. File returns where the go command has written
// the program of a package. The programs there may be moved afterwards. They are kept as hard links, and one that has changed is not used.
// Keep returns how many programs were copied, and not linked.
func (l Links) Keep(file func(importPath string) string) (copied int, err error) {
	records, err := os.ReadDir(l.Scratch)
	if err != nil {
		return 0, err
	}
	for _, record := range records {
		p, err := read(filepath.Join(l.Scratch, record.Name()))
		if err != nil {
			return copied, err
		}
		if err := l.keep(p, file(p.Package)); err != nil {
			return copied, fmt.Errorf("keep the link of %s: %w", p.Package, err)
		}
		if p.Copied {
			copied++
		}
	}
	return copied, nil
}

func (l Links) keep(p program, file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.Size() != p.Size {
		return fmt.Errorf("%s has %d bytes, and %d when it was linked", file, info.Size(), p.Size)
	}
	p.Modified = info.ModTime()
	dir := l.place(p.Package, p.Key)
	// The record goes first: without it, what is left of an interrupted run is not used.
	if err := os.Remove(filepath.Join(dir, recordFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(filepath.Join(dir, programFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Link(file, filepath.Join(dir, programFile)); err != nil {
		return nil // the file system has no hard links, and a copy of each program would take too much of it
	}
	if err := p.write(filepath.Join(dir, recordFile)); err != nil {
		return err
	}
	return prune(filepath.Dir(dir))
}

// place returns the folder of a link.
func (l Links) place(importPath, key string) string {
	return filepath.Join(l.Folder, url.PathEscape(importPath), key)
}

// prune removes all but the newest links of a program.
func prune(programs string) error {
	entries, err := os.ReadDir(programs)
	if err != nil {
		return err
	}
	written := map[string]time.Time{} // the time of a link's record; none for what an interrupted run has left
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(programs, e.Name(), recordFile)); err == nil {
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

func read(record string) (program, error) {
	var p program
	data, err := os.ReadFile(record)
	if err != nil {
		return program{}, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return program{}, fmt.Errorf("%s: %w", record, err)
	}
	return p, nil
}

func (p program) write(record string) error {
	data, err := json.MarshalIndent(p, "", "\t")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(record, append(data, '\n'), 0o644)
}
