//go:build integration && linux

package integration

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A verifyReport is the JSON of slipway cluster verify.
type verifyReport struct {
	Checks []struct{ Group, Name, Result, Message, Explanation string }
}

// rows returns the results of the checks by GROUP/NAME.
func (r verifyReport) rows() map[string]string {
	rows := map[string]string{}
	for _, c := range r.Checks {
		rows[c.Group+"/"+c.Name] = c.Result
	}
	return rows
}

// verify makes some checks, each within a limit.
func (tr tree) verify(t *testing.T, limit time.Duration, only []string, flags ...string) (verifyReport, result) {
	t.Helper()
	args := []string{"cluster", "verify", "--json", "--timeout", limit.String(), "--only", strings.Join(only, ",")}
	got := tr.slipway(t, append(args, flags...)...)
	var r verifyReport
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil {
		t.Fatalf("%v: %v", err, got)
	}
	return r, got
}

// green requires that checks pass.
func (tr tree) green(t *testing.T, limit time.Duration, only ...string) {
	t.Helper()
	r, got := tr.verify(t, limit, only)
	for _, c := range r.Checks {
		if c.Result != "passed" {
			t.Errorf("%s/%s %s: %s\n%s", c.Group, c.Name, c.Result, c.Message, c.Explanation)
		}
	}
	if got.code != 0 || len(r.Checks) == 0 {
		t.Errorf("exit code %d of %d checks", got.code, len(r.Checks))
	}
}

// A fault breaks a part of a cluster, and returns a function that repairs it.
type fault func(t *testing.T, tr tree) (mend func())

// red requires that each of some checks fails by itself when a part of the cluster is broken, and not because a component does not
// run: they keep going. They pass within the limit otherwise.
func (tr tree) red(t *testing.T, broken fault, limit time.Duration, only ...string) {
	t.Helper()
	mend := broken(t, tr)
	defer mend()
	tr.fails(t, limit, only...)
}

