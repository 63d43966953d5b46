package cluster

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestUpgradeTakesNodesThatAreLeft(t *testing.T) {
	t.Parallel()
	s := &State{Name: "c", dir: t.TempDir(), Processes: []Process{{Name: switchName}, {Name: "c-1", Release: "new"},
		{Name: "c-2", Release: ""}, {Name: "c-3", Release: "old"}}}
	u := &upgrade{State: s, to: &bundle{description: []byte("new")}, nodes: []node{s.node(1), s.node(2), s.node(3)}}
	s.Processes[1].Release = u.to.sum()
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

func TestUpgradeConfigurationHasTheFullVersion(t *testing.T) {
	t.Parallel()
	text, err := setup{version: "v1.37.2+acme.1", wait: time.Minute}.upgradeConfig()
	if err != nil {
		t.Fatal(err)
	}
	c := decode(t, text)["UpgradeConfiguration"]
	if apply, _ := c["apply"].(map[string]any); apply["kubernetesVersion"] != "v1.37.2+acme.1" {
		t.Errorf("kubeadm upgrades to %v", apply)
	}
	if timeouts, _ := c["timeouts"].(map[string]any); timeouts["upgradeManifests"] != "5m0s" {
		t.Errorf("kubeadm waits for %v", timeouts)
	}
}

func TestRegistryOfKubeadmChangesAlone(t *testing.T) {
	t.Parallel()
	const config = "apiVersion: kubeadm.k8s.io/v1beta4\nimageRepository: old.example\nkubernetesVersion: v1.37.1\n"
	if got, err := withRegistry(config, "old.example"); err != nil || got != config {
		t.Errorf("%s, %v", got, err)
	}
	got, err := withRegistry(config, "new.example")
	if want := strings.ReplaceAll(config, "old", "new"); err != nil || got != want {
		t.Errorf("%s, %v", got, err)
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
		if got, err := hasRules(answer, since); got != want {
			t.Errorf("%s: %v, %v", body, got, err)
		}
		answer = &http.Response{StatusCode: http.StatusServiceUnavailable, Body: io.NopCloser(strings.NewReader(body))}
		if got, err := hasRules(answer, since); got || err == nil {
			t.Errorf("unhealthy, %s: %v, %v", body, got, err)
		}
	}
}
