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

// A remote keeps track of outputs that a cache has and this tree has not. Their digests are enough for the keys of actions that read them.
// Their bytes are fetched if such an action runs, or if the caller wants them.
type remote struct {
	reader
	ledger   ledger
	cache    Cache         // nil if there is none
	staging  string        // absolute; folder for what is being fetched
	patience time.Duration // until fetching may be given up; 0 if it never is
	report   func(Event)
	fetches  atomic.Int64 // names of folders in staging
	slow     atomic.Bool  // nothing more is fetched in this run

	mu      sync.Mutex
	outputs map[string]*remoteOutput // by path
}

// A remoteOutput is an output of a cached result, in full only in the cache.
type remoteOutput struct {
	*member
	output   string
	content  content
	entries  []Entry
	occupied bool          // something else has its name here
	took     time.Duration // how long the action ran elsewhere, or 0

	mu   sync.Mutex  // held while it is fetched
	here atomic.Bool // it was fetched
}

// A lostError reports that outputs cannot be fetched. Their actions have to run.
type lostError struct {
	ids map[string]bool // of actions
	err error
}

func (e *lostError) Error() string {
	return fmt.Sprintf("results are no longer in the cache: %v", e.err)
}

func (e *lostError) Unwrap() error { return e.err }

// adopt takes a result as that of an action, and returns its record.
func (r *remote) adopt(m *member, key string, result *Result) (*record, error) {
	contents, parts, err := result.contents(m.outputs)
	if err != nil {
		return nil, err
	}
	rec := &record{Format: recordFormat, ID: m.ID, Key: key, Origin: Cached}
	for i, out := range m.outputs {
		rec.Outputs = append(rec.Outputs, newOutput(out, contents[i]))
		have, err := r.output(out)
		if err == nil && have.digest == contents[i].digest {
			r.know(out, have)
			continue
		}
		a := &remoteOutput{member: m, output: out, content: contents[i], entries: parts[i], occupied: !errors.Is(err, fs.ErrNotExist),
			took: result.Took}
		r.mu.Lock()
		r.outputs[out] = a
		r.mu.Unlock()
	}
	return rec, nil
}

// storedResult returns the cached result that belongs to a record.
func (r *remote) storedResult(rec *record) *Result {
	var stored resultRecord
	if err := r.ledger.read(rec.ID, ".result", &stored); err != nil || stored.Key != rec.Key {
		return nil
	}
	return &stored.Result
}

// outputOf returns the remote output that an input is, or lies in.
func (r *remote) outputOf(input string) *remoteOutput {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.outputs[input]; a != nil {
		return a
	}
	for p := range parents(input) {
		if a := r.outputs[p+"/"]; a != nil {
			return a
		}
	}
	return nil
}

// contentOf returns the content of an input that is, or lies in, a remote output. It cannot for links, since it would have to follow them.
func (r *remote) contentOf(input string) (content, bool) {
	a := r.outputOf(input)
	if a == nil {
		return content{}, false
	}
	c, ok := a.content, true
	if a.output != input {
		c, ok = a.part(input)
	}
	return c, ok && !c.links()
}

