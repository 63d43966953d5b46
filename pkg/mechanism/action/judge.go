package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"slipway.build/pkg/mechanism/statcache"
)

// A judge decides whether an action must run.
type judge struct {
	reader
	ledger ledger

	cache      Cache           // nil if there is none
	own        bool            // cached results do not count
	audit      []string        // actions whose cached results do not count
	lost       map[string]bool // actions whose results the cache no longer has
	fetched    string          // absolute; folder for what is being fetched
	fetchCount *atomic.Int64
	patience   time.Duration // until fetching may be given up; 0 if it never is
	slow       *atomic.Bool  // the cache is not used any more in this run
	tell       func(Event)

	mu     sync.Mutex
	inputs map[string]*inputContent
	absent map[string]*absent // by output
}

// An inputContent is read once per run, however many actions share it, and only after its makers are done.
type inputContent struct {
	once sync.Once
	content
	err error
}

// A verdict is what a judge found out about an action.
type verdict struct {
	*member
	key    string    // in the record
	inputs []content // of member.inputs
	record *record   // nil if there is none that can be read
	reason Reason    // zero if the action is skipped
	hit    *Result   // if a cache has it
}

func (g *Graph) judge() (*judge, error) {
	stats, err := statcache.Load(filepath.Join(g.state(), "stat"))
	if err != nil {
		return nil, err
	}
	return &judge{
		reader: reader{root: filepath.Clean(g.Root), stats: stats, slots: make(chan struct{}, runtime.GOMAXPROCS(0))},
		ledger: g.ledger(),
		lost:   make(map[string]bool),
		tell:   func(Event) {},
		inputs: make(map[string]*inputContent),
		absent: make(map[string]*absent),

		fetchCount: new(atomic.Int64),
		slow:       new(atomic.Bool),
	}, nil
}

// prepared returns the units of the graph and a judge of them, if all inputs are there or will be made.
func (g *Graph) prepared() ([]*unit, *judge, error) {
	units, err := g.arrange()
	if err != nil {
		return nil, nil, err
	}
	j, err := g.judge()
	if err == nil {
		err = j.present(units)
	}
	return units, j, err
}

// again returns a judge for another pass over the graph, since more results are lost.
func (j *judge) again(gone map[string]bool) *judge {
	lost := maps.Clone(j.lost)
	maps.Copy(lost, gone)
	return &judge{
		reader: j.reader, ledger: j.ledger, cache: j.cache, own: j.own, audit: j.audit, lost: lost, fetched: j.fetched,
		fetchCount: j.fetchCount, tell: j.tell,
		patience: j.patience, slow: j.slow,
		inputs: make(map[string]*inputContent), absent: make(map[string]*absent),
	}
}

