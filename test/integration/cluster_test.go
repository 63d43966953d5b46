//go:build integration && linux

package integration

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// needNodes is called by tests that boot a cluster with nodes. It joins their lane, or skips the test if the machine lacks what they need.
func needNodes(t *testing.T) {
	t.Helper()
	needRoot(t)
	for program, pkg := range map[string]string{
		"ip": "iproute2", "nsenter": "util-linux", "iptables-save": "iptables", // of the machine, in which clusters must leave no rules
	} {
		need(t, program, pkg)
	}
	clusterLane.join(t)
}

// serverTarball is the file that clusters are made from.
var serverTarball = "kubernetes-server-linux-" + runtime.GOARCH + ".tar.gz"

// released returns a folder with tarballs: SLIPWAY_TARBALLS, or that of the release that all tests share.
func released(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("SLIPWAY_TARBALLS"); dir != "" {
		return dir
	}
	return baseline(t).path(tars)
}

// clusterTree returns a tree in which nothing can be built, because clusters need only tarballs. Its clusters are removed after the test.
func clusterTree(t *testing.T) tree {
	t.Helper()
	tr := tree{dir: t.TempDir()}
	if err := os.Mkdir(tr.path("release"), 0o755); err != nil {
		t.Fatal(err)
	}
	tr.write(t, "release/release.yaml", "")
	t.Cleanup(func() { tr.slipway(t, "cluster", "down").ok(t) })
	return tr
}

// up boots a cluster, and waits for it.
func (tr tree) up(t *testing.T, flags ...string) result {
	t.Helper()
	return tr.slipway(t, append([]string{"cluster", "up", "--from", released(t)}, flags...)...)
}

// startUp starts to boot a cluster from a folder of tarballs.
func (tr tree) startUp(t *testing.T, from string, flags ...string) *process {
	t.Helper()
	return tr.start(t, slipway(t), append([]string{"cluster", "up", "--from", from}, flags...)...)
}

// kubectl runs the released kubectl against the cluster.
func (tr tree) kubectl(t *testing.T, args ...string) result {
	t.Helper()
	config, ok := kubeconfigs.Load(tr.dir)
	if !ok {
		config = strings.TrimSpace(tr.slipway(t, "cluster", "kubeconfig").ok(t).stdout)
		kubeconfigs.Store(tr.dir, config)
	}
	return run(t, tr.dir, []string{"KUBECONFIG=" + config.(string), "HOME=" + tr.dir, "HTTPS_PROXY=", "https_proxy="},
		tr.path("_output/cluster/slipway/release/kubernetes/server/bin/kubectl"), args...)
}

var kubeconfigs sync.Map // file by folder of a tree

// A clusterStatus is the output of slipway cluster status --json.
type clusterStatus struct {
	State string
	Parts []struct {
		Name, Address, State string
		PID                  int
	}
	HollowNodes struct{ Wanted, Ready int }
}

