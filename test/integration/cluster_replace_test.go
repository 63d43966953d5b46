//go:build integration && linux

package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// restamped copies a program to a folder, as one that says another version of the same length.
func restamped(t *testing.T, program, dir string) (version string) {
	t.Helper()
	var r struct{ Version string }
	if err := json.Unmarshal([]byte(readFile(filepath.Join(released(t), "release.json"))), &r); err != nil {
		t.Fatal(err)
	}
	version = r.Version[:len(r.Version)-4] + "beef"
	text := readFile(program)
	if !strings.Contains(text, r.Version) {
		t.Fatalf("%s does not have the version %s", program, r.Version)
	}
	put(t, []byte(strings.ReplaceAll(text, r.Version, version)), filepath.Join(dir, filepath.Base(program)))
	if err := os.Chmod(filepath.Join(dir, filepath.Base(program)), 0o755); err != nil {
		t.Fatal(err)
	}
	return version
}

// replacesPrograms requires that programs of nodes are replaced and come back, that one that cannot start is not left there, and that the
// commands that a developer uses beside that work.
func (tr tree) replacesPrograms(t *testing.T) {
	program := func(name string) string {
		return tr.path("_output/cluster/slipway/release/kubernetes/server/bin/" + name)
	}
	dir, unpacked := t.TempDir(), t.TempDir()
	run(t, "", nil, "tar", "-xzf", filepath.Join(released(t), serverTarball), "-C", unpacked, "kubernetes/server/bin/kube-scheduler").ok(t)
	version := restamped(t, program("kubelet"), dir)
	restamped(t, filepath.Join(unpacked, "kubernetes/server/bin/kube-scheduler"), dir)
	manifest := tr.path("_output/cluster/slipway/nodes/slipway-1/kubernetes/manifests/kube-scheduler.yaml")
	before := readFile(manifest)
	kubelets := func() string {
		return tr.slipway(t, "cluster", "kubectl", "get", "nodes", "-o", "jsonpath={.items[*].status.nodeInfo.kubeletVersion}").ok(t).stdout
	}
	of := kubelets()

	replaced := tr.slipway(t, "cluster", "replace", "--bin", dir, "kube-scheduler", "kubelet").ok(t)
	t.Logf("two programs were replaced in %v", replaced.took)
	tr.eventually(t, func() string {
		if got := kubelets(); got != version+" "+version {
			return "the kubelets are of " + got
		}
		return ""
	})
	if got := tr.slipway(t, "cluster", "logs", "kube-scheduler").ok(t); !strings.Contains(got.stdout,
		`"Starting Kubernetes Scheduler" version="`+version+`"`) {
		t.Errorf("the scheduler is not of %s: %v", version, got)
	}
	image := tr.kubectl(t, "-n", "kube-system", "get", "pod/kube-scheduler-slipway-1", "-o",
		"jsonpath={.spec.containers[0].image}").ok(t).stdout
	if !strings.Contains(readFile(manifest), "image: "+image+"\n") || strings.Contains(before, image) {
		t.Errorf("the API says that the scheduler's image is %s", image)
	}
	if got := tr.slipway(t, "cluster", "status").ok(t); strings.Count(got.stdout, version) != 2 || !strings.Contains(got.stdout, dir) {
		t.Errorf("the status does not list what was replaced: %v", got)
	}
	tr.slipway(t, "cluster", "upgrade", "--to", released(t)).fails(t, 1, "runs programs that are not of its release", "replace --back")

	broken := t.TempDir()
	put(t, []byte("#!/bin/sh\necho Kubernetes v0\n"), filepath.Join(broken, "kube-scheduler"))
	if err := os.Chmod(filepath.Join(broken, "kube-scheduler"), 0o755); err != nil {
		t.Fatal(err)
	}
	tr.slipway(t, "cluster", "replace", "--bin", broken, "kube-scheduler").fails(t, 1, "the earlier one was put back",
		"kube-scheduler has ended")
	if got := readFile(manifest); !strings.Contains(got, "image: "+image+"\n") {
		t.Errorf("the manifest has not the earlier image:\n%s", got)
	}

	tr.slipway(t, "cluster", "replace", "--back", "kubelet", "kube-scheduler").ok(t)
	if readFile(manifest) != before {
		t.Errorf("the manifest is not as before:\n%s", readFile(manifest))
	}
	tr.eventually(t, func() string {
		if got := kubelets(); got != of {
			return "the kubelets are of " + got
		}
		return ""
	})
	if got := tr.slipway(t, "cluster", "status").ok(t); strings.Contains(got.stdout, "NOT OF THE RELEASE") {
		t.Errorf("something is left: %v", got)
	}

	tr.slipway(t, "cluster", "replace", "etcd").fails(t, 2, "etcd cannot be replaced")
	tr.slipway(t, "cluster", "replace", "--bin", broken, "kubelet").fails(t, 1, "there is no kubelet in "+broken, "make kubelet")
	if got := tr.slipway(t, "cluster", "shell", "slipway-2", "--", "hostname").ok(t); got.stdout != "slipway-2\n" {
		t.Errorf("the shell is elsewhere: %v", got)
	}
	tr.slipway(t, "cluster", "shell", "slipway-1", "sh", "-c", "exit 7").fails(t, 7)
	tr.slipway(t, "cluster", "shell", "slipway-3").fails(t, 2, `unknown node "slipway-3"`)
	tr.slipway(t, "cluster", "kubectl", "get", "nosuch").fails(t, 1, "the server doesn't have a resource type")
	if got := tr.slipway(t, "cluster", "logs", "containerd", "--node", "slipway-2", "--tail",
		"1").ok(t); strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("want one line: %v", got)
	}
}

// replacesProcess requires the same of a control plane without nodes, which has the user that as runs commands as.
func (tr tree) replacesProcess(t *testing.T, as func(...string) result) {
	t.Helper()
	dir := tr.path("bin")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	version := restamped(t, tr.path("_output/cluster/slipway/release/kubernetes/server/bin/kube-scheduler"), dir)
	says := `"Starting Kubernetes Scheduler" version="` + version + `"`
	as("cluster", "replace", "--bin", dir, "kube-scheduler").ok(t)
	if got := as("cluster", "logs", "kube-scheduler").ok(t); !strings.Contains(got.stdout, says) {
		t.Errorf("the scheduler is not of %s: %v", version, got)
	}
	put(t, []byte("#!/bin/sh\n[ \"$1\" = --version ] || { echo nothing works >&2; exit 1; }\n"), filepath.Join(dir, "kube-scheduler"))
	as("cluster", "replace", "--bin", dir, "kube-scheduler").fails(t, 1, "the earlier one was put back", "nothing works")
	if got := as("cluster", "logs", "kube-scheduler").ok(t); !strings.Contains(got.stdout, says) {
		t.Errorf("the scheduler is not of %s: %v", version, got)
	}
	as("cluster", "replace", "--back", "kube-scheduler").ok(t)
	if got := as("cluster", "logs", "kube-scheduler").ok(t); strings.Contains(got.stdout, says) {
		t.Errorf("the scheduler is still of %s", version)
	}
	as("cluster", "shell", "slipway-1").fails(t, 1, "without nodes")
}
