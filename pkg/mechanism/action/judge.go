package action

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// A judge decides whether an action has to run.
type judge struct {
	reader
	ledger ledger

	mu     sync.Mutex
	inputs map[string]*inputContent
}

// An inputContent is looked up once per run, however many actions share it. Nobody looks before its makers
// are done.
type inputContent struct {
	once sync.Once
	content
	err error
}

// A verdict is what a judge found out about an action.
type verdict struct {
	*member
	key    string
	inputs []content // of member.inputs
	record *record   // nil if there is none that can be read
	reason string    // why it has to run; empty if it has not
}

func (g *Graph) judge() (*judge, error) {
	stats, err := loadStats(filepath.Join(g.state(), "stat"))
	if err != nil {
		return nil, err
	}
	return &judge{
		reader: reader{root: filepath.Clean(g.Root), stats: stats, slots: make(chan struct{}, runtime.GOMAXPROCS(0))},
		ledger: g.ledger(),
		inputs: make(map[string]*inputContent),
	}, nil
}

// present reports inputs that do not exist and that no action makes, before anything has run.
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
				if _, err := lstat(j.absolute(in)); err != nil {
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
	c.once.Do(func() { c.content, c.err = j.input(input) })
	return c.content, c.err
}

// examine judges an action whose inputs are all there.
func (j *judge) examine(m *member) (*verdict, error) {
	v := &verdict{member: m, inputs: make([]content, len(m.inputs))}
	for i, in := range m.inputs {
		c, err := j.content(in)
		if err != nil {
			return nil, fmt.Errorf("input %w", err)
		}
		v.inputs[i] = c
	}
	v.key = keyOf(m, v.inputs)
	v.record, v.reason = j.recall(m)
	if v.reason == "" && v.record.Key != v.key {
		v.reason = j.explain(v, nil)
	}
	if v.reason == "" {
		v.reason = j.damage(m, v.record)
	}
	return v, nil
}

// recall reads an action's record, or says why there is none to go by.
func (j *judge) recall(m *member) (*record, string) {
	r := new(record)
	err := j.ledger.read(m.ID, ".json", r)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "new"
	case err != nil:
		return nil, "its record cannot be read"
	case r.Format != recordFormat || r.ID != m.ID:
		return nil, "its record is of another version"
	case r.Edited != "":
		return r, "input " + r.Edited + " was edited while it was made"
	}
	return r, ""
}

// damage says which output is not what the record says.
func (j *judge) damage(m *member, r *record) string {
	for _, o := range r.Outputs {
		c, err := j.output(o.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "output " + o.Path + " is missing"
		case err != nil || !o.is(c):
			return "output " + o.Path + " was edited"
		}
	}
	return ""
}

// intact returns whether an output is as the action's record says.
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
