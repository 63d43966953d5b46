//go:build integration && linux

package integration

import (
	"path/filepath"
	"strings"
	"testing"
)

// settingFlags returns flags of slipway cluster up that change what components do.
func settingFlags(t *testing.T) []string {
	t.Helper()
	file, err := filepath.Abs("testdata/settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--feature-gates", "APIResponseCompression=false", "--runtime-config", "api/beta=true", "--config", file}
}

// hasSettings requires that the components of a cluster run with the settings of settingFlags, and that the status lists these.
func (tr tree) hasSettings(t *testing.T, s clusterStatus) {
	t.Helper()
	get := func(path string) string { return tr.kubectl(t, "get", "--raw", path).ok(t).stdout }
	paths := []string{"/metrics"}
	for _, node := range clusterNodes(s) {
		paths = append(paths, "/api/v1/nodes/"+node.name+"/proxy/metrics")
		config := get("/api/v1/nodes/" + node.name + "/proxy/configz")
		for _, want := range []string{`"memory.available":"101Mi"`, `"imageMaximumGCAge":"240h0m0s"`,
			`"evictionPressureTransitionPeriod":"15s"`} {
			if !strings.Contains(config, want) {
				t.Errorf("the kubelet of %s does not have %s: %s", node.name, want, config)
			}
		}
	}
	for _, path := range paths {
		if metrics := get(path); !strings.Contains(metrics, `kubernetes_feature_enabled{name="APIResponseCompression",stage="BETA"} 0`) {
			t.Errorf("%s does not say that the feature gate is off", path)
		}
	}
	if got := tr.kubectl(t, "api-versions").ok(t).stdout; strings.Count(got, "beta") < 2 { // one is metrics-server's
		t.Errorf("the beta APIs are not served: %s", got)
	}
	manifest := readFile(tr.path("_output/cluster/slipway/nodes/slipway-1/kubernetes/manifests/kube-controller-manager.yaml"))
	if !strings.Contains(manifest, "--concurrent-deployment-syncs=6") {
		t.Errorf("the controller manager's manifest is %s", manifest)
	}
	warned := tr.kubectl(t, "run", "second", "--image=example.invalid/second", "--privileged",
		`--overrides={"spec":{"schedulerName":"second-scheduler"}}`).ok(t)
	if !strings.Contains(warned.stderr, "would violate PodSecurity") {
		t.Errorf("nothing warns of a privileged Pod: %v", warned)
	}
	tr.kubectl(t, "wait", "--for=condition=PodScheduled", "pod/second", "--timeout=60s").ok(t)
	tr.kubectl(t, "delete", "pod/second", "--now").ok(t)
	status := tr.slipway(t, "cluster", "status").ok(t).stdout
	for _, want := range []string{"APIResponseCompression", "api/beta", "evictionHard.memory.available"} {
		if !strings.Contains(status, want) {
			t.Errorf("the status does not list %s: %s", want, status)
		}
	}
}
