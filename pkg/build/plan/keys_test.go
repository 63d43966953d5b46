package plan

import (
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/action"
)

// Compiles have the same keys in caches by the local and the container road, which make the same bytes, and others by Bazel. Other projects'
// programs are compiled by the local road in any case.
func TestRoadsHaveTheKeysOfTheirBytes(t *testing.T) {
	t.Parallel()
	root := tree(t)
	keys := func(road string) map[string]string {
		t.Helper()
		p := open(t, root, "ROAD="+road)
		all, err := graph(t, p, Request{Tars: true}).Keys(t.Context(), action.Options{})
		if err != nil {
			t.Fatal(err)
		}
		byBinary := map[string]string{}
		for _, k := range all {
			if k.Action.Phase == "compile" {
				words := strings.Fields(k.Action.ID) // compile PLATFORM, perhaps the road, NAME
				byBinary[words[1]+" "+words[len(words)-1]] = k.Key
			}
		}
		return byBinary
	}
	local, container, bazel := keys("local"), keys("container"), keys("bazel")
	if len(local) < 5 || len(container) != len(local) {
		t.Fatalf("%d compiles by the local road, %d by the container road", len(local), len(container))
	}
	differ := 0
	for binary, key := range local {
		if key == "" || container[binary] != key {
			t.Errorf("%s: the keys are %q and %q", binary, key, container[binary])
		}
		if bazel[binary] != key {
			differ++
		}
	}
	if differ == 0 || differ == len(local) {
		t.Errorf("by Bazel, %d of %d keys differ; want those of the components", differ, len(local))
	}
}

// What is loaded without a road has components all the same.
func TestComponentsNeedNoRoad(t *testing.T) {
	t.Parallel()
	p, err := Load(tree(t), Settings{}, environment())
	if err != nil {
		t.Fatal(err)
	}
	code, err := p.Components(t.Context())
	if err != nil || code.Module == nil || len(code.Inputs) == 0 {
		t.Errorf("%+v, %v", code, err)
	}
}
