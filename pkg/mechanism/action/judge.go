package action

import (
	"cmp"
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

	"slipway.build/pkg/mechanism/statcache"
)

// A judge decides whether an action must run.
type judge struct {
	remote
	opts Options
	lost map[string]bool // actions whose results the cache no longer has
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

// judge returns a judge of the graph's units. It is an error if an input neither exists nor will be made.
func (g *Graph) judge(units []*unit, opts Options) (*judge, error) {
	stats, err := statcache.Load(filepath.Join(g.state(), "stat"))
	if err != nil {
		return nil, err
	}
	j := &judge{opts: opts, lost: map[string]bool{}, remote: remote{ledger: g.ledger(), report: func(Event) {}}}
	j.reader = reader{root: filepath.Clean(g.Root), stats: stats, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	j.forget(nil)
	return j, j.present(units)
}

// forget prepares another pass over the graph, after results of actions were lost.
func (j *judge) forget(lost map[string]bool) {
	maps.Copy(j.lost, lost)
	j.inputs, j.outputs = map[string]func() (content, error){}, map[string]*remoteOutput{}
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
	j.memo.Lock()
	read := j.inputs[input]
	if read == nil {
		read = sync.OnceValues(func() (content, error) {
			if c, ok := j.contentOf(input); ok {
				return c, nil
			}
			return j.input(input)
		})
		j.inputs[input] = read
	}
	j.memo.Unlock()
	return read()
}

// examine judges an action whose inputs exist, or are remote.
func (j *judge) examine(ctx context.Context, m *member) (*verdict, error) {
	if err := j.fetchAll(ctx, j.needed(m, true)); err != nil {
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
	if v.reason.Kind == "" && !j.cached(v) {
		v.reason = j.damage(v.record)
	}
	if v.reason.Kind != "" {
		j.lookup(ctx, v)
	}
	return v, nil
}

// cached reports whether the result is that of a cache, so that outputs need not be here.
func (j *judge) cached(v *verdict) bool {
	if v.record.Origin != Cached || j.lost[v.ID] {
		return false
	}
	stored := j.storedResult(v.record)
	if stored == nil {
		return false
	}
	_, err := j.adopt(v.member, v.key, stored)
	return err == nil
}

// rejectsCached reports whether only own results of an action count.
func (j *judge) rejectsCached(id string) bool {
	return j.opts.NoCachedResults || slices.Contains(j.opts.Audit, id)
}

// lookup asks the cache for the result of a stale action.
func (j *judge) lookup(ctx context.Context, v *verdict) {
	if j.cache == nil || j.rejectsCached(v.ID) || !v.shared() || j.lost[v.ID] || j.slow.Load() {
		return
	}
	r := j.cache.Lookup(ctx, v.commonKey())
	if r == nil {
		return
	}
	r = v.names.fromCommon(r, v.outputs)
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
	case !r.Origin.Own() && j.rejectsCached(r.ID):
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

// intact reports whether an output is as the action's record says.
func (j *judge) intact(r *record, out string) bool {
	i := slices.IndexFunc(r.Outputs, func(o output) bool { return o.Path == out })
	if i < 0 {
		return false
	}
	c, err := j.output(out)
	return err == nil && r.Outputs[i].is(c)
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

// explain returns what differs from the time of the record. It leaves out inputs that are still to be made; if there are
// any, nothing else may differ, and the reason may be zero.
func (j *judge) explain(v *verdict, pending map[string]ReasonKind) Reason {
	if slices.IndexFunc(v.record.Outputs, func(o output) bool { return !slices.Contains(v.outputs, o.Path) }) >= 0 ||
		len(v.record.Outputs) != len(v.outputs) {
		return Reason{Kind: OutputsChanged}
	}
	unknown := Reason{Kind: KeyChanged}
	if len(pending) > 0 {
		unknown = Reason{}
	}
	var was keyParts
	// The run that wrote the parts of another key ended before it wrote the record.
	if err := j.ledger.read(v.ID, ".from", &was); err != nil || was.Key != v.record.Key {
		return unknown
	}
	if !slices.Equal(was.Recipe, v.Recipe) {
		return changed(RecipeChanged, recipeChanges(was.Recipe, v.Recipe))
	}
	isPending := func(p string) bool {
		for in := range pending {
			if p == in || (strings.HasSuffix(in, "/") && strings.HasPrefix(p, in)) {
				return true
			}
		}
		return false
	}
	changes := slices.DeleteFunc(inputChanges(was.Inputs, v.lines()), func(c Change) bool { return isPending(c.Name) })
	if len(changes) > 0 {
		return changed(InputsChanged, changes)
	}
	return unknown
}

// lines lists the inputs for keyParts.
func (v *verdict) lines() []string {
	var lines []string
	for i, c := range v.inputs {
		lines = append(lines, c.String()+" "+v.member.inputs[i])
		for _, e := range c.entries {
			lines = append(lines, e.String()[:shownDigest]+" "+e.path)
		}
	}
	return lines
}

// commonKey returns the key in caches: the digest of all that decides the outputs, whatever the action is called, with the names of folders
// there.
func (v *verdict) commonKey() string {
	type input struct {
		name string
		content
	}
	all := make([]input, len(v.inputs))
	for i, c := range v.inputs {
		all[i] = input{v.names.path(v.member.inputs[i]), c}
	}
	slices.SortStableFunc(all, func(a, b input) int { return cmp.Compare(a.name, b.name) })
	var inputs []string
	var contents []content
	for _, in := range all {
		inputs, contents = append(inputs, in.name), append(contents, in.content)
	}
	var outputs []string
	for _, out := range v.outputs {
		outputs = append(outputs, v.names.path(out))
	}
	slices.Sort(outputs)
	return keyOf("", v.names.recipe(v.Recipe), outputs, inputs, contents)
}

// commonLines lists the inputs as lines does, with the names that they have in caches.
func (v *verdict) commonLines() []string {
	lines := v.lines()
	for i, line := range lines {
		if digest, p, ok := strings.Cut(line, " "); ok {
			lines[i] = digest + " " + v.names.path(p)
		}
	}
	return lines
}