func (tr tree) clusterStatus(t *testing.T) clusterStatus {
	t.Helper()
	var s clusterStatus
	if err := json.Unmarshal([]byte(tr.slipway(t, "cluster", "status", "--json").ok(t).stdout), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// takeUsualPorts listens on the default ports of Kubernetes' programs while a test runs, unless another process does already.
func takeUsualPorts(t *testing.T) {
	t.Helper()
	for _, port := range []int{2379, 2380, 2381, 6443, 8080, 10248, 10249, 10250, 10256, 10257, 10258, 10259} {
		l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
}

// One cluster of two nodes is booted for everything that is tested of a cluster that works. Another tree's cluster of the same name
// boots and ends beside it.
func TestClusterOfTwoNodesWorksAndLeavesNothing(t *testing.T) {
	needNodes(t)
	startReleases()
	tr, other := clusterTree(t), clusterTree(t)
	takeUsualPorts(t)
	before := tracesOf(t)
	tr.slipway(t, "cluster", "conformance").fails(t, 1, "there is no such cluster", "slipway cluster up")
	two := append([]string{"--nodes", "2"}, settingFlags(t)...)
	up := tr.startUp(t, released(t), two...)
	other.bootsAfterKill(t)
	up.wait(t).ok(t)
	before.has(t, "process", "cgroup", "interface", "route")

	s := tr.clusterStatus(t)
	if s.State != "ready" || len(s.Parts) != 3 || s.Parts[1].State != "Ready" || s.Parts[2].State != "Ready" {
		t.Errorf("status is %+v", s)
	}
	tr.standsBeside(t, other)
	tr.hasSettings(t, s)
	tr.worksAcrossNodes(t, s)
	t.Run("verify", tr.verifySeesWhatIsBroken)
	tr.metered(t)
	t.Run("conformance", tr.runsConformanceSpecs)
	t.Run("storage", tr.addsStorage)
	t.Run("replace", tr.replacesPrograms)
	t.Run("scale", func(t *testing.T) { tr.takesHollowNodes(t, two) })
	t.Run("examples", tr.runsExamples)

	again := tr.up(t, two...).ok(t)
	if again.took > 20*time.Second || len(tr.clusterStatus(t).Parts) != 3 {
		t.Errorf("the second up changed something: %v", again)
	}
	tr.up(t, "--nodes", "1").fails(t, 1, "is up already")
	tr.up(t, "--nodes", "2").fails(t, 1, "is up already", "settings")
	t.Run("upgrade", tr.upgradesUnderLoad)
	tr.hasSettings(t, tr.clusterStatus(t))

	tr.slipway(t, "cluster", "down").ok(t)
	before.nothingLeft(t)
	if tr.exists("_output/cluster/slipway") {
		t.Error("the cluster's folder stays behind")
	}
	tr.slipway(t, "cluster", "down").ok(t)
	tr.slipway(t, "cluster", "status").fails(t, 1, "there is no such cluster")
}

// bootsAfterKill requires that a cluster that was killed on its way up can be booted without having been removed.
func (tr tree) bootsAfterKill(t *testing.T) {
	t.Helper()
	p := tr.startUp(t, released(t))
	if !p.until(t, p.says("kubeadm init\n")) {
		t.Fatalf("it ended before it could be stopped: %v", p.wait(t))
	}
	p.kill(t)
	tr.up(t).ok(t)
}

// standsBeside requires that two trees have a cluster of the same name at the same time, and that the first one stays when the other is
// removed. The command that removes it is killed once.
func (tr tree) standsBeside(t *testing.T, other tree) {
	t.Helper()
	for _, of := range []tree{tr, other} {
		if got := of.kubectl(t, "get", "--raw", "/readyz").ok(t).stdout; got != "ok" {
			t.Errorf("%s says %q", of.dir, got)
		}
	}
	if a, b := tr.clusterStatus(t).Parts[1].Address, other.clusterStatus(t).Parts[1].Address; a == b {
		t.Errorf("both have a node at %s", a)
	}
	down := other.start(t, slipway(t), "cluster", "down")
	down.after(rand.N(300 * time.Millisecond))
	down.kill(t)
	other.slipway(t, "cluster", "down").ok(t)
	if s := tr.clusterStatus(t); s.State != "ready" || s.Parts[1].State != "Ready" {
		t.Errorf("removing one cluster changed the other: %+v", s)
	}
}

// worksAcrossNodes requires that Pods on both nodes serve by a Service's name.
func (tr tree) worksAcrossNodes(t *testing.T, s clusterStatus) {
	t.Helper()
	put(t, webImage(t), tr.path("web.tar"))
	if got := tr.slipway(t, "cluster", "load", "web.tar").ok(t); got.stdout != "example.invalid/web:test\n" {
		t.Errorf("load says %v", got)
	}
	tr.slipway(t, "cluster", "load", "release/release.yaml").fails(t, 1, "release/release.yaml is no archive of images")
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	tr.kubectl(t, "apply", "-f", filepath.Join(here, "web.yaml")).ok(t)
	tr.kubectl(t, "rollout", "status", "deployment/web", "--timeout=180s").ok(t)
	for pod := range strings.FieldsSeq(tr.kubectl(t, "get", "pods", "-l", "app=web", "-o", "name").ok(t).stdout) {
		get := func() result {
			return tr.kubectl(t, "exec", pod, "--", "/web", "get", "http://web.default.svc.cluster.local")
		}
		tr.eventually(t, func() string { // kube-proxy notices a ready Pod a moment later
			if got := get(); got.code != 0 {
				return got.String()
			}
			return ""
		})
		seen := map[string]bool{}
		for range 50 {
			answer := get().ok(t)
			if seen[strings.TrimSpace(answer.stdout)] = true; len(seen) == 2 {
				break
			}
		}
		if !seen["slipway-1"] || !seen["slipway-2"] || len(seen) != 2 {
			t.Errorf("from %s the Service leads to %v, want both nodes", pod, seen)
		}
		if log := tr.kubectl(t, "logs", pod).ok(t).stdout + tr.kubectl(t, "logs", pod).ok(t).stderr; !strings.Contains(log,
			"serving on slipway-") {
			t.Errorf("the log of %s is %q", pod, log)
		}
	}
	for _, p := range s.Parts[1:] {
		client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}} // no proxy
		answer, err := client.Get("http://" + p.Address + ":30080")
		if err != nil {
			t.Errorf("from this machine: %v", err)
			continue
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || !strings.HasPrefix(string(text), "slipway-") {
			t.Errorf("from this machine, %s answers %q, %v", p.Address, text, err)
		}
	}
}

// metered requires that metrics-server measures both nodes, which includes that it can verify the kubelets' certificates.
func (tr tree) metered(t *testing.T) {
	t.Helper()
	var last result
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		if last = tr.kubectl(t, "top", "nodes"); last.code == 0 && strings.Contains(last.stdout, "slipway-1") &&
			strings.Contains(last.stdout, "slipway-2") {
			return
		}
	}
	t.Errorf("no measurements of both nodes: %v", last)
}

// webImage returns an archive of the image that testdata/web.yaml names.
func webImage(t *testing.T) []byte {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "web")
	c := command("", likeRelease, "go", "build", "-o", bin, "./testdata/web")
	c.Dir = ""
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	layer := tarOf(t, map[string]string{"web": readFile(bin)})
	sum := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Entrypoint": []string{"/web"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return tarOf(t, map[string]string{
		"config.json": string(config), "layer.tar": string(layer),
		"manifest.json": `[{"Config":"config.json","RepoTags":["example.invalid/web:test"],"Layers":["layer.tar"]}]`,
	})
}

