package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/report"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/prove/cluster"
)

var fakes = []Check{
	{Group: "pets", Name: "cat"}, {Group: "pets", Name: "dog", Alone: true}, {Group: "pets", Name: "unicorn", Skips: true},
	{Group: "farm", Name: "cow"}, {Group: "farm", Name: "dog"},
}

// ending returns a tryFunc whose checks end with these errors.
func ending(errs map[string]error) tryFunc {
	return func(_ context.Context, c Check) (string, error) {
		err := errs[c.String()]
		if err == nil {
			return "", nil
		}
		return "a log\nof two lines\n", err
	}
}

func zoo(t *testing.T) Report {
	t.Helper()
	r, err := run(t.Context(), Options{Checks: fakes}, ending(map[string]error{
		"pets/unicorn": fmt.Errorf("look: %w", skip("needs a horn")), "farm/cow": errors.New("does not <moo>"), "farm/dog": skip("needs time"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	r.Cluster, r.Version, r.Seconds = "zoo", "v1.36.3", 61.4
	for i := range r.Results {
		r.Results[i].Seconds = float64(i)
	}
	return r
}

// lines has a line for each result.
func lines(r Report) []string {
	var all []string
	for _, result := range r.Results {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s/%s %s %s", result.Group, result.Name, result.Outcome, result.Message)))
	}
	return all
}

func TestOnlySomeChecksMayBeSkipped(t *testing.T) {
	t.Parallel()
	r := zoo(t)
	want := []string{
		"pets/cat passed", "pets/dog passed", "pets/unicorn skipped look: needs a horn",
		"farm/cow failed does not <moo>", "farm/dog failed skipped, which this check must not be: needs time",
	}
	if diff := cmp.Diff(want, lines(r)); diff != "" {
		t.Error(diff)
	}
	if got, want := r.Summary(), "5 checks in 1m1s: 2 passed, 2 failed, 1 skipped"; got != want {
		t.Errorf("the summary is %q, want %q", got, want)
	}
}

func TestCheckThatPassedSaysWhatItMeasured(t *testing.T) {
	t.Parallel()
	r, err := run(t.Context(), Options{Checks: fakes[:1]}, func(context.Context, Check) (string, error) { return "9 lives", nil })
	if diff := cmp.Diff([]string{"pets/cat passed 9 lives"}, lines(r)); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestScaleIsSkippedWithoutHollowNodes(t *testing.T) {
	t.Parallel()
	for _, check := range scaleChecks {
		e := &env{target: &target{State: &cluster.State{}}}
		var why skip
		if err := attempt(func() { check.run(e) }); !errors.As(err, &why) || !strings.HasPrefix(string(why), "needs hollow nodes") {
			t.Errorf("%s: %v", check, err)
		}
	}
}

func TestReportsHaveEachResult(t *testing.T) {
	t.Parallel()
	want := zoo(t)
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var junit bytes.Buffer
	if err := want.JUnit(&junit); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`<testsuites name="slipway cluster verify v1.36.3" tests="5" failures="2" skipped="1" time="61.400">`,
		`<testsuite name="farm" tests="2" failures="2"`, `<testcase classname="cluster.pets" name="unicorn"`,
		`<skipped message="look: needs a horn">`,
	} {
		if !strings.Contains(junit.String(), part) {
			t.Errorf("JUnit lacks %s:\n%s", part, junit.String())
		}
	}
}

// withFakeComponents returns checks of which some need components.
func withFakeComponents() []Check {
	return []Check{
		{Group: components, Name: apiServer},
		{Group: components, Name: scheduler, Needs: []string{apiServer}}, {Group: components, Name: kubelet, Needs: []string{apiServer}},
		{Group: "scheduler", Name: "fit", Needs: []string{apiServer, scheduler}},
		{Group: "scheduler", Name: "taints", Alone: true, Needs: []string{scheduler}},
		{Group: "kubelet", Name: "logs", Needs: []string{kubelet}},
	}
}

func TestChecksOfAComponentThatDoesNotRunFailAtOnce(t *testing.T) {
	t.Parallel()
	const notTried = "failed not tried: %[1]s does not run, see components/%[1]s"
	for _, tt := range []struct {
		down string
		keep bool
		want []string
	}{
		{scheduler, false, []string{
			"components/kube-apiserver passed", "components/kube-scheduler failed gone", "components/kubelet passed",
			"scheduler/fit " + fmt.Sprintf(notTried, scheduler), "scheduler/taints " + fmt.Sprintf(notTried, scheduler), "kubelet/logs passed",
		}},
		{scheduler, true, []string{
			"components/kube-apiserver passed", "components/kube-scheduler failed gone", "components/kubelet passed",
			"scheduler/fit passed", "scheduler/taints passed", "kubelet/logs passed",
		}},
		{apiServer, false, []string{
			"components/kube-apiserver failed gone",
			"components/kube-scheduler " + fmt.Sprintf(notTried, apiServer), "components/kubelet " + fmt.Sprintf(notTried, apiServer),
			"scheduler/fit " + fmt.Sprintf(notTried, apiServer), "scheduler/taints " + fmt.Sprintf(notTried, scheduler),
			"kubelet/logs " + fmt.Sprintf(notTried, kubelet),
		}},
	} {
		gone := map[string]error{components + "/" + tt.down: errors.New("gone")}
		r, err := run(t.Context(), Options{Checks: withFakeComponents(), KeepGoing: tt.keep}, ending(gone))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, lines(r)); diff != "" {
			t.Errorf("without %s, keep going %v:\n%s", tt.down, tt.keep, diff)
		}
	}
}

// never waits for steps that never succeed.
func never(ctx context.Context, message string) error {
	return attempt(func() { (&env{ctx: ctx}).until(func() { fail("%s", message) }) })
}

// A program that is gone costs one wait, and not one for each check that needs it.
func TestWaitsForAComponentAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		checks, err := Select(All(), []string{"scheduler"})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		r, err := run(t.Context(), Options{Checks: WithComponents(checks)}, func(ctx context.Context, c Check) (string, error) {
			if c.Name != scheduler {
				return "", nil
			}
			return "", never(ctx, "gone")
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("it took %v", took)
		}
		if failed := r.Results.Count(report.Failed); failed != 1+len(checks) {
			t.Errorf("%d failed, want the component and all of %d checks: %q", failed, len(checks), lines(r))
		}
	})
}

func TestComponentsAreSelectedWithChecks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{[]string{"api/watch"}, "components/kube-apiserver components/kube-controller-manager api/watch"},
		{[]string{"node-selector", "components/coredns"}, "components/kube-apiserver components/kube-controller-manager " +
			"components/kube-scheduler components/kubelet components/coredns scheduler/node-selector"},
	} {
		checks, err := Select(All(), tt.names)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range WithComponents(checks) {
			got = append(got, c.String())
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("for %q got %q, want %s", tt.names, got, tt.want)
		}
	}
	if got, want := len(WithComponents(All())), len(All()); got != want {
		t.Errorf("all checks are %d, and %d with components", want, got)
	}
}

func TestCheckEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		checks := []Check{{Group: "a", Name: "usual"}, {Group: "a", Name: "long", Limit: time.Hour},
			{Group: "a", Name: "short", Limit: time.Second}}
		hang := func(ctx context.Context, c Check) (string, error) {
			return "", never(ctx, "not yet")
		}
		for _, tt := range []struct {
			limit time.Duration
			want  []string
		}{
			{0, []string{"not done after 3m0s: not yet", "not done after 1h0m0s: not yet", "not done after 1s: not yet"}},
			{time.Minute, []string{"not done after 1m0s: not yet", "not done after 1m0s: not yet", "not done after 1m0s: not yet"}},
		} {
			r, err := run(t.Context(), Options{Checks: checks, Limit: tt.limit}, hang)
			if err != nil {
				t.Fatal(err)
			}
			for i, result := range r.Results {
				if result.Outcome != report.Failed || result.Message != tt.want[i] {
					t.Errorf("with limit %v: %+v, want %q", tt.limit, result, tt.want[i])
				}
			}
		}
	})
}

func TestChecksRunSideBySideExceptThoseAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var checks []Check
		for i := range 10 {
			checks = append(checks, Check{Group: "a", Name: fmt.Sprint(i), Alone: i < 2})
		}
		checks = append(checks, Check{Group: "b", Name: "last"})
		var mu sync.Mutex
		var order []string
		var running, most atomic.Int32
		_, err := run(t.Context(), Options{Checks: checks}, func(ctx context.Context, c Check) (string, error) {
			n := running.Add(1)
			defer running.Add(-1)
			most.Store(max(most.Load(), n))
			time.Sleep(time.Second)
			if c.Alone && running.Load() != 1 {
				t.Errorf("%s is not alone", c.Name)
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, c.Name)
			return "", nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if most.Load() != maxParallel {
			t.Errorf("%d ran at once, want %d", most.Load(), maxParallel)
		}
		if got, want := order[9:], []string{"0", "1"}; !slices.Equal(got, want) {
			t.Errorf("the last to run were %q, want %q", got, want)
		}
	})
}

func TestInterruptedRunHasTheResultsUntilThen(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := run(ctx, Options{Checks: fakes}, func(ctx context.Context, c Check) (string, error) {
		if c.Alone {
			cancel()
			return "", ctx.Err()
		}
		return "", nil
	})
	if !errors.Is(err, context.Canceled) || len(r.Results) != 4 || r.Results.Count(report.Failed) != 0 {
		t.Errorf("%v: %+v", err, r)
	}
}

