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
		made[c.String()] = true
		return "", nil
	})
	// One at a time, so that made needs no lock.
	for _, c := range checks {
		r, err := run(t.Context(), Options{Checks: []Check{c}}, try)
		if err != nil || len(r.Results) != 1 {
			t.Fatalf("%s/%s: %+v, %v", c.Group, c.Name, r, err)
		}
		name, result := c.String(), r.Results[0]
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

func TestChecksOfAddonsThatAReleaseLacksAreSkippedByName(t *testing.T) {
	t.Parallel()
	lacks := []string{ingressController, cloudManager}
	want := []string{
		"components/cloud-controller-manager", "components/traefik", "services/load-balancer", "services/ingress",
	}
	var skipped []string
	checks, try := withoutAddons(All(), func(context.Context, Check) (string, error) { return "", nil }, lacks)
	r, err := run(t.Context(), Options{Checks: checks}, try)
	if err != nil || len(r.Results) != len(All()) {
		t.Fatalf("%d results of %d checks: %v", len(r.Results), len(All()), err)
	}
	for _, result := range r.Results {
		switch result.Outcome {
		case report.Passed:
		case report.Skipped:
			skipped = append(skipped, result.Group+"/"+result.Name)
			if result.Message != "needs traefik, which the cluster does not have" &&
				result.Message != "needs cloud-controller-manager, which the cluster does not have" {
				t.Errorf("%s/%s: %s", result.Group, result.Name, result.Message)
			}
		default:
			t.Errorf("%+v", result)
		}
	}
	if !slices.Equal(skipped, want) {
		t.Errorf("skipped are %q, want %q", skipped, want)
	}
}
