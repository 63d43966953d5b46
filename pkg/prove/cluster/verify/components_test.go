package verify

import (
	"context"
	"slices"
	"testing"

	"slipway.build/pkg/mechanism/report"
)

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
			if result.Message != "needs traefik, which the cluster's release does not have" &&
				result.Message != "needs cloud-controller-manager, which the cluster's release does not have" {
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