func TestSelectByGroupAndName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{nil, "pets/cat pets/dog pets/unicorn farm/cow farm/dog"},
		{[]string{"farm"}, "farm/cow farm/dog"},
		{[]string{"dog"}, "pets/dog farm/dog"},
		{[]string{"farm/dog", "cat", "farm/dog"}, "pets/cat farm/dog"},
	} {
		checks, err := Select(fakes, tt.names)
		var got []string
		for _, c := range checks {
			got = append(got, c.String())
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%q selects %q, %v, want %s", tt.names, got, err, tt.want)
		}
	}
	for name, near := range map[string]string{"famr": "farm", "farm/dgo": "farm/dog", "unicron": "unicorn", "spaceship": "",
		"dig": "dog", "foo": "", "": ""} {
		_, err := Select(fakes, []string{name})
		var unknown *suggest.UnknownError
		if !errors.As(err, &unknown) || strings.Join(unknown.Near, " ") != near {
			t.Errorf("for %q: %v, want it to suggest %q", name, err, near)
		}
	}
}

// The names of checks are parts of the names of namespaces, whose length is limited.
func TestChecksHaveUniqueValidNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	var skips []string
	for _, c := range All() {
		id := c.String()
		if seen[id] || len("verify-"+c.Name+"-xxxxx-more") > 63 || strings.Trim(c.Name, "abcdefghijklmnopqrstuvwxyz-") != "" || c.run == nil {
			t.Errorf("check %s", id)
		}
		seen[id] = true
		if c.Skips {
			skips = append(skips, id)
		}
		for _, name := range c.Needs {
			if !seen[components+"/"+name] {
				t.Errorf("%s needs %s, which is no component", id, name)
			}
		}
		if c.Group != components && (!slices.Contains(c.Needs, apiServer) || !slices.Contains(c.Needs, controllerManager)) {
			t.Errorf("%s needs %q, but each check needs a namespace", id, c.Needs)
		}
	}
	if len(seen) < 60 {
		t.Errorf("there are only %d checks", len(seen))
	}
	want := []string{
		"api/fips", "scheduler/node-affinity-preferred", "scheduler/pod-affinity-preferred", "scheduler/topology-spread", "scheduler/scoring",
		"controllers/daemonset-each-node", "services/proxy-ipvs", "storage/locality", "scale/nodes", "scale/pods", "scale/memory",
	}
	if diff := cmp.Diff(want, skips); diff != "" {
		t.Errorf("checks that may be skipped: %s", diff)
	}
}

func TestChecksThatNeedSeveralNodesAreSkippedOnOne(t *testing.T) {
	t.Parallel()
	for _, check := range []func(*env){nodeAffinityPreferred, podAffinityPreferred, topologySpread,
		scoring, daemonSetEachNode} {
		e := &env{target: oneNode()}
		var why skip
		if err := attempt(func() { check(e) }); !errors.As(err, &why) || !strings.HasPrefix(err.Error(), "needs two nodes: ") {
			t.Errorf("got %v", err)
		}
	}
}

func TestUnfinishedPodsOfAJobAreCounted(t *testing.T) {
	t.Parallel()
	var changes []change
	on := func(kind, uid, job, phase string) {
		c := change{Type: kind}
		c.Object.Metadata.UID, c.Object.Metadata.Labels, c.Object.Status.Phase = uid, map[string]string{"job-name": job}, phase
		changes = append(changes, c)
	}
	on("ADDED", "1", "a", "Pending")
	on("ADDED", "2", "a", "Pending")
	on("ADDED", "9", "b", "Pending")
	on("MODIFIED", "1", "a", "Running")
	on("MODIFIED", "1", "a", "Succeeded")
	on("ADDED", "3", "a", "Pending")
	on("MODIFIED", "2", "a", "Failed")
	on("DELETED", "3", "a", "Running")
	on("ADDED", "4", "a", "Running")
	if got := mostUnfinished(changes, "a"); got != 2 {
		t.Errorf("%d Pods of a, want 2", got)
	}
	on("ADDED", "5", "a", "Pending")
	on("ADDED", "6", "a", "Pending")
	if got := mostUnfinished(changes, "a"); got != 3 {
		t.Errorf("%d Pods of a, want 3", got)
	}
}

func TestModeOfKubeProxyIsEditedAsData(t *testing.T) {
	t.Parallel()
	changed, before := withMode("kind: KubeProxyConfiguration\nmode: \"iptables\" # the usual\nother: {mode: kept}\n", "nftables")
	if before != "iptables" {
		t.Fatalf("the mode was %q", before)
	}
	if got, want := parse(changed), parse("{kind: KubeProxyConfiguration, mode: nftables, other: {mode: kept}}"); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

func oneNode() *target { return &target{nodes: []cluster.Process{{Name: "only"}}} }
