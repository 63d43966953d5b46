package verify

import (
	"context"
	"slices"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/report"
)

func TestChecksThatNeedNodesAreSkippedByName(t *testing.T) {
	t.Parallel()
	made := map[string]bool{}
	checks, try := withoutNodes(All(), func(_ context.Context, c Check) (string, error) {
		made[c.Group+"/"+c.Name] = true
		return "", nil
	})
	// One at a time, so that made needs no lock.
	for _, c := range checks {
		r, err := run(t.Context(), Options{Checks: []Check{c}}, try)
		if err != nil || len(r.Results) != 1 {
			t.Fatalf("%s/%s: %+v, %v", c.Group, c.Name, r, err)
		}
		name, result := c.Group+"/"+c.Name, r.Results[0]
		switch {
		case slices.Contains(nodeless, name):
			if !made[name] || result.Outcome != report.Passed {
				t.Errorf("%s was not made: %+v", name, result)
			}
		case made[name] || result.Outcome != report.Skipped || !strings.HasPrefix(result.Message, "needs nodes: "):
			t.Errorf("%s was not skipped: %+v", name, result)
		}
	}
	if len(made) != len(nodeless) {
		t.Errorf("%d checks were made, want %q", len(made), nodeless)
	}
	for _, c := range All() {
		if c.Group == components && c.Name == kubelet && c.Skips {
			t.Error("where there are nodes, the kubelet may be skipped")
		}
	}
}