// fails requires that each of some checks fails by itself.
func (tr tree) fails(t *testing.T, limit time.Duration, only ...string) {
	t.Helper()
	r, got := tr.verify(t, limit, only, "--keep-going")
	rows := r.rows()
	for _, name := range only {
		if rows[name] != "failed" {
			t.Errorf("%s %s, want it to fail", name, rows[name])
		}
	}
	if got.code != 1 {
		t.Errorf("exit code %d", got.code)
	}
	for _, c := range r.Checks {
		t.Logf("%s/%s: %s", c.Group, c.Name, firstLine(c.Message))
		if c.Result == "failed" && !strings.Contains(c.Explanation, "kubectl get") {
			t.Errorf("nothing explains %s/%s: %q", c.Group, c.Name, c.Explanation)
		}
		if c.Result == "failed" && c.Group != "kubelet" && c.Group != "own" && c.Name != "kubelet" &&
			!strings.Contains(c.Explanation, "-n kube-system logs -l ") {
			t.Errorf("%s/%s has no log of the component that does its work: %q", c.Group, c.Name, c.Explanation)
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// patient are checks of which each takes half a minute or more on two slow processors. Together they take most of the time of all checks,
// and every minute of that is two of the processors'. What is left has some of every group. The soak tests, and those of upgrades, run all.
var patient = []string{
	"scheduler/scoring", "scheduler/pod-affinity-preferred", "scheduler/node-affinity-operators", "scheduler/missing-node",
	"scheduler/preemption", "scheduler/topology-spread", "scheduler/pod-affinity", "scheduler/pod-anti-affinity",
	"controllers/node-lifecycle", "controllers/deployment-pause", "controllers/statefulset-partition", "controllers/deployment-rollout",
	"controllers/adoption", "controllers/deployment-recreate", "controllers/job-parallelism", "controllers/daemonset",
	"controllers/statefulset-on-delete", "controllers/statefulset-order", "controllers/cronjob", "controllers/replication-controller",
	"controllers/volume-binding", "controllers/scale-down",
	"kubelet/static-pod", "kubelet/memory-pressure", "kubelet/disk-pressure", "kubelet/probes", "kubelet/image-pull", "kubelet/readiness",
	"kubelet/restart-policy", "kubelet/eviction", "kubelet/quality-of-service", "kubelet/memory-limit",
}

// verifySeesWhatIsBroken requires of a cluster of two nodes that all checks but the patient ones pass, and that a few fail when what they
// check is broken: an answer of the API, a component of the control plane, a kubelet. The soak tests do the same with every check.
func (tr tree) verifySeesWhatIsBroken(t *testing.T) {
	check := tr.path("release/checks/nodes.sh") // of a distribution's own
	if err := os.MkdirAll(filepath.Dir(check), 0o755); err != nil {
		t.Fatal(err)
	}
	own := func(text string) {
		put(t, []byte("#!/bin/sh\n"+text), check)
		if err := os.Chmod(check, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	own("kubectl get nodes --no-headers | grep ' Ready ' && kubectl --namespace=\"$NAMESPACE\" get serviceaccount default\n")
	defer os.RemoveAll(filepath.Dir(check))
	all := strings.Fields(tr.slipway(t, "cluster", "verify", "--list").ok(t).stdout)
	if !slices.Contains(all, "own/nodes") {
		t.Errorf("the distribution's own check is not among %q", all)
	}
	all = slices.DeleteFunc(all, ofAddons)
	checks := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(patient, name) })
	if len(checks)+len(patient) != len(all) {
		t.Errorf("of %q, some are no checks", patient)
	}
	t.Logf("without %q: make soak", patient)
	tr.wholeTable(t, checks)
	const limit = 12 * time.Second // most of which a check waits for what does not come
	tr.red(t, lyingServer("patch"), limit, "api/patch")
	own("echo too few nodes; exit 3\n")
	tr.fails(t, limit, "own/nodes")
	own("kubectl get nodes\n")
	tr.failsAtOnce(t)
	tr.red(t, stopped("kubelet"), limit, "kubelet/logs")
	tr.green(t, time.Minute, "api/patch", "scheduler/node-selector", "kubelet/logs", "own/nodes")
	tr.slipway(t, "cluster", "verify", "--only", "sheduler").fails(t, 2, `did you mean scheduler?`)
}

// failsAtOnce requires that all checks of a component that does not run fail without being tried.
func (tr tree) failsAtOnce(t *testing.T) {
	t.Helper()
	mend := withoutPod("kube-scheduler")(t, tr)
	defer mend()
	const limit = 40 * time.Second // api/conflict passes
	r, got := tr.verify(t, limit, []string{"scheduler", "api/conflict"})
	for _, c := range r.Checks {
		want := "passed"
		if c.Group == "scheduler" || c.Name == "kube-scheduler" {
			want = "failed"
		}
		if c.Result != want || c.Group == "scheduler" && c.Message != "not tried: kube-scheduler does not run, see components/kube-scheduler" {
			t.Errorf("%s/%s %s: %s", c.Group, c.Name, c.Result, c.Message)
		}
	}
	if rows := r.rows(); rows["components/kube-scheduler"] == "" || rows["scheduler/taints"] == "" || rows["api/conflict"] == "" {
		t.Errorf("there are rows %v", rows)
	}
	if got.code != 1 || got.took > 4*limit {
		t.Errorf("exit code %d after %v", got.code, got.took)
	}
}

// A cluster without nodes is not verified either: TestControlPlaneAloneNeedsNoRoot.
func TestClusterThatIsNotUpIsNotVerified(t *testing.T) {
	clusterTree(t).slipway(t, "cluster", "verify").fails(t, 1, "there is no such cluster", "slipway cluster up")
}

// A faulty is a fault, and the checks that fail by it within a limit.
type faulty struct {
	name   string
	broken fault
	limit  time.Duration
	checks []string
}

// faultsOfTheAPI are those of the API server, and of the control plane as a whole.
var faultsOfTheAPI = []faulty{
	{"any token is an administrator's", lyingServer("authorization"), time.Minute, []string{"api/authorization"}},
	{"a wrong token is accepted", lyingServer("authentication"), time.Minute, []string{"api/authentication"}},
	{"LimitRanges are forgotten", lyingServer("admission"), time.Minute, []string{"api/admission"}},
	{"wrong values are corrected", lyingServer("validation"), time.Minute, []string{"api/validation"}},
	{"updates are forgotten", lyingServer("storage"), time.Minute, []string{"api/storage"}},
	{"updates never conflict", lyingServer("conflict"), time.Minute, []string{"api/conflict"}},
	{"watches begin anywhere", lyingServer("watch"), time.Minute, []string{"api/watch"}},
	{"lists have the objects of any later version", lyingServer("resource-version"), time.Minute, []string{"api/resource-version"}},
	{"labels select nothing", lyingServer("selectors"), time.Minute, []string{"api/selectors"}},
	{"patches are forgotten", lyingServer("patch"), time.Minute, []string{"api/patch"}},
	{"there are no custom resources", lyingServer("custom-resource"), time.Minute, []string{"api/custom-resource"}},
	{"there is one version only", lyingServer("conversion"), time.Minute, []string{"api/conversion"}},
	{"an apply takes what another manager has", lyingServer("apply-conflict"), time.Minute, []string{"api/apply-conflict"}},
	{"there is no OpenAPI", lyingServer("open-api"), time.Minute, []string{"api/open-api"}},
	{"watches have no bookmarks", lyingServer("bookmarks"), time.Minute, []string{"api/bookmarks"}},
	{"a node is an administrator", lyingServer("node-authorization"), time.Minute, []string{"api/node-authorization"}},
	{"policies are forgotten", lyingServer("admission-policy"), time.Minute, []string{"api/admission-policy"}},
	{"webhooks are forgotten", lyingServer("webhooks"), time.Minute, []string{"api/webhooks"}},
	{"what is in a snapshot was never stored", lyingServer("snapshot"), time.Minute, []string{"api/snapshot"}},
	{"the API server writes Secrets as they are, and no audit log", carelessServer, time.Minute, []string{"api/audit", "api/encryption"}},
	{"metrics.k8s.io is not registered", noMetrics, time.Minute, []string{"api/aggregation", "metrics/nodes", "metrics/pods"}},
	{"/readyz fails", lyingServer("readyz"), time.Minute, []string{"components/kube-apiserver"}},
	{"a Job has more Pods at once than it may", lyingServer("parallelism"), time.Minute, []string{"controllers/job-parallelism"}},
	{"a DaemonSet forgets its node selector", lyingServer("daemonset"), time.Minute, []string{"controllers/daemonset"}},
	{"there is no controller manager", withoutPod("kube-controller-manager"), time.Minute, []string{"components/kube-controller-manager"}},
	{"there is no scheduler", withoutPod("kube-scheduler"), time.Minute, []string{
		"components/kube-scheduler",
		"scheduler/node-selector", "scheduler/node-affinity-required", "scheduler/node-affinity-preferred", "scheduler/node-affinity-operators",
		"scheduler/pod-affinity", "scheduler/pod-anti-affinity", "scheduler/pod-affinity-preferred",
		"scheduler/topology-spread", "scheduler/scoring",
		"scheduler/resource-fit", "scheduler/preemption", "scheduler/taints",
	}},
	{"the scheduler has no plugins", schedulerWithout("NodeAffinity", "InterPodAffinity", "TaintToleration", "NodeResourcesFit",
		"NodeResourcesBalancedAllocation", "PodTopologySpread", "DefaultPreemption"), time.Minute, []string{
		"scheduler/node-selector", "scheduler/node-affinity-required", "scheduler/node-affinity-preferred", "scheduler/node-affinity-operators",
		"scheduler/pod-affinity", "scheduler/pod-anti-affinity", "scheduler/pod-affinity-preferred",
		"scheduler/topology-spread", "scheduler/scoring",
		"scheduler/resource-fit", "scheduler/preemption", "scheduler/taints",
	}},
}

// faultsOfPrograms are those of controllers, of nodes and of add-ons.
var faultsOfPrograms = []faulty{
	{"controllers do not run", withoutControllers("deployment", "statefulset", "daemonset", "cronjob", "garbage-collector", "namespace"),
		75 * time.Second, []string{
			"controllers/deployment-rollout", "controllers/deployment-pause", "controllers/deployment-recreate",
			"controllers/statefulset-order", "controllers/statefulset-partition", "controllers/statefulset-on-delete",
			"controllers/daemonset", "controllers/daemonset-each-node", "controllers/cronjob", "controllers/garbage-collection",
			"controllers/namespace-deletion",
		}},
	{"other controllers do not run", withoutControllers("replicaset", "job"), time.Minute, []string{
		"controllers/replicaset", "controllers/scale-down", "controllers/adoption", "controllers/job", "controllers/job-parallelism",
	}},
	{"controllers of policies do not run", withoutControllers("replicationcontroller", "resourcequota", "disruption",
		"persistentvolume-binder",
		"certificatesigningrequest-signing", "ttl-after-finished", "pod-garbage-collector", "taint-eviction", "horizontal-pod-autoscaler"),
		2 * time.Minute, []string{
			"controllers/replication-controller", "controllers/quota", "controllers/disruption-budget", "controllers/volume-binding",
			"controllers/certificates",
			"controllers/ttl-after-finished", "scheduler/missing-node", "scheduler/taint-eviction", "metrics/autoscaling",
		}},
	{"the node lifecycle controller does not run", withoutControllers("node-lifecycle"), 2 * time.Minute,
		[]string{"controllers/node-lifecycle"}},
	{"the leader is not elected", changedManager("--leader-elect=true", "--leader-elect=false"), time.Minute,
		[]string{"controllers/leader-election"}},
	{"kubelets are stopped", stopped("kubelet"), time.Minute, []string{
		"components/kubelet", "scheduler/node-name", "metrics/endpoints", "kubelet/dead-containers", "kubelet/logs", "kubelet/exec",
		"kubelet/port-forward", "kubelet/liveness",
		"kubelet/readiness", "kubelet/volumes",
		"kubelet/memory-limit", "kubelet/eviction", "kubelet/static-pod", "services/environment", "scheduler/out-of-cpu",
		"kubelet/probes", "kubelet/restart-policy", "kubelet/init-containers", "kubelet/quality-of-service", "kubelet/image-pull",
		"kubelet/node-status",
	}},
	{"requests and limits are forgotten", lyingServer("resources"), 3 * time.Minute, []string{"kubelet/memory-pressure"}},
	{"a kubelet evicts nothing", carelessKubelet, 2 * time.Minute, []string{"kubelet/disk-pressure"}},
	{"a kubelet is configured otherwise", otherConfiguration, time.Minute, []string{"kubelet/configuration"}},
	{"kube-proxies are stopped", stopped("kube-proxy"), time.Minute, []string{
		"components/kube-proxy", "services/cluster-ip", "services/node-port", "services/session-affinity",
	}},
	{"there is no DNS", noDNS, time.Minute, []string{"components/coredns", "services/dns", "services/headless", "services/external-name"}},
	{"there is no metrics-server", noMetricsServer, time.Minute, []string{"components/metrics-server"}},
	{"there is no ingress controller", noIngressController, time.Minute, []string{"components/traefik", "services/ingress"}},
	{"there is no cloud controller manager", noCloudManager, time.Minute,
		[]string{"components/cloud-controller-manager", "services/load-balancer"}},
	{"there is no addon for storage", noStorage, time.Minute, []string{"components/storage"}},
	{"volumes are not made", stopped("csi-provisioner"), time.Minute, []string{
		"storage/provisioning", "storage/attachment", "storage/expansion", "storage/snapshot", "storage/reclaim", "storage/locality",
	}},
	{"volumes are not attached", stopped("csi-attacher"), time.Minute, []string{"storage/attachment"}},
	{"volumes are not expanded", stopped("csi-resizer"), time.Minute, []string{"storage/expansion"}},
	{"snapshots are not taken", stopped("csi-snapshotter"), time.Minute, []string{"storage/snapshot"}},
	{"volumes outlive their claims", retainingClass, time.Minute, []string{"storage/reclaim"}},
	{"Pods are placed on cordoned nodes", schedulerWithout("NodeUnschedulable", "TaintToleration"), time.Minute,
		[]string{"storage/locality"}},
	{"there is no kube-proxy", noProxy, time.Minute, []string{"services/proxy-iptables", "services/proxy-nftables"}},
}

func TestEachCheckOfTheAPISeesWhatIsBroken(t *testing.T) {
	rare(t, "the faults take half an hour")
	seesWhatIsBroken(t, faultsOfTheAPI)
}

func TestEachCheckOfProgramsSeesWhatIsBroken(t *testing.T) {
	rare(t, "the faults take half an hour")
	seesWhatIsBroken(t, faultsOfPrograms)
}

// seesWhatIsBroken requires of a cluster of two nodes that all checks pass, that some fail when what they check is broken, and that nothing
// stays broken.
func seesWhatIsBroken(t *testing.T, faults []faulty) {
	t.Helper()
	needNodes(t)
	tr := clusterTree(t)
	tr.up(t, "--nodes", "2").ok(t)
	tr.slipway(t, "cluster", "add", "storage", "--from", testRelease(t)).ok(t)
	checks := strings.Fields(tr.slipway(t, "cluster", "verify", "--list").ok(t).stdout)
	for _, tt := range faults {
		t.Run(tt.name, func(t *testing.T) { tr.red(t, tt.broken, tt.limit, tt.checks...) })
	}
	tr.wholeTable(t, checks)
}

// Each check has a fault in the soak test.
func TestEachCheckHasAFault(t *testing.T) {
	treeLane.join(t)
	// see TestClusterWorksWithCgroupVersion2, takesHollowNodes; api/fips has servers that are wrong in its own test
	seen := []string{"api/fips", "services/proxy-ipvs", "scale/nodes", "scale/pods", "scale/memory"}
	for _, tt := range slices.Concat(faultsOfTheAPI, faultsOfPrograms) {
		seen = append(seen, tt.checks...)
	}
	for _, check := range strings.Fields(clusterTree(t).slipway(t, "cluster", "verify", "--list").ok(t).stdout) {
		if !slices.Contains(seen, check) {
			t.Errorf("no fault has broken what %s checks", check)
		}
	}
}

// wholeTable requires that all checks pass on two nodes, except those of what the cluster or this kernel lacks, which are skipped by
// name, and that they leave nothing.
func (tr tree) wholeTable(t *testing.T, checks []string) {
	t.Helper()
	got := tr.slipway(t, "cluster", "verify", "--only", strings.Join(checks, ","), "--junit", tr.path("verify.xml"))
	var junit struct {
		Tests int `xml:"tests,attr"`
		Cases []struct {
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal([]byte(readFile(tr.path("verify.xml"))), &junit); err != nil || junit.Tests != len(checks) {
		t.Errorf("JUnit: %v, %d of %d checks", err, junit.Tests, len(checks))
	}
	for _, c := range junit.Cases { // the output may be too long to be printed as a whole
		if c.Failure != nil {
			t.Errorf("%s: %s", c.Name, c.Failure.Message)
		}
	}
	got.ok(t)
	var skipped []string
	for line := range strings.Lines(got.stdout) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[0] == "skipped" {
			skipped = append(skipped, fields[1]+"/"+fields[2])
			if fields[4] != "needs" {
				t.Errorf("it does not say what the check needs: %s", line)
			}
		}
	}
	want := fmt.Sprintf("%d passed, 0 failed, %d skipped\n", len(checks)-len(skipped), len(skipped))
	slices.Sort(skipped)
	known := slices.DeleteFunc(slices.Clone(skipped), func(name string) bool {
		return name == "api/fips" || name == "services/proxy-ipvs" || strings.HasPrefix(name, "scale/") // takesHollowNodes
	})
	if !strings.HasSuffix(got.stdout, want) || len(known) > 0 {
		t.Errorf("skipped %q: %s", skipped, got.stdout)
	}
	t.Logf("%v: %s", got.took, want)
	for _, what := range []string{"namespaces", "crds", "priorityclasses"} {
		tr.eventually(t, func() string {
			left := tr.kubectl(t, "get", what, "-o", "name").ok(t).stdout
			if strings.Contains(left, "verify-") {
				return left
			}
			return ""
		})
	}
	if nodes := tr.kubectl(t, "get", "nodes", "-o", "yaml").ok(t).stdout; strings.Contains(nodes, "verify") {
		t.Errorf("the checks left something in the nodes:\n%s", nodes)
	}
}

// eventually waits until nothing is wrong. A container that crashed is restarted after five minutes at the latest.
func (tr tree) eventually(t *testing.T, wrong func() string) {
	t.Helper()
	var last string
	for deadline := time.Now().Add(6 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if last = wrong(); last == "" {
			return
		}
	}
	t.Fatalf("after six minutes still: %s", last)
}
