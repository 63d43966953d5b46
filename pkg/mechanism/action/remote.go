package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/statcache"
)

// Outputs that a cache knows need not be here. Their contents are known, so that the keys of actions that read them are, and their
// bytes are fetched if an action that reads them runs, or if the caller wants them.

// An absent output is known, but not here.
type absent struct {
	*member
	output  string
	content content
	entries []Entry
	other   bool          // other bytes have its name
	took    time.Duration // how long the action ran elsewhere, or 0

	mu   sync.Mutex  // held while it is fetched
	here atomic.Bool // it was fetched
}

// A lostError says that outputs, which were known, cannot be had. Their actions have to run.
type lostError struct {
	ids map[string]bool // of actions
	err error
}

func (e *lostError) Error() string {
	return fmt.Sprintf("results are no longer in the cache: %v", e.err)
}

func (e *lostError) Unwrap() error { return e.err }

// adopt takes a result for the outputs of an action, and returns its record.
func (j *judge) adopt(m *member, key string, r *Result) (*record, error) {
	contents, parts, err := r.contents(m.outputs)
	if err != nil {
		return nil, err
	}
	rec := &record{Format: recordFormat, ID: m.ID, Key: key, Origin: Cached}
	for i, out := range m.outputs {
		rec.Outputs = append(rec.Outputs, newOutput(out, contents[i]))
		have, err := j.output(out)
		if err == nil && have.digest == contents[i].digest {
			j.know(out, have)
			continue
		}
		a := &absent{member: m, output: out, content: contents[i], entries: parts[i], other: !errors.Is(err, fs.ErrNotExist), took: r.Took}
		j.mu.Lock()
		j.absent[out] = a
		j.mu.Unlock()
	}
	return rec, nil
}

// kept returns the result that belongs to a record.
func (j *judge) kept(r *record) *Result {
	var kept resultRecord
	if err := j.ledger.read(r.ID, ".result", &kept); err != nil || kept.Key != r.Key {
		return nil
	}
	return &kept.Result
}

// absentOf returns the absent output that an input is, or lies in.
func (j *judge) absentOf(input string) *absent {
	j.mu.Lock()
	defer j.mu.Unlock()
	if a := j.absent[input]; a != nil {
		return a
	}
	for p := range parents(input) {
		if a := j.absent[p+"/"]; a != nil {
			return a
		}
	}
	return nil
}

// foreseen returns the content of an input that is not here but known. Links would be followed, so that it is not known with them.
func (j *judge) foreseen(input string) (content, bool) {
	a := j.absentOf(input)
	if a == nil {
		return content{}, false
	}
	c, ok := a.content, true
	if a.output != input {
		c, ok = a.part(input)
	}
	isLink := func(e entry) bool { return e.kind == symlink }
	if !ok || c.kind == symlink || slices.ContainsFunc(c.entries, isLink) {
		return content{}, false
	}
	return c, true
}

// part returns the content of what lies in an absent directory.
func (a *absent) part(p string) (c content, ok bool) {
	for i, e := range a.content.entries {
		size := a.entries[i+1].Size // the first one is the directory itself
		switch {
		case e.path == p && e.kind != directory:
			return content{digest: e.digest, file: e.sum, size: size}, true
		case e.path == p:
			ok = true
		case strings.HasSuffix(p, "/") && strings.HasPrefix(e.path, p):
			c.entries = append(c.entries, e)
			c.size += size
		}
	}
	c.digest = listed(p, c.entries)
	return c, ok
}

// needed returns the absent outputs that are, hold or lie in what an action reads, or only those whose contents cannot be told without
// them.
func (j *judge) needed(m *member, untold bool) []*absent {
	var all []*absent
	for _, n := range m.needs {
		if untold {
			if _, ok := j.foreseen(n.input); ok {
				continue
			}
		}
		j.mu.Lock()
		for _, out := range n.maker.outputs {
			if a := j.absent[out]; a != nil && touches(out, n.input) {
				all = append(all, a)
			}
		}
		j.mu.Unlock()
	}
	return all
}

