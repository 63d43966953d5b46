//go:build integration

package integration

import (
	"path/filepath"
	"strings"
	"testing"
)

// kubeadm of a tree takes the tree's defaults, and a user's configuration before them. An edit of the defaults compiles it anew.
func TestKubeadmDoesByDefaultWhatTheTreeSays(t *testing.T) {
	tr := clone(t)
	version := tr.slipway(t, "version").ok(t).stdout
	version = strings.TrimSpace(version) + ".dirty"
	const file, registry = "cmd/kubeadm/defaults/kubeadm.yaml", "registry.acme.example"
	tr.write(t, "release/release.yaml", strings.Replace(tr.read(t, "release/release.yaml"), "\nregistry: registry.k8s.io\n",
		"\nregistry: "+registry+"\n", 1))
	tr.make(t, "kubeadm").fails(t, 2, "has kubeadm ask for those of registry.k8s.io")
	tr.write(t, file, `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
imageRepository: `+registry+`
apiServer:
  extraArgs: [{name: profiling, value: "false"}]
networking: {podSubnet: 10.9.0.0/16}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 42
syncFrequency: 42s
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
`)
	tr.make(t, "kubeadm").ok(t)
	kubeadm := func(args ...string) result {
		offline := []string{"PATH=" + filepath.Dir(tr.path("_output/bin/kubeadm")), "https_proxy=http://127.0.0.1:1",
			"KUBEADM_INIT_DRYRUN_DIR=" + t.TempDir()} // and not /etc/kubernetes, which would look like something that a cluster has left
		return run(t, tr.dir, offline, tr.path("_output/bin/kubeadm"), args...)
	}
	tag := strings.ReplaceAll(version, "+", "_")
	list := kubeadm("config", "images", "list").ok(t).stdout
	for _, want := range []string{registry + "/kube-apiserver:" + tag + "\n", registry + "/coredns:", registry + "/pause:"} {
		if !strings.Contains(list, want) {
			t.Errorf("no %q in\n%s", want, list)
		}
	}
	says := func(text string, wanted ...string) {
		t.Helper()
		for _, want := range wanted {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
	says(kubeadm("config", "print", "init-defaults", "--component-configs=KubeletConfiguration,KubeProxyConfiguration").ok(t).stdout,
		"podSubnet: 10.9.0.0/16", "maxPods: 42", "syncFrequency: 42s", "mode: nftables")

	tr.write(t, "_output/mine.yaml", `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
networking: {serviceSubnet: 10.8.0.0/16}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 43
`)
	would := kubeadm("init", "--dry-run", "--config="+tr.path("_output/mine.yaml"), "--ignore-preflight-errors=all").ok(t).stdout
	says(would, "podSubnet: 10.9.0.0/16", "serviceSubnet: 10.8.0.0/16", "maxPods: 43", "syncFrequency: 42s", "mode: nftables",
		"- --profiling=false", "kubernetesVersion: "+version)

	tr.write(t, file, strings.Replace(tr.read(t, file), "maxPods", "maxPds", 1))
	tr.make(t, "kubeadm").ok(t)
	kubeadm("version").fails(t, 1, "defaults/kubeadm.yaml, of which this kubeadm is made", `unknown field "maxPds"`)
}
