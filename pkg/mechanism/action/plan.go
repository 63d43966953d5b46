package action

import (
	"context"
	"fmt"
)

// A Decision is that an action has to run.
type Decision struct {
	Action  *Action
	Certain bool   // false: it runs only if an input that is made again comes out differently
	Reason  string // as in the Started event
}

// Plan returns the actions that Run would run, in the order it prefers, and why. It runs nothing, waits for
// nobody and writes nothing.
func (g *Graph) Plan(ctx context.Context) ([]Decision, error) {
	units, err := g.arrange()
	if err != nil {
		return nil, err
	}
	j, err := g.judge()
	if err != nil {
		return nil, err
	}
	if err := j.present(units); err != nil {
		return nil, err
	}
	var plan []Decision
	decided := make(map[*member]Decision)
	for _, u := range units {
		for _, m := range u.members {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			d, err := j.foresee(m, decided)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.ID, err)
			}
			if d.Reason == "" {
				continue
			}
			decided[m] = d
			plan = append(plan, d)
		}
	}
	return plan, nil
}

// foresee judges an action some of whose inputs may be made again first.
func (j *judge) foresee(m *member, decided map[*member]Decision) (Decision, error) {
	pending := make(map[string]string) // what to say of an input, by path
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
			pending[n.input] = "will be made again"
		} else if pending[n.input] == "" {
			pending[n.input] = "may be made again"
		}
	}
	if len(pending) == 0 {
		v, err := j.examine(m)
		if err != nil {
			return Decision{}, err
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
	var reason string
	v.record, reason = j.recall(m)
	if reason == "" {
		reason = j.explain(v, pending)
	}
	if reason == "" {
		reason = j.damage(m, v.record)
	}
	if reason != "" {
		return Decision{m.Action, true, reason}, nil
	}
	return Decision{m.Action, false, "input " + first + " " + pending[first]}, nil
}
