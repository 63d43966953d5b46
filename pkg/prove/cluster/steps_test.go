package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/action"
)

func TestStepThatWaitsForNoStepIsAnError(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context) error { return nil }
	for _, tt := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"misspelled", []step{{"unpack", nil, nothing}, {"network", []string{"unpakc"}, nothing}},
			`step "network" comes after "unpakc", which is no step before it`},
		{"a circle", []step{{"a", []string{"b"}, nothing}, {"b", []string{"a"}, nothing}},
			`step "a" comes after "b", which is no step before it`},
		{"itself", []step{{"a", []string{"a"}, nothing}}, `step "a" comes after "a", which is no step before it`},
		{"two of a name", []step{{"a", nil, nothing}, {"a", nil, nothing}}, `there are two steps "a"`},
	} {
		err := runSteps(t.Context(), tt.steps, func(action.Event) {})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestStepsOfClustersAreInOrder(t *testing.T) {
	t.Parallel()
	for _, controlPlanes := range []int{1, 3} {
		s := &State{Name: "a", dir: t.TempDir(), ControlPlanes: controlPlanes}
		for _, o := range []Options{{ControlPlaneOnly: true}, {RuntimeOnly: true}, {Nodes: 3}, {Nodes: 5}} {
			for _, fromBin := range [][]string{nil, {"kubelet"}} {
				if err := checkOrder(s.steps(nil, o, fromBin)); err != nil {
					t.Errorf("%+v: %v", o, err)
				}
			}
		}
	}
}

func TestStepsWaitForOthersAndTheFirstErrorEndsThem(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var order []string
	var kinds []string
	events := func(e action.Event) { kinds = append(kinds, string(e.Kind)+" "+e.Action) }
	note := func(name string, err error) step {
		return step{name: name, run: func(context.Context) error { order = append(order, name); return err }}
	}
	one, two, three := note("one", nil), note("two", broken), note("three", nil)
	two.after, three.after = []string{"one"}, []string{"two"}
	if err := runSteps(t.Context(), []step{one, two, three}, events); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "two: ") {
		t.Errorf("error %v", err)
	}
	if got := strings.Join(order, " "); got != "one two" {
		t.Errorf("the steps taken were %s", got)
	}
	if got := strings.Join(kinds, ", "); got != "planned , started one, done one, started two, failed two, finished " {
		t.Errorf("the events were %s", got)
	}
}