// present returns an error for inputs that neither exist nor are made by an action, before anything runs.
func (j *judge) present(units []*unit) error {
	var errs []error
	seen := make(map[string]bool)
	for _, u := range units {
		for _, m := range u.members {
			for _, n := range m.needs {
				seen[n.input] = true
			}
		}
	}
	for _, u := range units {
		for _, m := range u.members {
			for _, in := range m.inputs {
				if seen[in] {
					continue
				}
				seen[in] = true
				if _, err := statcache.Lstat(j.absolute(in)); err != nil {
					errs = append(errs, fmt.Errorf("%s: input %s: %w", m.ID, in, err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

func (j *judge) content(input string) (content, error) {
	j.mu.Lock()
	c := j.inputs[input]
	if c == nil {
		c = new(inputContent)
		j.inputs[input] = c
	}
	j.mu.Unlock()
	c.once.Do(func() {
		known, ok := j.foreseen(input)
		if ok {
			c.content = known
			return
		}
		c.content, c.err = j.input(input)
	})
	return c.content, c.err
}

// examine judges an action whose inputs exist, or are known.
func (j *judge) examine(ctx context.Context, m *member) (*verdict, error) {
	if err := j.bring(ctx, j.needed(m, true)); err != nil {
		return nil, err
	}
	v := &verdict{member: m, inputs: make([]content, len(m.inputs))}
	for i, in := range m.inputs {
		c, err := j.content(in)
		if err != nil {
			return nil, fmt.Errorf("input %w", err)
		}
		v.inputs[i] = c
	}
	v.key = keyOf(m.ID, m.Recipe, m.outputs, m.inputs, v.inputs)
	v.record, v.reason = j.recall(m)
	if v.reason.Kind == "" && v.record.Key != v.key {
		v.reason = j.explain(v, nil)
	}
	if v.reason.Kind == "" && !j.known(v) {
		v.reason = j.damage(v.record)
	}
	if v.reason.Kind != "" {
		j.lookup(ctx, v)
	}
	return v, nil
}

// known reports whether the result is that of a cache, so that outputs need not be here.
func (j *judge) known(v *verdict) bool {
	if v.record.Origin != Cached || j.lost[v.ID] {
		return false
	}
	kept := j.kept(v.record)
	if kept == nil {
		return false
	}
	_, err := j.adopt(v.member, v.key, kept)
	return err == nil
}

// lookup asks the cache for the result of a stale action.
func (j *judge) lookup(ctx context.Context, v *verdict) {
	if j.cache == nil || j.own || slices.Contains(j.audit, v.ID) || !v.shared() || j.lost[v.ID] || j.slow.Load() {
		return
	}
	r := j.cache.Lookup(ctx, v.commonKey())
	if r == nil {
		return
	}
	r = v.fromCommon(r)
	if rec, err := j.adopt(v.member, v.key, r); err == nil {
		v.record, v.reason, v.hit = rec, Reason{}, r
	}
}

// recall reads an action's record, or returns why it does not count.
func (j *judge) recall(m *member) (*record, Reason) {
	r := new(record)
	err := j.ledger.read(m.ID, ".json", r)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Reason{Kind: New}
	case err != nil:
		return nil, Reason{Kind: RecordDamaged}
	case r.Format != recordFormat || r.ID != m.ID:
		return nil, Reason{Kind: RecordOutdated}
	case r.Edited != "":
		return r, Reason{Kind: InputEdited, Path: r.Edited}
	case !r.Origin.Own() && (j.own || slices.Contains(j.audit, r.ID)):
		return r, Reason{Kind: FromCache}
	}
	return r, Reason{}
}

// damage returns which output differs from the record, if one does. If none does, outputs are not read again as inputs of others.
func (j *judge) damage(r *record) Reason {
	contents := make([]content, len(r.Outputs))
	for i, o := range r.Outputs {
		c, err := j.output(o.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return Reason{Kind: OutputMissing, Path: o.Path}
		case err != nil || !o.is(c):
			return Reason{Kind: OutputEdited, Path: o.Path}
		}
		contents[i] = c
	}
	for i, o := range r.Outputs {
		j.know(o.Path, contents[i])
	}
	return Reason{}
}

// know keeps the content of an output for the actions that read it, unless they see more of it: where its links lead to.
func (j *judge) know(out string, c content) {
	isLink := func(e entry) bool { return e.kind == symlink }
	if c.kind == symlink || slices.ContainsFunc(c.entries, isLink) {
		return
	}
	known := &inputContent{content: c}
	known.once.Do(func() {})
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.inputs[out] == nil {
		j.inputs[out] = known
	}
}

// intact reports whether an output is as the action's record says.
func (j *judge) intact(r *record, out string) bool {
	if r == nil {
		return false
	}
	for _, o := range r.Outputs {
		if o.Path == out {
			c, err := j.output(out)
			return err == nil && o.is(c)
		}
	}
	return false
}

// sum returns the SHA-256 of a file that is an input or lies in one.
func (v *verdict) sum(p string) (string, bool) {
	for i, in := range v.inputs {
		name := v.member.inputs[i]
		if name == p && in.kind != directory && in.file != [len(in.file)]byte{} {
			return digest{sum: in.file}.hex(), true
		}
		if !strings.HasSuffix(name, "/") || !strings.HasPrefix(p, name) {
			continue
		}
		for _, e := range in.entries {
			if e.path == p && (e.kind == file || e.kind == executable) {
				return e.hex(), true
			}
		}
	}
	return "", false
}
