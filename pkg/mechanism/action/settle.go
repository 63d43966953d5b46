package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/statcache"
)

// fetchInputs fetches what the action reads and is not here.
func (t *Task) fetchInputs(ctx context.Context) error {
	var missing []*remoteOutput
	for _, v := range t.stale {
		missing = append(missing, t.run.needed(v.member, false)...)
	}
	return t.run.fetchAll(ctx, missing)
}

// work runs the action and renames its outputs into place.
func (t *Task) work(ctx context.Context) error {
	err := guard(func() error {
		if t.unit.batch == nil {
			return t.unit.members[0].Run(ctx, t)
		}
		stale := make([]*Action, len(t.stale))
		for i, v := range t.stale {
			stale[i] = v.Action
		}
		return t.unit.batch.Run(ctx, t, stale)
	})
	if err == nil {
		err = t.place()
	}
	// This comes before the outputs are read: removing a hard link to an output changes the output's change time.
	t.run.remove(t.folder)
	if err != nil {
		err = errors.Join(t.snapshot().err, err)
	}
	return err
}

// remove removes a temporary folder. An error is reported but does not fail the run: the next one tries again.
func (r *run) remove(dir string) {
	if err := removeAll(dir); err != nil {
		r.emit(Event{Kind: Output, Text: fmt.Sprintf("temporary files stay behind: %v", err)})
	}
}

// guard calls f and turns a panic, or the end of its goroutine, into an error.
func guard(f func() error) error {
	result := make(chan error, 1)
	go func() {
		err := errors.New("ended its goroutine")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
			result <- err
		}()
		err = f()
	}()
	return <-result
}

// place checks that all outputs exist and gives them their final names.
func (t *Task) place() error {
	for _, v := range t.stale {
		for _, out := range v.outputs {
			if err := t.made(v, out); err != nil {
				return err
			}
		}
	}
	if err := t.hashOutputs(); err != nil {
		return err
	}
	moved := 0
	for _, v := range t.stale {
		for _, out := range v.outputs {
			old := filepath.Join(t.folder, "old", strconv.Itoa(moved))
			moved++
			if err := replace(t.run.absolute(out), t.temporary(out), old); err != nil {
				return fmt.Errorf("rename %s into place: %w", out, err)
			}
		}
	}
	return nil
}

// hashOutputs finds the digests of output files that the action has not reported. Nobody else writes to them yet, so they need not be read
// again after they have their names.
func (t *Task) hashOutputs() error {
	var g errgroup.Group
	for _, v := range t.stale {
		for _, out := range v.outputs {
			top := t.temporary(out)
			err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				path := out
				if rel := strings.TrimPrefix(name, top); rel != "" {
					path += strings.TrimPrefix(filepath.ToSlash(rel), "/")
				}
				t.mu.Lock()
				_, ok := t.facts.digests[path]
				t.mu.Unlock()
				if ok {
					return nil
				}
				g.Go(func() error {
					sum, err := t.run.hash(name)
					if err != nil {
						return err
					}
					t.mu.Lock()
					defer t.mu.Unlock()
					t.facts.digests[path] = sum
					return nil
				})
				return nil
			})
			if err := errors.Join(err, g.Wait()); err != nil {
				return fmt.Errorf("output %s: %w", out, err)
			}
		}
	}
	return nil
}

func (t *Task) made(v *verdict, out string) error {
	prefix := t.unit.prefix(v.member)
	st, err := statcache.Lstat(t.temporary(out))
	isDir := strings.HasSuffix(out, "/")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%sdid not make %s", prefix, out)
	case err != nil:
		return fmt.Errorf("%soutput %s: %w", prefix, out, err)
	case isDir && st.Kind != directory:
		return fmt.Errorf("%smade %s, but not as a directory", prefix, out)
	case !isDir && (st.Kind == directory || st.Kind == other):
		return fmt.Errorf("%smade %s, but not as a file", prefix, out)
	}
	return nil
}