// touches reports whether one of two paths is, holds or lies in the other.
func touches(a, b string) bool {
	a, b = strings.TrimSuffix(a, "/"), strings.TrimSuffix(b, "/")
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// fetches is how many actions' outputs are fetched at the same time.
const fetches = 8

// bring fetches absent outputs. Its error is a lostError if the cache does not have them.
func (j *judge) bring(ctx context.Context, outputs []*absent) error {
	makers := map[*member][]*absent{}
	progress := &fetching{files: map[string]bool{}}
	for _, a := range outputs {
		if !a.here.Load() && !slices.Contains(makers[a.member], a) {
			makers[a.member] = append(makers[a.member], a)
			progress.expect(a.content.size)
		}
	}
	lost := &lostError{ids: map[string]bool{}}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	if making := j.makingTime(outputs); making > 0 && j.patience > 0 {
		go progress.watch(ctx, j.patience, making, giveUp)
	}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(fetches)
	for _, m := range largestFirst(makers) {
		of := makers[m]
		// one order, or two fetches could wait for each other
		slices.SortFunc(of, func(a, b *absent) int { return cmp.Compare(a.output, b.output) })
		g.Go(func() error {
			gone, err := j.fetch(ctx, m, of, progress)
			if !gone {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			lost.ids[m.ID] = true
			lost.err = cmp.Or(lost.err, err)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if slow := slowness(ctx); slow != nil && !j.slow.Swap(true) {
		j.tell(Event{Kind: Output, Text: fmt.Sprintf("no more results are fetched from the cache in this run: %v", slow)})
	}
	if len(lost.ids) > 0 {
		return lost
	}
	return nil
}

// largestFirst sorts actions by the size of their absent outputs. If a large one came last, it would be fetched alone, which is slower.
func largestFirst(makers map[*member][]*absent) []*member {
	size := func(m *member) (total int64) {
		for _, a := range makers[m] {
			total += a.content.size
		}
		return total
	}
	return slices.SortedFunc(maps.Keys(makers), func(a, b *member) int {
		return cmp.Or(
			cmp.Compare(size(b), size(a)), cmp.Compare(a.ID, b.ID))
	})
}

var (
	// errNoCache reports a result that an earlier run took from a cache, while this run has none.
	errNoCache = errors.New("there is no cache")

	// errSlow reports a result that is not fetched because fetching was given up.
	errSlow = errors.New("fetching is slower than making")
)

// fetch fetches outputs of one action and gives them their names. It reports whether the cache no longer has them.
func (j *judge) fetch(ctx context.Context, m *member, outputs []*absent, progress *fetching) (gone bool, err error) {
	for _, a := range outputs {
		a.mu.Lock()
		defer a.mu.Unlock()
	}
	outputs = slices.DeleteFunc(outputs, func(a *absent) bool {
		if a.here.Load() {
			progress.expect(-a.content.size)
		}
		return a.here.Load()
	})
	if len(outputs) == 0 {
		return false, nil
	}
	if j.cache == nil {
		return true, errNoCache
	}
	if j.slow.Load() {
		return true, errSlow
	}
	tmp := filepath.Join(j.fetched, strconv.FormatInt(j.fetchCount.Add(1), 10))
	contents, err := lay(tmp, outputs)
	if err == nil {
		progress.begin(contents)
		err = j.cache.Fetch(ctx, contents)
		progress.end(contents, err == nil)
		if err != nil {
			return (ctx.Err() == nil || slowness(ctx) != nil) && !full(err), fmt.Errorf("%s: %w", m.ID, err)
		}
		err = j.placeFetched(tmp, outputs)
	}
	if err = errors.Join(err, removeAll(tmp)); err != nil {
		return false, fmt.Errorf("%s: fetch from the cache: %w", m.ID, err)
	}
	e := Event{Kind: Fetched, Action: m.ID, Phase: m.Phase}
	for _, a := range outputs {
		a.here.Store(true)
		e.Files = append(e.Files, newOutput(a.output, a.content).File)
	}
	j.tell(e)
	return false, nil
}

// lay makes the folders and links of outputs in a temporary folder, and returns the files that are missing.
func lay(tmp string, outputs []*absent) (contents []Content, err error) {
	for _, a := range outputs {
		for _, e := range a.entries {
			name := filepath.Join(tmp, filepath.FromSlash(e.Path))
			if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
				return nil, err
			}
			switch e.Kind {
			case Folder:
				err = os.MkdirAll(name, 0o777)
			case SymbolicLink:
				err = os.Symlink(e.Target, name)
			default:
				contents = append(contents, Content{SHA256: e.SHA256, Size: e.Size, File: name})
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return contents, nil
}

// placeFetched gives outputs their final names, and remembers what their files hold.
func (j *judge) placeFetched(tmp string, outputs []*absent) error {
	for i, a := range outputs {
		for _, e := range a.entries {
			if e.Kind != ExecutableFile {
				continue
			}
			name := filepath.Join(tmp, filepath.FromSlash(e.Path))
			st, err := os.Stat(name)
			if err != nil {
				return err
			}
			mode := st.Mode().Perm()
			if err := os.Chmod(name, mode|mode&0o444>>2); err != nil { // who may read it may execute it
				return err
			}
		}
		if err := replace(j.root+"/"+a.output, filepath.Join(tmp, filepath.FromSlash(a.output)),
			filepath.Join(tmp, "old", strconv.Itoa(i))); err != nil {
			return err
		}
	}
	waitForTick()
	now := time.Now().UnixNano()
	for _, a := range outputs {
		for _, e := range a.entries {
			st, err := statcache.Lstat(j.root + "/" + e.Path)
			if err != nil || st.Size != e.Size || st.Kind != kinds[e.Kind] || !st.Regular() {
				continue
			}
			d, err := e.digest()
			if err == nil {
				j.remember(e.Path, st, d.sum, now)
			}
		}
	}
	return nil
}

// deliver fetches what the caller wants, and what has other bytes under its name.
func (j *judge) deliver(ctx context.Context, wanted []string) error {
	var all []*absent
	for _, a := range j.absent {
		if a.other || wants(wanted, a.output) {
			all = append(all, a)
		}
	}
	return j.bring(ctx, all)
}

// wants reports whether an output is wanted. Without a list, everything is.
func wants(wanted []string, output string) bool {
	return wanted == nil || slices.ContainsFunc(wanted, func(p string) bool { return touches(p, output) })
}
