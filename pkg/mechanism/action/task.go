package action

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/statcache"
)

// A Task is what a running action or batch works with: paths, digests and the cache. Its methods may be called from several goroutines.
// Paths are those that the action declares, or any member of the batch. A path that is not declared is a mistake in the program and
// panics.
type Task struct {
	Report Report // of what happens, for the user
	Audit  bool   // the results are compared with those of a cache, and so must be made of inputs alone

	run    *run
	unit   *unit
	all    []*verdict // of all members
	stale  []*verdict // of those that run
	cache  Cache      // that they may take parts from
	folder string     // absolute; holds everything temporary of this task
	start  time.Time

	mu    sync.Mutex
	facts facts
	done  map[string]func(file string) // by output: see WhenDone
}

// facts are what an action has reported to its task.
type facts struct {
	digests map[string][sha256.Size]byte // by path: outputs, and files in output directories
	linked  map[string]hardlink          // by path: inputs that have one more link now
	memory  int64                        // peak, bytes
	by      string
	origin  Origin
	err     error // why a temporary folder could not be made
}

// A hardlink is an input as it was before it got one more link.
type hardlink struct {
	statcache.Status
	sum [sha256.Size]byte
}

// A run is one call of Graph.Run.
type run struct {
	*judge
	*emitter
	state string // absolute
	tmp   string // absolute; this run's own

	uploads *uploader
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

// Previous returns the absolute path of an output that is still as the last run left it and is [Origin.Own], or else "". The file stays
// until the action has returned. Nobody may write to it, not even through a hard link.
func (t *Task) Previous(output string) string {
	out := t.declared(output)
	if v := t.maker(out); v.record == nil || !v.record.Origin.Own() || !t.run.intact(v.record, out) {
		return ""
	}
	return t.run.absolute(out)
}

// SetDigest sets the SHA-256, in hexadecimal, of an output that is a file, or of a file in an output directory. The runner trusts it and
// does not read the file.
func (t *Task) SetDigest(output, digest string) {
	out := t.within(output)
	var sum [sha256.Size]byte
	if n, err := hex.Decode(sum[:], []byte(digest)); err != nil || n != len(sum) || len(digest) != 2*len(sum) {
		panic(fmt.Sprintf("%s: %q is not a SHA-256 of %s", t.unit.id, digest, output))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.facts.digests[out] = sum
}

// Link makes a hard link to an input file, or to a file in an input directory, in an output directory, or a copy where the file system
// has no links. It makes the parent folders. A file with a hard link is not read, neither now nor by the next run.
func (t *Task) Link(input, output string) error {
	in, out := normalPath(t.run.root, input), t.within(output)
	from, to := t.run.absolute(in), t.temporary(out)
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	before, err := statcache.Lstat(from)
	if err != nil {
		return err
	}
	if before.Kind == symlink || os.Link(from, to) != nil {
		return atomicfile.Copy(from, to)
	}
	sum, ok := t.run.remembered(in, before)
	if !ok || hex.EncodeToString(sum[:]) != t.Sum(in) {
		return nil // it was edited: the runner reads it and says so
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.facts.digests[out], t.facts.linked[in] = sum, hardlink{before, sum}
	return nil
}

// Sum returns the SHA-256, in hexadecimal, of an input file, or of a file in an input directory, without reading it. It is "" if the
// input leads to no file.
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

// Cache returns the cache that the action may take parts from, or nil.
func (t *Task) Cache() Cache { return t.cache }

// Use reports that the action uses bytes with an origin besides its inputs.
func (t *Task) Use(o Origin) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.facts.origin = t.facts.origin.With(o)
}

// Origin returns the origin of what the action makes, by what it has used until now.
func (t *Task) Origin() Origin { return t.snapshot().origin }

// WhenDone sets a function that is called with the absolute path of an output when that has its final name, unless an input was edited
// meanwhile: then the output may not be what the key says. The function may make hard links to the output.
func (t *Task) WhenDone(output string, f func(file string)) {
	out := t.declared(output)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		t.done = map[string]func(string){}
	}
	t.done[out] = f
}

// CacheKeyFor returns the key in caches that the action of an output would have with another recipe.
func (t *Task) CacheKeyFor(output string, recipe []string) string {
	other := *t.maker(t.declared(output))
	member := *other.member
	changed := *member.Action
	changed.Recipe = recipe
	member.Action, other.member = &changed, &member
	return other.commonKey()
}

// UploadAsync calls f, which uploads something to the cache, while other actions run. Dir is an empty folder for temporary files.
func (t *Task) UploadAsync(ctx context.Context, f func(ctx context.Context, dir string) error) {
	t.run.uploads.start(ctx, t.unit.id, func() error {
		dir, err := os.MkdirTemp(t.run.tmp, "upload")
		if err != nil {
			return err
		}
		return errors.Join(f(ctx, dir), os.RemoveAll(dir))
	})
}

// emit keeps what an event says of the action, and passes the event on if it is one for the user.
func (t *Task) emit(e Event) {
	t.mu.Lock()
	t.facts.by, t.facts.memory = cmp.Or(e.By, t.facts.by), max(e.Memory, t.facts.memory)
	e.Action, e.Phase, e.By = t.unit.id, t.unit.phase, t.facts.by
	t.mu.Unlock()
	if e.Kind != "" {
		t.run.emit(e)
	}
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
	copied := t.facts
	copied.digests, copied.linked = maps.Clone(t.facts.digests), maps.Clone(t.facts.linked)
	return copied
}

func (t *Task) declared(output string) string {
	out := normalPath(t.run.root, output)
	if t.maker(out) == nil {
		panic(fmt.Sprintf("%s: %q is not among its outputs", t.unit.id, output))
	}
	return out
}

// within is declared, for files in output directories, too.
func (t *Task) within(output string) string {
	out := normalPath(t.run.root, output)
	for _, v := range t.all {
		for _, o := range v.outputs {
			if strings.HasSuffix(o, "/") && len(out) > len(o) && strings.HasPrefix(out, o) && !strings.HasSuffix(out, "/") {
				return out
			}
		}
	}
	return t.declared(output)
}

func (t *Task) maker(out string) *verdict {
	for _, v := range t.all {
		if slices.Contains(v.outputs, out) {
			return v
		}
	}
	return nil
}

func (u *unit) folder(tmp string) string { return filepath.Join(tmp, strconv.Itoa(u.rank)) }
