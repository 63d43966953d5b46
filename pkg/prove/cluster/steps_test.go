package cluster

import (
	"context"
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
		{"misspelled", []step{{"unpack", nil, nothing}, {"network", []string{"unpakc"}, nothing}}, `step "network" comes after "unpakc", which is no step`},
		{"a circle", []step{{"a", []string{"b"}, nothing}, {"b", []string{"a"}, nothing}}, `steps wait for one another: ["a" "b"]`},
		{"itself", []step{{"a", []string{"a"}, nothing}}, `steps wait for one another: ["a"]`},
		{"two of a name", []step{{"a", nil, nothing}, {"a", nil, nothing}}, `there are two steps "a"`},
	} {
		err := take(t.Context(), tt.steps, func(action.Event) {})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestStepsOfClustersAreInOrder(t *testing.T) {
	t.Parallel()
	s := &State{Name: "a", dir: t.TempDir()}
	for _, steps := range [][]step{s.controlPlane(Options{}), s.nodes(Options{Nodes: 1}), s.nodes(Options{Nodes: 3})} {
		if err := checkOrder(steps); err != nil {
			t.Error(err)
		}
	}
}
