package action

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A Graph is all the actions of one request. An action depends on those that make its inputs.
type Graph struct {
	Root    string    // absolute; the paths of actions are relative to it
	State   string    // folder for records, locks and temporary files, relative to Root: "_output/.slipway"
	Actions []*Action // the order decides which of two equally urgent ones starts first

	// Folders maps folders here to their names in caches, also where recipes hold them. Actions with outputs in two folders with the same
	// name there share results. All names end in "/".
	Folders map[string]string
}

// A unit is what the scheduler starts: an action by itself, or a batch with its members.
type unit struct {
	rank       int // position in the order of preference
	first      int // index in Graph.Actions of its first member
	height     int // length of the longest chain of dependents, in units
	id, phase  string
	batch      *Batch // nil for an action by itself
	cost       Cost
	members    []*member
	dependents []*unit
	waits      int // units it depends on
}

func (u *unit) lane() string {
	if u.batch == nil {
		return ""
	}
	return u.batch.Lane
}

// A member is an action with its paths in normal form.
type member struct {
	*Action
	unit            *unit
	inputs, outputs []string // sorted, without duplicates
	needs           []need
	names           names
}

// shared reports whether a cache may have the result.
func (m *member) shared() bool {
	return !m.Local && !slices.ContainsFunc(m.inputs, func(p string) bool { return filepath.IsAbs(filepath.FromSlash(p)) })
}

// A need is an input that is, holds or lies in an output of another action.
type need struct {
	input string
	maker *member
}

// prefix returns the start of an error of the unit that concerns one member: its name, if the unit's ID is another.
func (u *unit) prefix(m *member) string {
	if u.batch == nil {
		return ""
	}
	return m.ID + ": "
}

// arrange checks the graph and returns its units in the order of preference: those with the longest chain of dependents
// first. A unit's chain is longer than those of its dependents, so the order is topological, too.
func (g *Graph) arrange() ([]*unit, error) {
	if err := g.checkFolders(); err != nil {
		return nil, err
	}
	units, members, err := g.units()
	if err != nil {
		return nil, err
	}
	makers, err := g.makers(members)
	if err != nil {
		return nil, err
	}
	if err := link(members, makers); err != nil {
		return nil, err
	}
	if err := acyclic(units); err != nil {
		return nil, err
	}
	slices.SortStableFunc(units, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(b.height, a.height), cmp.Compare(a.first, b.first))
	})
	for i, u := range units {
		u.rank = i
	}
	return units, nil
}

func (g *Graph) checkFolders() error {
	if !filepath.IsAbs(g.Root) {
		return fmt.Errorf("root %q: not an absolute path", g.Root)
	}
	state := path.Clean(filepath.ToSlash(g.State))
	if g.State == "" || state == "." || !filepath.IsLocal(filepath.FromSlash(state)) {
		return fmt.Errorf("state folder %q: not a folder below the root", g.State)
	}
	return nil
}

// units groups the actions by batch and checks each of them.
func (g *Graph) units() (units []*unit, members []*member, err error) {
	var errs []error
	names := namesOf(g.Folders)
	ids := make(map[string]bool)
	batches := make(map[*Batch]*unit)
	claim := func(id string) {
		switch {
		case id == "":
			errs = append(errs, errors.New("an action or a batch has no ID"))
		case ids[id]:
			errs = append(errs, fmt.Errorf("%s: the ID of two actions or batches", id))
		}
		ids[id] = true
	}
	for i, a := range g.Actions {
		claim(a.ID)
		m := &member{Action: a, names: names}
		var inErr, outErr error
		m.inputs, inErr = g.normal(a.Inputs)
		m.outputs, outErr = g.normal(a.Outputs)
		for _, err := range []error{inErr, outErr} {
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", a.ID, err))
			}
		}
		if (a.Run == nil) == (a.Batch == nil) {
			errs = append(errs, fmt.Errorf("%s: needs either Run or Batch", a.ID))
			continue
		}
		members = append(members, m)
		if a.Batch == nil {
			m.unit = &unit{id: a.ID, phase: a.Phase, first: i, cost: a.Cost, members: []*member{m}}
			units = append(units, m.unit)
			continue
		}
		u := batches[a.Batch]
		if u == nil {
			claim(a.Batch.ID)
			if a.Batch.Run == nil {
				errs = append(errs, fmt.Errorf("%s: batch has no Run", a.Batch.ID))
			}
			u = &unit{id: a.Batch.ID, phase: a.Phase, first: i, cost: a.Batch.Cost, batch: a.Batch}
			batches[a.Batch] = u
			units = append(units, u)
		}
		m.unit = u
		u.members = append(u.members, m)
	}
	return units, members, errors.Join(errs...)
}