func tarOf(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func put(t *testing.T, data []byte, name string) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// One cluster is killed again and again on its way up.
func TestKilledClusterIsRemoved(t *testing.T) {
	needNodes(t)
	tr := clusterTree(t)
	before := tracesOf(t)
	moments := []string{"unpack", "network", "start slipway-1", "publish the control plane's images", "root of nodes",
		"kubeadm init", "connect Pods"}
	if !soak {
		rand.Shuffle(len(moments), func(i, j int) { moments[i], moments[j] = moments[j], moments[i] })
		moments = moments[:1]
	}
	for _, text := range moments {
		p := tr.startUp(t, released(t))
		if !p.until(t, p.says(text+"\n")) {
			t.Fatalf("it ended before it could be stopped: %v", p.wait(t))
		}
		p.after(rand.N(time.Second))
		p.kill(t)
		tr.slipway(t, "cluster", "down").ok(t)
		before.nothingLeft(t)
	}
}

func TestInterruptedClusterIsRemoved(t *testing.T) {
	needNodes(t)
	tr := clusterTree(t)
	before := tracesOf(t)
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !soak {
		signals = signals[rand.N(2):][:1]
	}
	for _, sig := range signals {
		p := tr.startUp(t, released(t))
		if !p.until(t, p.says("kubeadm init\n")) {
			t.Fatalf("it ended before it could be interrupted: %v", p.wait(t))
		}
		p.signalGroup(sig)
		p.wait(t).fails(t, 1, "interrupted: removing what was made", "nothing of cluster slipway is left")
		before.nothingLeft(t)
	}
}

// A user without privileges has a control plane in the foreground, which ends with Ctrl-C. It is that of a bundle.
func TestControlPlaneAloneNeedsNoRoot(t *testing.T) {
	needRoot(t) // to become another user
	need(t, "setpriv", "util-linux")
	clusterLane.join(t)
	tr := nobodysTree(t)
	takeUsualPorts(t)
	before := tracesOf(t)
	as := func(args ...string) result {
		return run(t, tr.dir, []string{"HOME=" + tr.dir}, "setpriv", append(
			[]string{"--reuid=65534", "--regid=65534", "--clear-groups", tr.path("slipway")}, args...)...)
	}
	as("cluster", "up", "--control-plane-only", "--from", tr.path("acme.tar"), "--feature-gates", "APIResponseCompresion=false").fails(t, 2,
		`unknown feature gate "APIResponseCompresion"; did you mean APIResponseCompression?`)
	before.nothingLeft(t)
	put(t, []byte(readFile("testdata/settings-alone.yaml")), tr.path("settings.yaml"))
	up := tr.with("HOME="+tr.dir).start(t, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", tr.path("slipway"),
		"cluster", "up", "--control-plane-only", "--foreground", "--from", tr.path("acme.tar"), "--config", tr.path("settings.yaml"))
	if !up.until(t, up.says("Ctrl-C removes it, too.")) {
		t.Fatalf("it ended before it was ready: %v", up.wait(t))
	}
	if !strings.Contains(up.stdout(), "export KUBECONFIG="+tr.path("_output/cluster/slipway/kubeconfig")) {
		t.Errorf("it does not say how to use the cluster: %s", up.stdout())
	}
	if info, err := os.Stat(tr.path("_output/cluster/slipway/kubeconfig")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the administrator's kubeconfig: %v, %v", info, err)
	}
	tr.kubectl(t, "create", "configmap", "hello", "--from-literal=a=b").ok(t)
	if log := readFile(tr.path("_output/cluster/slipway/log/audit.log")); !strings.Contains(log, `"name":"hello"`) {
		t.Errorf("the audit log is %s", log)
	}
	tr.kubectl(t, "create", "deployment", "web", "--image=example.invalid/web").ok(t)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) { // it takes the whole control plane
		pods := tr.kubectl(t, "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].status.conditions[*].reason}").ok(t)
		if pods.stdout == "Unschedulable" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no Pod waits for a node: %v", pods)
		}
	}
	verified := as("cluster", "verify", "--only", "components,authorization,garbage-collection,services/dns").ok(t)
	for _, want := range []string{"needs nodes: Services lead to Pods that run", " 5 passed, 0 failed, 8 skipped"} {
		if !strings.Contains(verified.stdout, want) {
			t.Errorf("verify does not say %q: %v", want, verified)
		}
	}
	tr.replacesProcess(t, as)
	as("cluster", "up", "--from", tr.path("acme.tar")).fails(t, 1, "need root", "--control-plane-only")
	up.signalGroup(syscall.SIGINT)
	up.wait(t).fails(t, 0, "nothing of cluster slipway is left")
	before.nothingLeft(t)
	if tr.exists("_output/cluster/slipway") {
		t.Error("the cluster's folder stays behind")
	}
}

// nobodysTree returns a clusterTree for user 65534, with the slipway command and a bundle of the release.
func nobodysTree(t *testing.T) tree {
	t.Helper()
	dir, err := os.MkdirTemp("", "slipway-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	tr := tree{dir: dir}
	t.Cleanup(func() { tr.slipway(t, "cluster", "down").ok(t) })
	if err := os.Mkdir(tr.path("release"), 0o755); err != nil {
		t.Fatal(err)
	}
	tr.write(t, "release/release.yaml", "")
	run(t, dir, nil, "cp", slipway(t), sharedBundle(t), dir).ok(t)
	run(t, dir, nil, "chown", "-R", "65534:65534", dir).ok(t)
	return tr
}

func TestClusterIsMadeAndRemovedManyTimes(t *testing.T) {
	rare(t, "a hundred clusters take an hour")
	needNodes(t)
	tr := clusterTree(t)
	before := tracesOf(t)
	for i := range 100 {
		took := tr.up(t).ok(t).took
		start := time.Now()
		tr.slipway(t, "cluster", "down").ok(t)
		t.Logf("%d: up in %v, down in %v", i+1, took, time.Since(start))
		before.nothingLeft(t)
	}
}
