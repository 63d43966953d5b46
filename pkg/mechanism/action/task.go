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

// A Task is what a running action, or batch, gets to work with: where to write, what is known already, and
// whom to tell. Its methods may be called from several goroutines. Paths are given as the action declares
// them; those of a batch may be any member's. A path that is not declared is a mistake in the program: panic.
type Task struct {
	run    *run
	unit   *unit
	all    []*verdict // of all members
	stale  []*verdict // of those that run
	folder string     // absolute; holds everything temporary of this task
	start  time.Time

	mu sync.Mutex
	so told
}

// told is what an action has told its task.
type told struct {
	known  map[string][sha256.Size]byte
	memory int64 // peak, bytes
	by     string
	err    error // a temporary folder that could not be made
}

// Path returns the absolute path under which the action writes an output. It is on the file system of the
// output's final place and keeps its base name. Its parent folders exist; of an output that is a directory,
// the directory does, and is empty.
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

// Previous returns the absolute path of an output as the last run left it, if it is still that, and "" if not.
// It stays as it is until the action has returned, and nobody may write to it: not through a hard link either.
func (t *Task) Previous(output string) string {
	out := t.declared(output)
	if v := t.maker(out); !t.run.intact(v.record, out) {
		return ""
	}
	return t.run.absolute(out)
}

// Known tells the SHA-256, in hexadecimal, of an output that is a file, as the action computed it while it
// wrote. The runner believes it and does not read the file again.
func (t *Task) Known(output, sum string) {
	out := t.declared(output)
	var known [sha256.Size]byte
	if n, err := hex.Decode(known[:], []byte(sum)); err != nil || n != len(known) || len(sum) != 2*len(known) {
		panic(fmt.Sprintf("%s: %q is no SHA-256 of %s", t.unit.id, sum, output))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.so.known[out] = known
}

// Sum returns the SHA-256, in hexadecimal, of an input file, or of a file in an input directory, as it is
// known without reading it. It is "" if the input leads to no file.
func (t *Task) Sum(input string) string {
	p := normalPath(t.run.root, input)
	for _, v := range t.all {
		if sum, ok := v.sum(p); ok {
			return sum
		}
	}
	return ""
}

// Dir returns an absolute path to a folder for whatever the action needs while it runs.
func (t *Task) Dir() string {
	dir := filepath.Join(t.folder, "dir")
	t.mkdir(dir)
	return dir
}

// Progress tells that done of total (0: unknown) units of work are done; text names the unit or the latest.
func (t *Task) Progress(done, total int64, text string) {
	t.emit(Event{Kind: Progress, Done: done, Total: total, Text: text})
}

// Output passes a line of a tool's output on.
func (t *Task) Output(line string) { t.emit(Event{Kind: Output, Text: line}) }

// Step tells that a part of the work is done, and how long it took.
func (t *Task) Step(text string, took time.Duration) {
	t.emit(Event{Kind: Step, Text: text, Duration: took})
}

// By names what does the work from now on, in every event of the task: "go build, pid 4711".
func (t *Task) By(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.so.by = text
}

// Memory reports the peak resident memory, in bytes, of what the action started. Of several reports the
// highest counts.
func (t *Task) Memory(peak int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.so.memory = max(t.so.memory, peak)
}

func (t *Task) emit(e Event) {
	e.Action, e.Phase = t.unit.id, t.unit.phase
	e.By = t.told().by
	t.run.emit(e)
}

// mkdir keeps the error for later: the action's own attempt to write fails too, with a less telling one.
func (t *Task) mkdir(dir string) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.so.err == nil {
			t.so.err = err
		}
	}
}

// told returns what the action has told so far.
func (t *Task) told() told {
	t.mu.Lock()
	defer t.mu.Unlock()
	so := t.so
	so.known = maps.Clone(so.known)
	return so
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
