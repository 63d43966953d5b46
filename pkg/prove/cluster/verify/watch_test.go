package verify

import (
	"slices"
	"testing"

	"slipway.build/pkg/prove/cluster"
)

// standIn returns where a check runs with testdata/kubectl.
func standIn(t *testing.T) *env {
	t.Helper()
	return &env{target: &target{State: &cluster.State{}, kubectl: "testdata/kubectl", image: "probe"}, ctx: t.Context(), namespace: "here"}
}

func TestAWatchReportsWhatHappensToPods(t *testing.T) {
	t.Parallel()
	err := attempt(func() {
		pods := standIn(t).watch("/api/v1", "pods")
		pods.inOrder("new created", "new ready", "old deleted")
		if got := pods.deleted(); !slices.Equal(got, []string{"old"}) {
			t.Errorf("deleted were %q", got)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestStepsSayWhatKubectlSays(t *testing.T) {
	t.Parallel()
	e := standIn(t)
	for _, tt := range []struct {
		step func()
		want string
	}{
		{func() { e.is("pod/db", "{.a}", "b") },
			"kubectl get pod/db -o jsonpath={.a}: exit status 3: what is get pod/db -o jsonpath={.a}?"},
		{func() { e.is("pod/web", "{.status.phase}", "Failed") }, `{.status.phase} of pod/web is "Running", want "Failed"`},
		{func() { e.refused("no", "apply", "-f", "-") }, `not refused, want an error with "no": `},
	} {
		if err := attempt(tt.step); err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
	err := attempt(func() {
		e.refused("what is", "delete", "pod/web")
		e.becomes("pod/web", "{.status.phase}", "Running")
		text := e.expand("$image in $namespace for $who, $other", "who", "me")
		if got := e.feed(text, "apply", "-f", "-"); got != "probe in here for me, $other" {
			t.Errorf("expanded to %q", got)
		}
	})
	if err != nil {
		t.Error(err)
	}
}