// normal returns paths in the form in which they can be compared.
func (g *Graph) normal(paths []string) ([]string, error) {
	normal := make([]string, 0, len(paths))
	for _, p := range paths {
		n := normalPath(g.Root, p)
		if n == "" || n == ".." || strings.HasPrefix(n, "../") {
			return nil, fmt.Errorf("path %q: neither below the root nor absolute", p)
		}
		normal = append(normal, n)
	}
	slices.Sort(normal)
	return slices.Compact(normal), nil
}

// normalPath returns a path that is clean, slash-separated, relative to root if p is below it, and ends in "/" if p does.
// For an empty path it returns "".
func normalPath(root, p string) string {
	if p == "" {
		return ""
	}
	isDir := strings.HasSuffix(p, "/")
	if filepath.IsAbs(filepath.FromSlash(p)) {
		if rel, err := filepath.Rel(root, filepath.FromSlash(p)); err == nil && filepath.IsLocal(rel) {
			p = filepath.ToSlash(rel)
		}
	}
	p = path.Clean(p)
	if isDir && p != "/" {
		p += "/"
	}
	return p
}

// makers returns the maker of each output, by path without a final slash. It returns an error if outputs overlap or are
// outside of the root, or if an input or output touches the state folder.
func (g *Graph) makers(members []*member) (map[string]*member, error) {
	var errs []error
	state := path.Clean(filepath.ToSlash(g.State))
	touchesState := func(p string) bool {
		p = strings.TrimSuffix(p, "/")
		return p == "." || p == state || strings.HasPrefix(p, state+"/") || strings.HasPrefix(state, p+"/")
	}
	makers := make(map[string]*member)
	for _, m := range members {
		for _, in := range m.inputs {
			if touchesState(in) {
				errs = append(errs, fmt.Errorf("%s: input %s holds or lies in the state folder %s", m.ID, in, state))
			}
		}
		for _, out := range m.outputs {
			trimmed := strings.TrimSuffix(out, "/")
			switch other := makers[trimmed]; {
			case filepath.IsAbs(filepath.FromSlash(out)):
				errs = append(errs, fmt.Errorf("%s: output %s is outside of the root", m.ID, out))
			case touchesState(out):
				errs = append(errs, fmt.Errorf("%s: output %s holds or lies in the state folder %s", m.ID, out, state))
			case other != nil:
				errs = append(errs, fmt.Errorf("%s: output %s is made by %s too", m.ID, out, other.ID))
			default:
				makers[trimmed] = m
			}
		}
	}
	for _, m := range members {
		for _, out := range m.outputs {
			for p := range parents(out) {
				if other := makers[p]; other != nil {
					errs = append(errs, fmt.Errorf("%s: output %s lies in output %s of %s", m.ID, out, p, other.ID))
				}
			}
		}
	}
	return makers, errors.Join(errs...)
}

// parents yields the folders above a normal path, innermost first, without final slashes.
func parents(p string) func(func(string) bool) {
	return func(yield func(string) bool) {
		p = strings.TrimSuffix(p, "/")
		for i := strings.LastIndexByte(p, '/'); i > 0; i = strings.LastIndexByte(p, '/') {
			p = p[:i]
			if !yield(p) {
				return
			}
		}
	}
}