// part returns the content of what lies in a remote directory.
func (a *remoteOutput) part(p string) (c content, ok bool) {
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

// needed returns the remote outputs that are, hold or lie in what an action reads, or with links set, only those that must be fetched to
// follow links.
func (r *remote) needed(m *member, links bool) []*remoteOutput {
	var all []*remoteOutput
	for _, n := range m.needs {
		if links {
			if _, ok := r.contentOf(n.input); ok {
				continue
			}
		}
		r.mu.Lock()
		for _, out := range n.maker.outputs {
			if a := r.outputs[out]; a != nil && touches(out, n.input) {
				all = append(all, a)
			}
		}
		r.mu.Unlock()
	}
	return all
}

// touches reports whether one of two paths is, holds or lies in the other.
func touches(a, b string) bool {
	a, b = strings.TrimSuffix(a, "/"), strings.TrimSuffix(b, "/")
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// maxFetches is how many actions' outputs are fetched at the same time.
const maxFetches = 8

// fetchAll fetches remote outputs. Its error is a lostError if the cache does not have them.
func (r *remote) fetchAll(ctx context.Context, outputs []*remoteOutput) error {
	makers := map[*member][]*remoteOutput{}
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
	if build := r.buildTime(outputs); build > 0 && r.patience > 0 {
		go progress.watch(ctx, r.patience, build, giveUp)
	}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(maxFetches)
	for _, m := range largestFirst(makers) {
		of := makers[m]
		// one order, or two fetches could wait for each other
		slices.SortFunc(of, func(a, b *remoteOutput) int { return cmp.Compare(a.output, b.output) })
		g.Go(func() error {
			gone, err := r.fetch(ctx, m, of, progress)
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
	if slow := slowness(ctx); slow != nil && !r.slow.Swap(true) {
		r.report(Event{Kind: Output, Text: fmt.Sprintf("no more results are fetched from the cache in this run: %v", slow)})
	}
	if len(lost.ids) > 0 {
		return lost
	}
	return nil
}

// buildTime returns how long the actions of outputs ran elsewhere, with the actions whose remote outputs they need. It is 0 if one of
// the times is unknown.
func (r *remote) buildTime(outputs []*remoteOutput) time.Duration {
	total, unknown := time.Duration(0), false
	seen := map[*member]bool{}
	var visit func([]*remoteOutput)
	visit = func(outputs []*remoteOutput) {
		for _, a := range outputs {
			if seen[a.member] || a.here.Load() {
				continue
			}
			seen[a.member] = true
			total += a.took
			unknown = unknown || a.took == 0
			visit(r.needed(a.member, false))
		}
	}
	visit(outputs)
	if unknown {
		return 0
	}
	return total
}

// largestFirst sorts actions by the size of their remote outputs. If a large one came last, it would be fetched alone, which is slower.
func largestFirst(makers map[*member][]*remoteOutput) []*member {
	size := func(m *member) (total int64) {
		for _, a := range makers[m] {
			total += a.content.size
		}
		return total
	}
	return slices.SortedFunc(maps.Keys(makers), func(a, b *member) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(a.ID, b.ID))
	})
}

var (
	// errNoCache reports a result that an earlier run took from a cache, while this run has none.
	errNoCache = errors.New("there is no cache")

	// errSlow reports a result that is not fetched because fetching was given up.
	errSlow = errors.New("fetching is slower than making")
)

// fetch fetches outputs of one action and gives them their names. It reports whether the cache no longer has them.
func (r *remote) fetch(ctx context.Context, m *member, outputs []*remoteOutput, progress *fetching) (gone bool, err error) {
	for _, a := range outputs {
		a.mu.Lock()
		defer a.mu.Unlock()
	}
	outputs = slices.DeleteFunc(outputs, func(a *remoteOutput) bool {
		if a.here.Load() {
			progress.expect(-a.content.size)
		}
		return a.here.Load()
	})
	if len(outputs) == 0 {
		return false, nil
	}
	if r.cache == nil {
		return true, errNoCache
	}
	if r.slow.Load() {
		return true, errSlow
	}
	tmp := filepath.Join(r.staging, strconv.FormatInt(r.fetches.Add(1), 10))
	contents, err := prepareStaging(tmp, outputs)
	if err == nil {
		progress.begin(contents)
		err = r.cache.Fetch(ctx, contents)
		progress.end(contents, err == nil)
		if err != nil {
			return (ctx.Err() == nil || slowness(ctx) != nil) && !full(err), fmt.Errorf("%s: %w", m.ID, err)
		}
		err = r.placeFetched(tmp, outputs)
	}
	if err = errors.Join(err, removeAll(tmp)); err != nil {
		return false, fmt.Errorf("%s: fetch from the cache: %w", m.ID, err)
	}
	e := Event{Kind: Fetched, Action: m.ID, Phase: m.Phase}
	for _, a := range outputs {
		a.here.Store(true)
		e.Files = append(e.Files, newOutput(a.output, a.content).File)
	}
	r.report(e)
	return false, nil
}

// prepareStaging makes the folders and links of outputs in a temporary folder, and returns the files to fetch.
func prepareStaging(tmp string, outputs []*remoteOutput) (contents []Content, err error) {
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
func (r *remote) placeFetched(tmp string, outputs []*remoteOutput) error {
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
		if err := replace(r.root+"/"+a.output, filepath.Join(tmp, filepath.FromSlash(a.output)),
			filepath.Join(tmp, "old", strconv.Itoa(i))); err != nil {
			return err
		}
	}
	for _, a := range outputs {
		for _, e := range a.entries {
			st, err := statcache.Lstat(r.root + "/" + e.Path)
			if err != nil || st.Size != e.Size || st.Kind != kinds[e.Kind] || !st.Regular() {
				continue
			}
			d, err := e.digest()
			if err == nil {
				r.rememberWritten(e.Path, st, d.sum)
			}
		}
	}
	return nil
}

// deliver fetches what the caller wants, and what has other bytes under its name.
func (r *remote) deliver(ctx context.Context, wanted []string) error {
	var all []*remoteOutput
	for _, a := range r.outputs {
		if a.occupied || wants(wanted, a.output) {
			all = append(all, a)
		}
	}
	return r.fetchAll(ctx, all)
}

// wants reports whether an output is wanted. Without a list, everything is.
func wants(wanted []string, output string) bool {
	return wanted == nil || slices.ContainsFunc(wanted, func(p string) bool { return touches(p, output) })
}
