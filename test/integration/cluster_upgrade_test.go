//go:build integration && linux

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// nextRelease returns a folder with the tarballs of the next release, made of the same sources.
func nextRelease(t *testing.T) string {
	t.Helper()
	dir, err := sharedNextRelease()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var sharedNextRelease = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("SLIPWAY_NEXT_TARBALLS"); dir != "" {
		return dir, nil
	}
	r, err := sharedRelease()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(workspace, "next-release")
	if err := made("a copy of the release", command("", nil, "cp", "-a", "--reflink=auto", r.dir, dir)); err != nil {
		return "", err
	}
	if err := madeBeside("the next release", command(dir, stampAs(nextBuild(r.version), strings.Repeat("0123456789", 4)),
		"make", quick)); err != nil {
		return "", err
	}
	return keepTarballs(dir)
})

// stampAs returns the variables that give a release a version.
func stampAs(version, commit string) []string {
	return []string{"KUBE_GIT_VERSION=" + version, "KUBE_GIT_TREE_STATE=clean", "KUBE_GIT_COMMIT=" + strings.TrimSpace(commit)}
}

// nextBuild returns another version of the same Kubernetes: another fix of a distribution. It is as long, so that nothing has to be linked.
func nextBuild(version string) string {
	last := "0"
	if strings.HasSuffix(version, last) {
		last = "1"
	}
	return version[:len(version)-1] + last
}

// upgradesUnderLoad takes a cluster of two nodes from the shared release to the next one. It is killed on the way, and goes on.
// Meanwhile a client and a writer use the cluster, and notice nothing.
func (tr tree) upgradesUnderLoad(t *testing.T) {
	start := time.Now()
	to := nextRelease(t)
	t.Logf("the next release took %v", time.Since(start))
	otherProjectsImagesStay(t, describedIn(t, released(t)), describedIn(t, to))
	upgrade := []string{"cluster", "upgrade", "--to", to}
	tr.refusesUpgrades(t, to)

	tr.kubectl(t, "delete", "deployment/web", "--ignore-not-found").ok(t)
	tr.serve(t)
	for _, pod := range []string{"kept-0", "kept-1"} {
		tr.kubectl(t, "exec", pod, "--", "/web", "write", "/data/name", pod).ok(t)
	}
	daemons := tr.podsOf(t, "app=each")
	client, w := tr.startClient(t, 30081), tr.startWriter(t)

	first := tr.start(t, slipway(t), upgrade...)
	moment := []string{"kubeadm upgrade slipway-1", "drain slipway-1", "restart slipway-1"}[rand.N(3)]
	if !first.until(t, first.says(moment+"\n")) {
		t.Fatalf("it ended before it could be killed: %v", first.wait(t))
	}
	first.after(rand.N(3 * time.Second))
	first.kill(t)
	t.Logf("killed after %v, in the step %q", time.Since(start), moment)
	if s := tr.clusterStatus(t); s.State != "upgrading" {
		t.Errorf("after a kill the cluster is %s", s.State)
	}
	tr.up(t, "--nodes", "2").fails(t, 1, "is on its way to another release", "slipway cluster upgrade --to")
	rest := tr.slipway(t, upgrade...).ok(t)
	t.Logf("the rest of the upgrade took %v", rest.took)

	client.end(t)
	w.end(t)
	tr.hasRelease(t, to)
	if now := tr.podsOf(t, "app=each"); now != daemons {
		t.Errorf("a DaemonSet's Pods were\n%s\nand are\n%s", daemons, now)
	}
	tr.kubectl(t, "rollout", "status", "statefulset/kept", "--timeout=300s").ok(t)
	for _, pod := range []string{"kept-0", "kept-1"} {
		if got := tr.kubectl(t, "exec", pod, "--", "/web", "read", "/data/name").ok(t).stdout; got != pod {
			t.Errorf("%s has the data %q", pod, got)
		}
	}
	if again := tr.slipway(t, upgrade...).ok(t); !strings.Contains(again.stdout, "is of this release already") {
		t.Errorf("the second upgrade says %v", again)
	}
	tr.green(t, 3*time.Minute, "components", "scheduler/node-selector", "controllers/replicaset", "kubelet/logs", "services/dns")
}

