package action

import (
	"context"
	"errors"
	"slices"
)

// A Keyed is an action with the key that a cache has its result under. Recipe and Inputs have the names of [Graph.Folders].
type Keyed struct {
	Action *Action
	Key    string // "" if it depends on an input that is unmade
	State  KeyState
	Recipe []string
	Inputs []string // if the key is known: digest, space, path
	Origin Origin   // of the result, if there is one
	Files  []File   // the outputs, unless they are unmade
}

// A KeyState is where the result of a key is.
type KeyState string

const (
	Here     KeyState = "here"     // in the tree, or known from an earlier run
	InCache  KeyState = "in cache" // only the cache has it
	Unmade   KeyState = "unmade"
	KeyOpen  KeyState = "open"      // the key depends on what is unmade
	TreeOnly KeyState = "here only" // no cache keeps such results
)

// Keys returns the key of every action, and where its result is. It asks the cache, runs nothing and writes nothing.
func (g *Graph) Keys(ctx context.Context, opts Options) ([]Keyed, error) {
	var all []Keyed
	unmade := map[*member]bool{}
	err := g.each(ctx, Options{}, opts.Cache, func(j *judge, m *member) error {
		k, err := j.keyed(ctx, m, unmade)
		unmade[m] = k.State == Unmade || k.State == KeyOpen
		all = append(all, k)
		return err
	})
	return all, err
}

func (j *judge) keyed(ctx context.Context, m *member, unmade map[*member]bool) (Keyed, error) {
	k := Keyed{Action: m.Action, State: KeyOpen, Recipe: m.names.recipe(m.Recipe)}
	for _, n := range m.needs {
		if unmade[n.maker] {
			return k, nil
		}
	}
	if len(j.needed(m, true)) > 0 { // links of a result that is not here
		return k, nil
	}
	v, err := j.examine(ctx, m)
	if _, lost := errors.AsType[*lostError](err); lost {
		return k, nil
	}
	if err != nil {
		return k, err
	}
	k.Key, k.Inputs = v.commonKey(), v.commonLines()
	switch {
	case v.reason.Kind != "":
		k.State = Unmade
	case v.hit != nil:
		k.State = InCache
	case !m.shared():
		k.State = TreeOnly
	default:
		k.State = Here
	}
	if v.reason.Kind == "" {
		k.Origin, k.Files = v.record.Origin, v.record.files()
	}
	return k, nil
}

// Part returns the graph of some actions, by ID, and of all that make what they need.
func (g *Graph) Part(ids []string) (*Graph, error) {
	units, err := g.arrange()
	if err != nil {
		return nil, err
	}
	keep := map[*Action]bool{}
	var visit func(m *member)
	visit = func(m *member) {
		if keep[m.Action] {
			return
		}
		keep[m.Action] = true
		for _, n := range m.needs {
			visit(n.maker)
		}
	}
	for _, u := range units {
		for _, m := range u.members {
			if slices.Contains(ids, m.ID) {
				visit(m)
			}
		}
	}
	part := *g
	part.Actions = slices.DeleteFunc(slices.Clone(g.Actions), func(a *Action) bool { return !keep[a] })
	return &part, nil
}
