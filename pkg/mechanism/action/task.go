package action

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Task is what a running action, or batch, works with: places to write to, digests that are known already, and ways to
// report. Its methods may be called from several goroutines. Paths are those that the action declares; for a batch, those
// that any member declares. A path that is not declared is a mistake in the program and panics.
type Task struct {
	run    *run
	unit   *unit
	all    []*verdict // of all members
	stale  []*verdict // of those that run
	folder string     // absolute; holds everything temporary of this task
	start  time.Time

	mu    sync.Mutex
	facts facts
}

// facts are what an action has reported to its task.
type facts struct {
	known  map[string][sha256.Size]byte
	memory int64 // peak, bytes
	by     string
	unit   Unit
	err    error // why a temporary folder could not be made
}

// Path returns the absolute path at which the action writes an output. It is on the file system of the output's final place
// and has its base name. Its parent folders exist; an output that is a directory exists itself, and is empty.
func (t *Task) Path(output string) string {
	out := t.declared(output)
	p := t.temporary(out)
	dir := filepath.Dir(p)
	if strings.HasSuffix(out, "/") {
		dir = p
	}
	t.mkdir(dir)
	return p
}

func (t *Task) temporary(out string) string {
	return filepath.Join(t.folder, "out", filepath.FromSlash(out))
}

// Previous returns the absolute path of an output that is still as the last run left it, and "" if it is not. The file
// stays until the action has returned, and nobody may write to it, not even through a hard link.
func (t *Task) Previous(output string) string {
	out := t.declared(output)
	if v := t.maker(out); !t.run.intact(v.record, out) {
		return ""
	}
	return t.run.absolute(out)
}

// Known sets the SHA-256, in hexadecimal, of an output that is a file, for actions that compute it while they write. The
// runner trusts it and does not read the file.
func (t *Task) Known(output, sum string) {
	out := t.declared(output)
	var known [sha256.Size]byte
	if n, err := hex.Decode(known[:], []byte(sum)); err != nil || n != len(known) || len(sum) != 2*len(known) {
		panic(fmt.Sprintf("%s: %q is not a SHA-256 of %s", t.unit.id, sum, output))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.facts.known[out] = known
}

// Sum returns the SHA-256, in hexadecimal, of an input file, or of a file in an input directory, without reading it. It
// returns "" if the input leads to no file.
func (t *Task) Sum(input string) string {
	p := normalPath(t.run.root, input)
	for _, v := range t.all {
		if sum, ok := v.sum(p); ok {
			return sum
		}
	}
	return ""
}

// Dir returns the absolute path of a folder for the action's temporary files.
func (t *Task) Dir() string {
	dir := filepath.Join(t.folder, "dir")
	t.mkdir(dir)
	return dir
}

// Progress reports that done of total (0: unknown) units of work are done; text names the latest.
func (t *Task) Progress(done, total int64, text string) {
	t.emit(Event{Kind: Progress, Done: done, Total: total, Text: text})
}

// Counts sets what Progress counts from now on.
func (t *Task) Counts(unit Unit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.facts.unit = unit
}

// Output reports a line of a tool's output.
func (t *Task) Output(line string) { t.emit(Event{Kind: Output, Text: line}) }

// Step reports that a part of the work is done, and how long it took.
func (t *Task) Step(text string, took time.Duration) {
	t.emit(Event{Kind: Step, Text: text, Duration: took})
}

// By sets what does the work from now on, for every event of the task: "go build, pid 4711".
func (t *Task) By(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.facts.by = text
}

// Memory reports the peak resident memory, in bytes, of the processes that the action started. The highest of several
// reports counts.
func (t *Task) Memory(peak int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.facts.memory = max(t.facts.memory, peak)
}

func (t *Task) emit(e Event) {
	e.Action, e.Phase = t.unit.id, t.unit.phase
	facts := t.snapshot()
	if e.By = facts.by; e.Kind == Progress {
		e.Unit = facts.unit
	}
	t.run.emit(e)
}

// mkdir keeps its error for later: the action's own attempt to write fails, too, with a less clear one.
func (t *Task) mkdir(dir string) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.facts.err == nil {
			t.facts.err = err
		}
	}
}

// snapshot returns a copy of what the action has reported until now.
func (t *Task) snapshot() facts {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.facts
	f.known = maps.Clone(f.known)
	return f
}

func (t *Task) declared(output string) string {
	out := normalPath(t.run.root, output)
	if t.maker(out) == nil {
		panic(fmt.Sprintf("%s: %q is not among its outputs", t.unit.id, output))
	}
	return out
}

func (t *Task) maker(out string) *verdict {
	for _, v := range t.all {
		for _, o := range v.outputs {
			if o == out {
				return v
			}
		}
	}
	return nil
}

func (u *unit) folder(tmp string) string { return filepath.Join(tmp, strconv.Itoa(u.rank)) }
