package action

import (
	"context"
	"errors"
	"fmt"
)

// A Decision says that an action must run.
type Decision struct {
	Action  *Action
	Certain bool // false: it runs only if an input that is made again comes out differently
	Reason  Reason
}

// Plan returns the actions that Run would run without a cache, in the order it prefers, and why. It runs nothing, does not wait for other
// runs and writes nothing. Of the options, Wanted and NoCachedResults count.
func (g *Graph) Plan(ctx context.Context, opts Options) ([]Decision, error) {
	var plan []Decision
	decided := make(map[*member]Decision)
	err := g.each(ctx, opts, nil, func(j *judge, m *member) error {
		d, err := j.foresee(ctx, m, decided)
		if err == nil && d.Reason.Kind != "" {
			decided[m] = d
			plan = append(plan, d)
		}
		return err
	})
	return plan, err
}

// each calls f for every action, in the order in which they would run.
func (g *Graph) each(ctx context.Context, opts Options, cache Cache, f func(j *judge, m *member) error) error {
	units, err := g.arrange()
	if err != nil {
		return err
	}
	j, err := g.judge(units, opts)
	if err != nil {
		return err
	}
	j.cache = cache
	for _, u := range units {
		for _, m := range u.members {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := f(j, m); err != nil {
				return fmt.Errorf("%s: %w", m.ID, err)
			}
		}
	}
	return nil
}

// foresee judges an action whose inputs may be made again first.
func (j *judge) foresee(ctx context.Context, m *member, decided map[*member]Decision) (Decision, error) {
	pending := make(map[string]ReasonKind) // by input
	first := ""
	for _, n := range m.needs {
		d, ok := decided[n.maker]
		if !ok {
			continue
		}
		if first == "" {
			first = n.input
		}
		if d.Certain {
			pending[n.input] = InputRemade
		} else if pending[n.input] == "" {
			pending[n.input] = InputMaybeRemade
		}
	}
	if len(pending) == 0 {
		v, err := j.examine(ctx, m)
		switch _, lost := errors.AsType[*lostError](err); {
		case lost:
			return Decision{m.Action, false, Reason{Kind: InputMaybeRemade, Path: j.needed(m, true)[0].output}}, nil
		case err != nil:
			return Decision{}, err
		}
		if v.reason.Kind == "" {
			v.reason = j.missing(m)
		}
		return Decision{m.Action, true, v.reason}, nil
	}

	v := &verdict{member: &member{Action: m.Action, outputs: m.outputs}}
	for _, in := range m.inputs {
		if pending[in] != "" {
			continue
		}
		c, err := j.content(in)
		if err != nil {
			return Decision{}, fmt.Errorf("input %w", err)
		}
		v.member.inputs = append(v.member.inputs, in)
		v.inputs = append(v.inputs, c)
	}
	var reason Reason
	v.record, reason = j.recall(m)
	if reason.Kind == "" {
		reason = j.explain(v, pending)
	}
	if reason.Kind == "" && !(v.record.Origin == Cached && j.storedResult(v.record) != nil) {
		reason = j.damage(v.record)
	}
	if reason.Kind != "" {
		return Decision{m.Action, true, reason}, nil
	}
	return Decision{m.Action, false, Reason{Kind: pending[first], Path: first}}, nil
}

// missing returns which wanted output is known from an earlier run, but not here.
func (j *judge) missing(m *member) Reason {
	for _, out := range m.outputs {
		if a := j.outputs[out]; a != nil && (a.occupied || wants(j.opts.Wanted, out)) {
			return Reason{Kind: OutputMissing, Path: out}
		}
	}
	return Reason{}
}