// A cluster is upgraded to the next release, and back, and from the minor version before.
func TestClusterIsUpgradedAndTurnedBack(t *testing.T) {
	rare(t, "three upgrades, one of them from a release that has to be compiled, take half an hour")
	needNodes(t)
	tr := clusterTree(t)
	before := tracesOf(t)
	t.Run("next", func(t *testing.T) {
		tr.up(t, "--nodes", "2").ok(t)
		put(t, webImage(t), tr.path("web.tar"))
		tr.slipway(t, "cluster", "load", "web.tar").ok(t)
		tr.upgradesUnderLoad(t)
		tr.eventually(t, func() string { // Pods of checks are on their way out, and no controller makes them again
			if got := tr.kubectl(t, "get", "namespaces", "-o", "name").ok(t).stdout; strings.Contains(got, "namespace/verify-") {
				return got
			}
			return ""
		})
	})
	t.Run("back", func(t *testing.T) { tr.upgradesWhileServing(t, released(t)) })
	tr.slipway(t, "cluster", "down").ok(t)
	before.nothingLeft(t)
	t.Run("minor version", func(t *testing.T) {
		tr.slipway(t, "cluster", "up", "--from", earlierRelease(t), "--nodes", "2").ok(t)
		put(t, webImage(t), tr.path("web.tar"))
		tr.slipway(t, "cluster", "load", "web.tar").ok(t)
		tr.serve(t)
		tr.upgradesWhileServing(t, released(t))
		tr.wholeTable(t, strings.Fields(tr.slipway(t, "cluster", "verify", "--list").ok(t).stdout))
	})
	tr.slipway(t, "cluster", "down").ok(t)
	before.nothingLeft(t)
}

// upgradesWhileServing upgrades a cluster to the release in a folder, while a client asks a Service.
func (tr tree) upgradesWhileServing(t *testing.T, to string) {
	t.Helper()
	client := tr.startClient(t, 30081)
	t.Logf("the upgrade took %v", tr.slipway(t, "cluster", "upgrade", "--to", to).ok(t).took)
	client.end(t)
	tr.hasRelease(t, to)
}

// earlierKubernetes is a version of the minor version before that of this tree.
const earlierKubernetes = "v1.36.4"

// earlierRelease returns a folder with the tarballs of an earlier minor version: this tree, taken back by slipway bump.
func earlierRelease(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("SLIPWAY_EARLIER_TARBALLS"); dir != "" {
		return dir
	}
	src, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	tr := tree{dir: filepath.Join(workspace, "earlier-release")}
	run(t, "", nil, "git", "clone", "-q", src.dir, tr.dir).ok(t)
	tr.slipway(t, "bump", earlierKubernetes).ok(t)
	commit := run(t, tr.dir, nil, "git", "rev-parse", "HEAD").ok(t).stdout
	run(t, tr.dir, stampAs(earlierKubernetes, commit), "make", quick).ok(t)
	return tr.path(tars)
}

