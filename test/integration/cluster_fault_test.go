//go:build integration && linux

package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stopped stops all processes of a program on all nodes by SIGSTOP.
func stopped(program string) fault {
	return func(t *testing.T, tr tree) func() {
		t.Helper()
		pids := tr.processesOf(t, program)
		signal := func(sig syscall.Signal) {
			for _, pid := range pids {
				if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
					t.Errorf("%v to %s: %v", sig, program, err)
				}
			}
		}
		signal(syscall.SIGSTOP)
		return func() {
			signal(syscall.SIGCONT)
			tr.well(t)
		}
	}
}

// processesOf waits until there are processes of a program in the nodes, and returns them. On a busy machine one may be restarting.
func (tr tree) processesOf(t *testing.T, program string) (pids []int) {
	t.Helper()
	tr.eventually(t, func() string {
		if pids = tr.findProcesses(t, program); len(pids) == 0 {
			return "no node runs " + program
		}
		return ""
	})
	return pids
}

func (tr tree) findProcesses(t *testing.T, program string) []int {
	t.Helper()
	var pids []int
	for _, part := range tr.clusterStatus(t).Parts {
		pids = append(pids, processesBelow(t, part.PID, program)...)
	}
	return pids
}

// processesBelow returns the processes of a program among the descendants of another process.
func processesBelow(t *testing.T, ancestor int, program string) []int {
	t.Helper()
	children := map[string][]string{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, stat := range stats {
		text := readFile(stat)
		if fields := strings.Fields(text[strings.LastIndex(text, ")")+1:]); len(fields) > 1 { // proc(5): state ppid …
			children[fields[1]] = append(children[fields[1]], filepath.Base(filepath.Dir(stat)))
		}
	}
	var pids []int
	for queue := children[strconv.Itoa(ancestor)]; len(queue) > 0; queue = queue[1:] {
		queue = append(queue, children[queue[0]]...)
		if name, _, _ := strings.Cut(readFile("/proc/"+queue[0]+"/cmdline"), "\x00"); filepath.Base(name) == program {
			pid, err := strconv.Atoi(queue[0])
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// well waits until the cluster works: nodes are ready, controllers fill a namespace, and the scheduler finds a node.
func (tr tree) well(t *testing.T) {
	t.Helper()
	tr.eventually(t, func() string {
		got := tr.kubectl(t, "wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s")
		if got.code != 0 {
			return got.String()
		}
		name := fmt.Sprintf("well-%d", time.Now().UnixNano())
		defer tr.kubectl(t, "delete", "namespace", name, "--wait=false")
		for _, args := range [][]string{
			{"create", "namespace", name},
			{"-n", name, "wait", "--for=create", "serviceaccount/default", "--timeout=60s"},
			{"-n", name, "run", "web", "--image=example.invalid/web"},
			{"-n", name, "wait", "--for=condition=PodScheduled", "pod/web", "--timeout=60s"},
		} {
			if got := tr.kubectl(t, args...); got.code != 0 {
				return got.String()
			}
		}
		return ""
	})
}

// noMetrics removes metrics-server's API.
func noMetrics(t *testing.T, tr tree) func() {
	t.Helper()
	tr.kubectl(t, "delete", "apiservice", "v1beta1.metrics.k8s.io").ok(t)
	return func() {
		tr.kubectl(t, "apply", "-f", tr.path("_output/cluster/slipway/release/kubernetes/addons/metrics-server")).ok(t)
		tr.kubectl(t, "wait", "--for=condition=Available", "apiservice/v1beta1.metrics.k8s.io", "--timeout=120s").ok(t)
	}
}

func noMetricsServer(t *testing.T, tr tree) func() {
	return tr.withoutPods(t, "metrics-server", "metrics-server", 1)
}

func noDNS(t *testing.T, tr tree) func() { return tr.withoutPods(t, "coredns", "kube-dns", 2) }

func noCloudManager(t *testing.T, tr tree) func() {
	return tr.withoutPods(t, "cloud-controller-manager", "cloud-controller-manager", 1)
}

func noIngressController(t *testing.T, tr tree) func() {
	return tr.withoutPods(t, "traefik", "traefik", 1)
}

// withoutPods removes the Pods of a Deployment, which are labeled with an app.
func (tr tree) withoutPods(t *testing.T, deployment, app string, replicas int) (mend func()) {
	t.Helper()
	scale := func(n int) {
		tr.kubectl(t, "-n", "kube-system", "scale", "deployment/"+deployment, fmt.Sprintf("--replicas=%d", n)).ok(t)
	}
	scale(0)
	tr.kubectl(t, "-n", "kube-system", "wait", "--for=delete", "pods", "--selector=k8s-app="+app, "--timeout=120s").ok(t)
	return func() {
		scale(replicas)
		tr.kubectl(t, "-n", "kube-system", "rollout", "status", "deployment/"+deployment, "--timeout=180s").ok(t)
	}
}

func noProxy(t *testing.T, tr tree) func() {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kube-proxy.json")
	put(t, []byte(tr.kubectl(t, "-n", "kube-system", "get", "daemonset/kube-proxy", "-o", "json").ok(t).stdout), file)
	tr.kubectl(t, "-n", "kube-system", "delete", "daemonset/kube-proxy").ok(t)
	return func() {
		tr.kubectl(t, "-n", "kube-system", "apply", "-f", file).ok(t)
		tr.kubectl(t, "-n", "kube-system", "rollout", "status", "daemonset/kube-proxy", "--timeout=120s").ok(t)
	}
}

// otherConfiguration changes a kubelet's configuration file, which the running kubelet does not follow.
func otherConfiguration(t *testing.T, tr tree) func() {
	t.Helper()
	return tr.changedKubelet(t, "maxOpenFiles: 20000", "maxOpenFiles: 10000")
}

// carelessKubelet makes a kubelet run on a full disk as if it were empty.
func carelessKubelet(t *testing.T, tr tree) func() {
	t.Helper()
	mend := tr.changedKubelet(t, "evictionPressureTransitionPeriod:", `evictionHard: {imagefs.available: "0%", nodefs.available: "0%"}
evictionPressureTransitionPeriod:`)
	tr.restartKubelets(t)
	return func() {
		mend()
		tr.restartKubelets(t)
	}
}

// restartKubelets ends all kubelets, which their nodes start again.
func (tr tree) restartKubelets(t *testing.T) {
	t.Helper()
	for _, pid := range tr.processesOf(t, "kubelet") {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	tr.well(t)
}

// changedKubelet changes the configuration file of the second node's kubelet.
func (tr tree) changedKubelet(t *testing.T, from, to string) (mend func()) {
	t.Helper()
	return changedConfiguration(t, clusterNodes(tr.clusterStatus(t))[1], from, to)
}

// changedConfiguration changes the configuration file of a node's kubelet.
func changedConfiguration(t *testing.T, n clusterNode, from, to string) (mend func()) {
	t.Helper()
	file := fmt.Sprintf("/proc/%d/root/var/lib/kubelet/config.yaml", n.pid)
	before := readFile(file)
	after := strings.Replace(before, from, to, 1)
	if after == before {
		t.Fatalf("%s has nothing to change:\n%s", file, before)
	}
	put(t, []byte(after), file)
	return func() { put(t, []byte(before), file) }
}

// withoutPod removes a program of the control plane.
func withoutPod(program string) fault {
	return func(t *testing.T, tr tree) func() {
		t.Helper()
		file := tr.manifest(program)
		before := readFile(file)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		tr.eventually(t, func() string {
			if pids := tr.findProcesses(t, program); len(pids) > 0 {
				return fmt.Sprintf("%s still runs: %v", program, pids)
			}
			return ""
		})
		return func() {
			replace(t, file, before)
			tr.well(t)
		}
	}
}

// manifest returns the path of the manifest of a program of the control plane.
func (tr tree) manifest(program string) string {
	return tr.path("_output/cluster/slipway/nodes/slipway-1/kubernetes/manifests/" + program + ".yaml")
}

// replace writes a file atomically, because the kubelet watches it.
func replace(t *testing.T, file, text string) {
	t.Helper()
	tmp := filepath.Join(filepath.Dir(file), "."+filepath.Base(file))
	put(t, []byte(text), tmp)
	if err := os.Rename(tmp, file); err != nil {
		t.Fatal(err)
	}
}

// changedPod changes the manifest of a program of the control plane, and waits until it was restarted.
func (tr tree) changedPod(t *testing.T, program string, change func(manifest string) string) (mend func()) {
	t.Helper()
	file := tr.manifest(program)
	before := readFile(file)
	set := func(text string) {
		old := tr.processesOf(t, program)
		replace(t, file, text)
		tr.eventually(t, func() string {
			if syscall.Kill(old[0], 0) == nil {
				return program + " still runs as it was"
			}
			return ""
		})
		tr.well(t)
	}
	after := change(before)
	if after == before {
		t.Fatalf("%s has nothing to change:\n%s", file, before)
	}
	set(after)
	return func() { set(before) }
}

// changedManager changes an argument of the controller manager.
func changedManager(from, to string) fault {
	return func(t *testing.T, tr tree) func() {
		t.Helper()
		return tr.changedPod(t, "kube-controller-manager", func(manifest string) string { return strings.Replace(manifest, from, to, 1) })
	}
}

func withoutControllers(names ...string) fault {
	arg := "--controllers=*"
	to := arg
	for _, name := range names {
		to += ",-" + name + "-controller"
	}
	return changedManager(arg, to)
}

// carelessServer makes the API server write new Secrets without encryption, and its audit log elsewhere.
func carelessServer(t *testing.T, tr tree) func() {
	t.Helper()
	file := tr.path("_output/cluster/slipway/nodes/slipway-1/kubernetes/slipway/encryption.yaml")
	before := readFile(file)
	var config map[string]any
	if err := json.Unmarshal([]byte(strings.TrimPrefix(before, "---\n")), &config); err != nil {
		t.Fatal(err)
	}
	resources := config["resources"].([]any)[0].(map[string]any)
	slices.Reverse(resources["providers"].([]any)) // the first one writes, and all read
	after, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, file, string(after))
	mend := tr.changedPod(t, "kube-apiserver", func(manifest string) string {
		return strings.Replace(manifest, "/var/log/audit/audit.log", "/var/log/audit/other.log", 1)
	})
	return func() {
		replace(t, file, before)
		mend()
	}
}

// schedulerWithout makes the scheduler run without some plugins.
func schedulerWithout(plugins ...string) fault {
	return func(t *testing.T, tr tree) func() {
		t.Helper()
		put(t, []byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}
profiles:
- plugins:
    multiPoint:
      disabled: [{name: `+strings.Join(plugins, "}, {name: ")+`}]
`), tr.path("_output/cluster/slipway/nodes/slipway-1/kubernetes/careless.yaml"))
		return tr.changedPod(t, "kube-scheduler", func(manifest string) string {
			return strings.NewReplacer(
				"- --kubeconfig=/etc/kubernetes/scheduler.conf", "- --config=/etc/kubernetes/careless.yaml",
				"    volumeMounts:\n", "    volumeMounts:\n    - {mountPath: /etc/kubernetes/careless.yaml, name: careless}\n",
				"  volumes:\n", "  volumes:\n  - {name: careless, hostPath: {path: /etc/kubernetes/careless.yaml, type: File}}\n",
			).Replace(manifest)
		})
	}
}
