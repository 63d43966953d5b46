//go:build integration && linux

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The test set's programs are in its tarball, each starts, and those that print a version print the release's.
func TestTestTarballHoldsProgramsThatStart(t *testing.T) {
	clusterLane.join(t)
	from := testRelease(t)
	dir := t.TempDir()
	for _, tarball := range []string{testTarball, "kubernetes-test-portable.tar.gz"} {
		run(t, dir, nil, "tar", "-xzf", filepath.Join(from, tarball), "--exclude=kubernetes/test/images").ok(t)
	}
	const manifest = "kubernetes/test/e2e/testing-manifests/statefulset/cassandra/controller.yaml"
	if text := readFile(filepath.Join(dir, manifest)); !strings.Contains(text, "name: cassandra") {
		t.Errorf("%s is %q", manifest, text)
	}
	version := strings.TrimSpace(readFile(filepath.Join(dir, "kubernetes/version")))
	for _, tt := range []struct {
		program string
		args    []string
		says    string
	}{
		{"e2e.test", []string{"--version"}, version},
		{"e2e_node.test", []string{"--help"}, "-container-runtime-endpoint"},
		{"ginkgo", []string{"version"}, "Ginkgo Version 2"},
		{"kubemark", []string{"--help"}, "--morph"},
		{"go-runner", nil, "Executable path: /no/ginkgo"}, // it starts that one
	} {
		t.Run(tt.program, func(t *testing.T) {
			env := []string{"GINKGO_BIN=/no/ginkgo", "RESULTS_DIR=" + t.TempDir()}
			got := run(t, dir, env, filepath.Join(dir, "kubernetes/test/bin", tt.program), tt.args...)
			if !strings.Contains(got.stdout+got.stderr, tt.says) {
				t.Errorf("it does not print %q: %v", tt.says, got)
			}
		})
	}
	t.Run("hyperkube", func(t *testing.T) {
		hyperkubeRunsEveryComponent(t, filepath.Join(dir, "kubernetes/test/bin/hyperkube"), version)
	})
}

func hyperkubeRunsEveryComponent(t *testing.T, hyperkube, version string) {
	run(t, "", nil, hyperkube, "no-such-component").fails(t, 2, "no-such-component", "kube-apiserver")
	dir := t.TempDir()
	for name, args := range map[string][]string{
		"cloud-controller-manager": {"--version"}, "kube-aggregator": {"--help"}, "kube-apiserver": {"--version"},
		"kube-controller-manager": {"--version"}, "kube-proxy": {"--version"}, "kube-scheduler": {"--version"},
		"kubeadm": {"version"}, "kubectl": {"version", "--client"}, "kubectl-convert": {"--help"}, "kubelet": {"--version"},
		"apiextensions-apiserver": {"--help"},
	} {
		says := version
		if args[0] == "--help" {
			says = "--v Level" // all have this flag
		}
		link := filepath.Join(dir, name)
		if err := os.Symlink(hyperkube, link); err != nil {
			t.Fatal(err)
		}
		for _, line := range [][]string{append([]string{hyperkube, name}, args...), append([]string{link}, args...)} {
			if got := run(t, dir, nil, line[0], line[1:]...).ok(t); !strings.Contains(got.stdout, says) {
				t.Errorf("it does not print %q: %v", says, got)
			}
		}
	}
}