// settle reads the outputs in their final place and records the actions.
func (t *Task) settle(ctx context.Context) error {
	facts := t.snapshot()
	edited := make([]string, len(t.stale))
	looked := make(map[string]digest)
	for i, v := range t.stale {
		if edited[i] = t.edited(v, looked); edited[i] == "" {
			t.callDone(v)
		}
	}
	t.remember(facts)
	outputs := make([][]content, len(t.stale))
	var g errgroup.Group
	for i, v := range t.stale {
		g.Go(func() (err error) {
			outputs[i], err = t.run.outputs(v.member)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, v := range t.stale {
		rec, err := t.record(v, facts, outputs[i], edited[i])
		if err != nil {
			return err
		}
		if edited[i] == "" {
			t.run.uploads.offer(ctx, v, rec, outputs[i])
		}
	}
	return t.recordBatch(facts)
}

// callDone calls the functions of WhenDone for the outputs of an action.
func (t *Task) callDone(v *verdict) {
	t.mu.Lock()
	waiting := maps.Clone(t.done)
	t.mu.Unlock()
	for _, out := range v.outputs {
		if f := waiting[out]; f != nil {
			f(t.run.absolute(out))
		}
	}
}

// remember keeps the digests of the output files, and of inputs with a new hard link, unless these differ in more than the change time.
func (t *Task) remember(facts facts) {
	for out, sum := range facts.digests {
		if st, err := statcache.Lstat(t.run.absolute(out)); err == nil && st.Regular() {
			t.run.rememberWritten(out, st, sum)
		}
	}
	for in, was := range facts.linked {
		st, err := statcache.Lstat(t.run.absolute(in))
		was.Ctime = st.Ctime
		if err == nil && st == was.Status {
			t.run.rememberWritten(in, st, was.sum)
		}
	}
}

// outputs reads an action's outputs.
func (r *run) outputs(m *member) ([]content, error) {
	contents := make([]content, len(m.outputs))
	for i, out := range m.outputs {
		c, err := r.output(out)
		if err != nil {
			return nil, fmt.Errorf("output %w", err)
		}
		contents[i] = c
	}
	return contents, nil
}

// edited returns an input that differs from the action's key by now, or "".
func (t *Task) edited(v *verdict, looked map[string]digest) string {
	for i, in := range v.member.inputs {
		d, ok := looked[in]
		if !ok {
			// An input that is gone has no digest, and so differs, too.
			c, _ := t.run.input(in)
			d = c.digest
			looked[in] = d
		}
		if d != v.inputs[i].digest {
			return in
		}
	}
	return ""
}

func (t *Task) record(v *verdict, facts facts, outputs []content, edited string) (*record, error) {
	r := &record{Format: recordFormat, ID: v.ID, Key: v.key, Edited: edited, Origin: facts.origin,
		Duration: time.Since(t.start), BatchSize: len(t.stale)}
	for i, c := range outputs {
		r.Outputs = append(r.Outputs, newOutput(v.outputs[i], c))
	}
	if t.unit.batch == nil {
		r.Memory = facts.memory
		if r.Memory == 0 && v.record != nil {
			r.Memory = v.record.Memory
		}
	}
	if err := t.run.save(v, r); err != nil {
		return nil, err
	}
	if edited != "" {
		t.run.emit(Event{Kind: Output, Action: t.unit.id, Phase: t.unit.phase,
			Text: fmt.Sprintf("input %s was edited while %s was made; the next run makes it again", edited, v.ID)})
	}
	done := Event{Kind: Done, Action: v.ID, Phase: v.Phase, By: facts.by, Duration: r.Duration, Memory: facts.memory, Origin: r.Origin,
		Files: r.files()}
	if t.unit.batch != nil {
		done.Batch = t.unit.id
	}
	t.run.emit(done)
	return r, nil
}

// save writes a record, and before it what its key was computed from.
func (r *run) save(v *verdict, rec *record) error {
	parts := keyParts{Key: v.key, Recipe: v.Recipe, Inputs: v.lines()}
	if err := r.ledger.write(v.ID, ".from", r.tmp, parts); err != nil {
		return err
	}
	return r.ledger.write(v.ID, ".json", r.tmp, rec)
}

func (t *Task) recordBatch(facts facts) error {
	if t.unit.batch == nil || facts.memory == 0 {
		return nil
	}
	var last batchRecord
	if err := t.run.ledger.read(t.unit.id, ".batch", &last); err == nil && len(t.stale) < last.Members && facts.memory < last.Memory {
		return nil
	}
	now := batchRecord{ID: t.unit.id, Members: len(t.stale), Memory: facts.memory}
	return t.run.ledger.write(t.unit.id, ".batch", t.run.tmp, now)
}