// serve starts what runs in a cluster while it is upgraded.
func (tr tree) serve(t *testing.T) {
	t.Helper()
	for _, node := range []string{"slipway-1", "slipway-2"} {
		if err := os.MkdirAll(tr.path("_output/cluster/slipway/nodes/"+node+"/tmp/kept"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	tr.kubectl(t, "apply", "-f", filepath.Join(here, "upgrade.yaml")).ok(t)
	for _, workload := range []string{"deployment/served", "daemonset/each", "statefulset/kept"} {
		tr.kubectl(t, "rollout", "status", workload, "--timeout=300s").ok(t)
	}
}

// refusesUpgrades requires that what Kubernetes forbids, and what would lose Pods, is refused before anything changes.
func (tr tree) refusesUpgrades(t *testing.T, next string) {
	t.Helper()
	tr.slipway(t, "cluster", "upgrade").fails(t, 2, "--to names the folder")
	tr.slipway(t, "cluster", "upgrade", "--to", t.TempDir()).fails(t, 1, "there is no release.json")
	text := readFile(filepath.Join(next, "release.json"))
	var described struct{ Version string }
	if err := json.Unmarshal([]byte(text), &described); err != nil {
		t.Fatal(err)
	}
	for version, refusal := range map[string]string{"v1.999.0": "comes first", "v1.2.3": "does not go back",
		"v2.0.0": "the major version differs"} {
		dir := t.TempDir()
		put(t, []byte(strings.ReplaceAll(text, strconv.Quote(described.Version), strconv.Quote(version))), filepath.Join(dir, "release.json"))
		tr.slipway(t, "cluster", "upgrade", "--to", dir).fails(t, 1, "no upgrade leads from", version, refusal)
	}
	tr.kubectl(t, "run", "bare", "--image=example.invalid/web:test").ok(t)
	tr.kubectl(t, "wait", "--for=condition=Ready", "pod/bare", "--timeout=180s").ok(t)
	tr.slipway(t, "cluster", "upgrade", "--to", next).fails(t, 1, "a drain would lose Pods", "default/bare", "--force")
	tr.kubectl(t, "delete", "pod/bare", "--now").ok(t)
	if s := tr.clusterStatus(t); s.State != "ready" {
		t.Errorf("after upgrades that were refused, the cluster is %s", s.State)
	}
}

// podsOf returns the identities of Pods and how often their containers were restarted.
func (tr tree) podsOf(t *testing.T, selector string) string {
	t.Helper()
	return tr.kubectl(t, "get", "pods", "--selector="+selector, "--sort-by=.spec.nodeName", "-o",
		`jsonpath={range .items[*]}{.spec.nodeName} {.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}`).ok(t).stdout
}

// hasRelease requires that everything in a cluster is of the release in a folder.
func (tr tree) hasRelease(t *testing.T, dir string) {
	t.Helper()
	var r struct{ Version string }
	if err := json.Unmarshal([]byte(readFile(filepath.Join(dir, "release.json"))), &r); err != nil {
		t.Fatal(err)
	}
	tag := strings.ReplaceAll(r.Version, "+", "_")
	for _, node := range clusterNodes(tr.clusterStatus(t)) {
		if got := tr.kubectl(t, "get", "node", node.name, "-o", "jsonpath={.status.nodeInfo.kubeletVersion} {.spec.unschedulable}").ok(
			t).stdout; got != r.Version+" " {
			t.Errorf("%s has %q, want %s and Pods", node.name, got, r.Version)
		}
	}
	images := tr.kubectl(t, "-n", "kube-system", "get", "pods", "-o",
		`jsonpath={range .items[*]}{.spec.containers[*].image}{"\n"}{end}`).ok(t).stdout
	seen := 0
	for image := range strings.FieldsSeq(images) {
		name := filepath.Base(image)
		if !strings.HasPrefix(name, "kube-") {
			continue
		}
		if seen++; !strings.HasSuffix(name, ":"+tag) {
			t.Errorf("%s runs, want tag %s", image, tag)
		}
	}
	if seen < 5 { // three of the control plane, and kube-proxy on both nodes
		t.Errorf("there are %d of the components' Pods:\n%s", seen, images)
	}
	if got := tr.kubectl(t, "version", "-o", "json").ok(t).stdout; strings.Count(got, strconv.Quote(r.Version)) != 2 {
		t.Errorf("kubectl and the API server are not both %s: %s", r.Version, got)
	}
}

// A serviceClient asks a Service ten times a second, by the port of one node and the other.
type serviceClient struct {
	stop, ended chan struct{}
	asked       int
	failures    []string
}

func (tr tree) startClient(t *testing.T, port int) *serviceClient {
	t.Helper()
	c := &serviceClient{stop: make(chan struct{}), ended: make(chan struct{})}
	nodes := clusterNodes(tr.clusterStatus(t))
	server := http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}} // no proxy
	get := func(url string) error {
		answer, err := server.Get(url)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err == nil && !strings.HasPrefix(string(text), "slipway-") {
			err = fmt.Errorf("it answers %q", text)
		}
		return err
	}
	go func() {
		defer close(c.ended)
		for ticks := time.Tick(100 * time.Millisecond); ; {
			select {
			case <-c.stop:
				return
			case <-ticks:
			}
			start := time.Now()
			if err := get(fmt.Sprintf("http://%s:%d", nodes[c.asked%len(nodes)].address, port)); err != nil {
				c.failures = append(c.failures, fmt.Sprintf("%s (after %v): %v", start.Format(time.TimeOnly), time.Since(start), err))
			}
			c.asked++
		}
	}()
	return c
}

// end ends the client, and requires that no request has failed.
func (c *serviceClient) end(t *testing.T) {
	t.Helper()
	close(c.stop)
	<-c.ended
	t.Logf("%d requests, %d failures", c.asked, len(c.failures))
	if len(c.failures) > 0 || c.asked < 100 {
		t.Errorf("of %d requests %d failed:\n%s", c.asked, len(c.failures), strings.Join(c.failures, "\n"))
	}
}
