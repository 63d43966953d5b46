package execute

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"slipway.build/pkg/make/plan"
	"slipway.build/pkg/make/policy"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/tree/catalog"
)

func TestADeniedLicenseStopsARunBeforeItCompiles(t *testing.T) {
	t.Parallel()
	made := map[string]bool{}
	makes := func(id, output, text string, inputs ...string) *action.Action {
		return &action.Action{ID: id, Inputs: inputs, Outputs: []string{output}, Run: func(_ context.Context, t *action.Task) error {
			made[id] = true
			return os.WriteFile(t.Path(output), []byte(text), 0o600)
		}}
	}
	planned := &plan.Plan{
		Graph: &action.Graph{Root: t.TempDir(), State: "state", Actions: []*action.Action{
			makes("compile", "program", ""),
			makes("packages", "list", `{"ImportPath": "a.test/main", "Module": {"Path": "a.test/m"}}`),
			makes("spdx", "names", `{"go": ["MIT"], "modules": {"a.test/m": {"revision": "v1.0.0", "licenses": ["MIT"]}}}`, "list"),
		}},
		Licensed: policy.Subject{Groups: []policy.Group{{ID: "spdx", Names: "names", Packages: "list",
			Programs: []policy.Program{{Name: "program", Package: "a.test/main"}}}}},
	}
	var told []string
	o := action.Options{Events: func(e action.Event) { told = append(told, string(e.Kind)+" "+e.Action) }}
	if _, err := checkFirst(t.Context(), planned, o); err != nil || len(made) > 0 || len(told) > 0 {
		t.Errorf("without a policy: %v, made %v, told %q", err, made, told)
	}
	planned.Licensed.Policy = catalog.Licenses{Deny: []string{"MIT"}}
	_, err := checkFirst(t.Context(), planned, o)
	if refused, ok := errors.AsType[*policy.Error](err); !ok || len(refused.Refused) != 2 {
		t.Errorf("denied: %v", err)
	}
	if made["compile"] || !made["spdx"] {
		t.Errorf("before it is denied, %v is made", made)
	}
	if !slices.Contains(told, "finished ") {
		t.Errorf("nobody hears that the run is over: %q", told)
	}
	clear(made)
	told = nil
	planned.Licensed.Policy = catalog.Licenses{Allow: []string{"MIT"}}
	if again, err := checkFirst(t.Context(), planned, o); err != nil || len(made) > 0 || len(again) > 0 || slices.Contains(told, "finished ") {
		t.Errorf("allowed, and found before: %v, made %v, told %v", err, made, again)
	}
}
