package cluster

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/prove/cluster/tarball"
)

func TestUpgradeTakesNodesThatAreLeft(t *testing.T) {
	t.Parallel()
	s := &State{Name: "c", dir: t.TempDir(), Processes: []Process{{Name: switchName}, {Name: "c-1", Release: "new"},
		{Name: "c-2", Release: ""}, {Name: "c-3", Release: "old"}}}
	u := &upgrade{State: s, to: &tarball.Tarball{}, nodes: s.allNodes()}
	s.Processes[1].Release = u.to.Sum()
	var names []string
	for _, step := range u.steps() {
		names = append(names, step.name)
	}
	if err := checkOrder(u.steps()); err != nil {
		t.Error(err)
	}
	want := []string{
		"unpack", "publish images", "configure kubeadm",
		"kubeadm upgrade c-2", "drain c-2", "restart c-2", "return c-2",
		"kubeadm upgrade c-3", "drain c-3", "restart c-3", "return c-3",
		"addons", "CoreDNS ready", "remove the earlier release",
	}
	if !slices.Equal(names, want) {
		t.Errorf("steps are %q", names)
	}
	u.nodes = u.nodes[2:]
	for _, step := range u.steps() {
		if strings.HasPrefix(step.name, "drain") {
			t.Error("the only node is drained")
		}
	}
}

func TestReleaseLinkMovesInOneStep(t *testing.T) {
	t.Parallel()
	s := &State{dir: t.TempDir()}
	for _, sum := range []string{"0123456789abcdef", "fedcba9876543210"} {
		if err := os.Symlink("leftover", s.releaseDir()+".new"); err != nil {
			t.Fatal(err)
		}
		if err := s.use(sum); err != nil {
			t.Fatal(err)
		}
		if to, err := os.Readlink(s.releaseDir()); err != nil || to != "releases/"+sum[:12] {
			t.Errorf("release leads to %s, %v", to, err)
		}
	}
}

func TestKubeProxyHasRulesOnceItHasWrittenThem(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 23, 20, 29, 17, 0, time.UTC)
	for body, want := range map[string]bool{
		`{"healthy": true, "status": {"IPv4": {"lastUpdated": "2026-11-23T20:29:18Z", "healthy": true}}}`: true,
		`{"healthy": true, "status": {"IPv4": {"lastUpdated": "2026-11-23T20:29:16Z", "healthy": true}}}`: false,
		`{"healthy": true, "status": {}}`:         false,
		`{"lastUpdated": "2026-11-23T20:29:18Z"}`: true, // an earlier version
		`not JSON`: false,
	} {
		answer := &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body))}
		if err := hasRules(answer, since); (err == nil) != want {
			t.Errorf("%s: %v", body, err)
		}
		answer = &http.Response{StatusCode: http.StatusServiceUnavailable, Body: io.NopCloser(strings.NewReader(body))}
		if err := hasRules(answer, since); err == nil {
			t.Errorf("unhealthy, %s: no error", body)
		}
	}
}