// link finds the needs of every member and the dependents of every unit.
func link(members []*member, makers map[string]*member) error {
	var errs []error
	made := make([]string, 0, len(makers))
	isDir := make(map[string]bool)
	for p, m := range makers {
		made = append(made, p)
		isDir[p] = slices.Contains(m.outputs, p+"/")
	}
	slices.Sort(made)

	type edge struct{ from, to *unit }
	edges := make(map[edge]bool)
	for _, m := range members {
		add := func(input string, maker *member) {
			m.needs = append(m.needs, need{input, maker})
			if e := (edge{maker.unit, m.unit}); !edges[e] {
				edges[e] = true
				maker.unit.dependents = append(maker.unit.dependents, m.unit)
				m.unit.waits++
			}
		}
		for _, in := range m.inputs {
			p := strings.TrimSuffix(in, "/")
			wantDir := p != in
			if maker := makers[p]; maker != nil {
				if wantDir != isDir[p] {
					errs = append(errs, fmt.Errorf("%s: input %s and the output of %s: one is a file, the other a directory",
						m.ID, in, maker.ID))
				}
				add(in, maker)
			}
			for parent := range parents(in) {
				if maker := makers[parent]; maker != nil {
					if !isDir[parent] {
						errs = append(errs, fmt.Errorf("%s: input %s lies in %s, which %s makes as a file", m.ID, in, parent, maker.ID))
					}
					add(in, maker)
				}
			}
			if !wantDir {
				continue
			}
			i, _ := slices.BinarySearch(made, in)
			for ; i < len(made) && strings.HasPrefix(made[i], in); i++ {
				add(in, makers[made[i]])
			}
		}
	}
	return errors.Join(errs...)
}

// acyclic computes the height of every unit, or returns an error that names the actions of a cycle.
func acyclic(units []*unit) error {
	const (
		unseen = iota
		onPath
		finished
	)
	state := make(map[*unit]int)
	var trail []*unit
	var visit func(u *unit) error
	visit = func(u *unit) error {
		switch state[u] {
		case finished:
			return nil
		case onPath:
			return cycleError(append(trail[slices.Index(trail, u):], u))
		}
		state[u] = onPath
		trail = append(trail, u)
		for _, d := range u.dependents {
			if err := visit(d); err != nil {
				return err
			}
			u.height = max(u.height, d.height+1)
		}
		trail = trail[:len(trail)-1]
		state[u] = finished
		return nil
	}
	for _, u := range units {
		if err := visit(u); err != nil {
			return err
		}
	}
	return nil
}

// cycleError describes a trail of units, each of which makes something that the next one needs.
func cycleError(trail []*unit) error {
	var steps []string
	for i := len(trail) - 1; i > 0; i-- {
		steps = append(steps, firstNeed(trail[i], trail[i-1]))
	}
	return fmt.Errorf("cycle: %s", strings.Join(steps, ", "))
}

func firstNeed(u, maker *unit) string {
	for _, m := range u.members {
		for _, n := range m.needs {
			if n.maker.unit == maker && u.batch != nil {
				return fmt.Sprintf("%s (run with %s) needs %s of %s", m.ID, u.id, n.input, n.maker.ID)
			}
			if n.maker.unit == maker {
				return fmt.Sprintf("%s needs %s of %s", m.ID, n.input, n.maker.ID)
			}
		}
	}
	return fmt.Sprintf("%s needs %s", u.id, maker.id)
}

// Measured returns the peak memory, in bytes, that an action or a batch reported through Task.Memory the last time it ran.
// A run of some members of a batch does not lower the peak of all. Only Root and State of the graph must be set.
func (g *Graph) Measured(id string) (peak int64, ok bool) {
	l := g.ledger()
	var r record
	if err := l.read(id, ".json", &r); err == nil && r.Memory > 0 {
		return r.Memory, true
	}
	var b batchRecord
	if err := l.read(id, ".batch", &b); err == nil && b.Memory > 0 {
		return b.Memory, true
	}
	return 0, false
}

func (g *Graph) ledger() ledger { return ledger{filepath.Join(g.state(), "actions")} }

func (g *Graph) state() string { return filepath.Join(g.Root, filepath.FromSlash(g.State)) }
