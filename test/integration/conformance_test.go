//go:build integration && linux

package integration

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// testTarball has the suite and the images for its Pods.
var testTarball = "kubernetes-test-linux-" + runtime.GOARCH + ".tar.gz"

// testRelease returns a folder with the tarballs for this machine, including the test set's: SLIPWAY_TARBALLS if it has them.
func testRelease(t *testing.T) string {
	t.Helper()
	large(t, "the test set")
	dir, err := sharedTestRelease()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var sharedTestRelease = sync.OnceValues(func() (string, error) {
	if dir := givenTestRelease(); dir != "" {
		return dir, nil
	}
	r, err := sharedRelease()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(workspace, "test-release")
	if err := made("a copy of the release", command("", nil, "cp", "-a", "--reflink=auto", r.dir, dir)); err != nil {
		return "", err
	}
	bin, err := slipwayBinary()
	if err != nil {
		return "", err
	}
	release := command(dir, nil, bin, "release", "--addons", "--inputs=false", "--platform", "linux/"+runtime.GOARCH)
	if err := madeBeside("the release with the test set and addons", release); err != nil {
		return "", err
	}
	return keepTarballs(dir)
})

// givenTestRelease returns SLIPWAY_TARBALLS if that has the test set.
func givenTestRelease() string {
	dir := os.Getenv("SLIPWAY_TARBALLS")
	if _, err := os.Stat(filepath.Join(dir, testTarball)); dir == "" || err != nil {
		return ""
	}
	return dir
}

// startReleases makes the release with the test set, that of an operator, and the next release, in the background: a cluster boots and is
// verified before they are needed.
func startReleases() {
	go func() { // who needs them returns the errors
		if !fromCold() {
			_, _ = sharedTestRelease()
		}
		_, _ = exampleRelease()
		_, _ = examplePrograms()
		_, _ = sharedNextRelease()
	}()
}

// keepTarballs removes all that a tree has made except its tarballs, since several trees would fill a disk. It returns their folder.
func keepTarballs(dir string) (string, error) {
	output := filepath.Join(dir, "_output")
	made, err := os.ReadDir(output)
	for _, e := range made {
		if e.Name() != filepath.Base(tars) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(output, e.Name())))
		}
	}
	return filepath.Join(dir, tars), err
}

// The images in the test tarball have the names by which the suite in it refers to them.
func TestTestImagesHaveTheSuitesNames(t *testing.T) {
	clusterLane.join(t)
	dir := t.TempDir()
	run(t, dir, nil, "tar", "-xzf", filepath.Join(testRelease(t), testTarball), "kubernetes/test/bin/e2e.test", "kubernetes/test/images").ok(t)
	wanted := strings.Fields(run(t, dir, nil, filepath.Join(dir, "kubernetes/test/bin/e2e.test"), "--list-images").ok(t).stdout)
	files, err := filepath.Glob(filepath.Join(dir, "kubernetes/test/images/*.tar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no images (%v)", err)
	}
	for _, file := range files {
		if slices.Contains([]string{"kubemark.tar", "conformance.tar"}, filepath.Base(file)) {
			continue // for hollow nodes, and with the suite itself
		}
		if names := repoTags(t, file); !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(wanted, name) }) {
			t.Errorf("the suite wants none of %q", names)
		}
	}
	// These two are in the server tarball, under kubeadm's names.
	for _, name := range []string{"registry.k8s.io/pause:" + addonImages["pause"], "registry.k8s.io/etcd:" + addonImages["etcd"]} {
		if !slices.Contains(wanted, name) {
			t.Errorf("the suite does not want %s", name)
		}
	}
}

// Varied specs that take seconds: some of each group, and with each image that starts quickly. CI runs the first dozen.
var (
	oneDozen = []string{
		`\[sig-api-machinery\] Watchers should observe add, update, and delete watch notifications on configmaps`,
		`\[sig-api-machinery\] ValidatingAdmissionPolicy .* should support ValidatingAdmissionPolicyBinding API operations`,
		`\[sig-apps\] Job should delete a job`,
		`\[sig-apps\] ReplicaSet should serve a basic image on each replica with a public image`,
		`\[sig-architecture\] Conformance Tests should have at least two untainted nodes`,
		`\[sig-auth\] ServiceAccounts should mount an API token into pods`,
		`\[sig-cli\] Kubectl client Kubectl version should check is all data is printed`,
		`\[sig-instrumentation\] Events should manage the lifecycle of an event`,
		`\[sig-network\] Services should serve a basic endpoint from pods`,
		`\[sig-node\] Containers should use the image defaults if command and args are blank`,
		`\[sig-scheduling\] SchedulerPredicates .*validates that NodeSelector is respected if matching`,
		`\[sig-storage\] ConfigMap should be consumable from pods in volume \[`,
	}
	anotherDozen = []string{
		`\[sig-api-machinery\] Garbage collector should delete pods created by rc when not orphaning`,
		`\[sig-api-machinery\] AggregatedDiscovery should support raw aggregated discovery endpoint Accept headers`,
		`\[sig-apps\] Deployment RecreateDeployment should delete old pods and create new ones`,
		`\[sig-apps\] DisruptionController should observe PodDisruptionBudget status updated`,
		`\[sig-auth\] Certificates API .* should support CSR API operations`,
		`\[sig-cli\] Kubectl client Kubectl describe should check if kubectl describe prints relevant information for rc and pods`,
		`\[sig-network\] DNS should provide DNS for the cluster \[Conformance`,
		`\[sig-network\] Services should complete a service status lifecycle`,
		`\[sig-network\] Proxy version v1 A set of valid responses are returned for both pod and service ProxyWithPath`,
		`\[sig-node\] Security Context .* should not allow privilege escalation when false`,
		`\[sig-node\] Pods should be submitted and removed`,
		`\[sig-storage\] EmptyDir wrapper volumes should not conflict`,
	}
)

// TestVariedSpecsPass runs the dozen that CI leaves out.
func TestVariedSpecsPass(t *testing.T) {
	rare(t, "another cluster takes minutes")
	needNodes(t)
	tr := clusterTree(t)
	tr.up(t, "--nodes", "2").ok(t)
	tr.passes(t, "conformance", anotherDozen)
}

// runsConformanceSpecs requires of a cluster of two nodes that some specs pass.
func (tr tree) runsConformanceSpecs(t *testing.T) {
	tr.slipway(t, "cluster", "conformance", "--from", testRelease(t), "--focus", "no such spec").fails(t, 2, "no spec matches")
	tr.slipway(t, "cluster", "conformance", "--from", t.TempDir()).fails(t, 1, "there is no release.json in ", "slipway release --platform")

	tr.passes(t, "conformance", oneDozen) // with a [Serial] one
	tr.passes(t, "e2e", []string{`\[sig-cli\] Kubectl client Kubectl create quota should create a quota without scopes`})
	tr.runsConformanceInAPod(t)
}

// runsConformanceInAPod requires that upstream's image runs a spec, and leaves the results that its users collect. The registry has the
// specs' images.
func (tr tree) runsConformanceInAPod(t *testing.T) {
	dir := t.TempDir()
	const archive = "kubernetes/test/images/conformance.tar"
	run(t, dir, nil, "tar", "-xzf", filepath.Join(testRelease(t), testTarball), archive).ok(t)
	tr.slipway(t, "cluster", "load", filepath.Join(dir, archive)).ok(t)
	names := repoTags(t, filepath.Join(dir, archive))
	tr.write(t, "conformance.yaml", strings.ReplaceAll(conformancePod, "IMAGE", names[len(names)-1]))
	tr.kubectl(t, "apply", "-f", tr.path("conformance.yaml")).ok(t)
	defer tr.kubectl(t, "delete", "namespace", "conformance")
	defer tr.kubectl(t, "delete", "clusterrolebinding", "conformance")
	tr.eventually(t, func() string {
		phase := tr.kubectl(t, "--namespace=conformance", "get", "pod", "e2e", "-o", "jsonpath={.status.phase}").ok(t).stdout
		if phase == "Succeeded" || phase == "Failed" {
			return ""
		}
		return "the Pod is " + phase
	})
	log := tr.kubectl(t, "--namespace=conformance", "logs", "e2e", "--all-containers")
	for _, want := range []string{"1 Passed | 0 Failed", "/tmp/results/e2e.tar.gz\n", "e2e.log\n", "junit_01.xml\n"} {
		if !strings.Contains(log.stdout, want) {
			t.Errorf("lacks %q: %v", want, log)
		}
	}
}

// conformancePod runs a spec, and then lists the results.
const conformancePod = `
apiVersion: v1
kind: Namespace
metadata: {name: conformance}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: conformance}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: default, namespace: conformance}]
---
apiVersion: v1
kind: Pod
metadata: {name: e2e, namespace: conformance}
spec:
  restartPolicy: Never
  initContainers:
  - name: specs
    image: IMAGE
    env: [{name: E2E_FOCUS, value: '\[sig-instrumentation\] Events should manage the lifecycle of an event'}]
    volumeMounts: [{name: results, mountPath: /tmp/results}]
  containers:
  - name: results
    image: registry.k8s.io/e2e-test-images/busybox:1.37.0-2
    command: [sh, -c, 'cat /tmp/results/done; echo; tar -tzf /tmp/results/e2e.tar.gz']
    volumeMounts: [{name: results, mountPath: /tmp/results}]
  volumes: [{name: results, emptyDir: {}}]
`

// passes requires that specs of a command pass, two at a time, and [Serial] ones by themselves.
func (tr tree) passes(t *testing.T, command string, specs []string) {
	t.Helper()
	args := []string{"cluster", command, "--from", testRelease(t), "--procs", "2", "--json", "--junit", tr.path("conformance.xml")}
	for _, spec := range specs {
		args = append(args, "--focus", spec)
	}
	got := tr.slipway(t, args...)
	var report struct {
		Specs       []struct{ Name, Result, Message string }
		Substitutes []struct{ Name, Title string }
	}
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil {
		t.Fatalf("%v: %v", err, got)
	}
	for _, s := range report.Specs {
		if s.Result != "passed" {
			t.Errorf("%s: %s\n%s", s.Result, s.Name, s.Message)
		}
	}
	if got.code != 0 || len(report.Specs) != len(specs) {
		t.Errorf("%d specs, want %d: %v", len(report.Specs), len(specs), got)
	}
	var junit struct {
		Suite struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(tr.read(t, "conformance.xml")), &junit); err != nil || junit.Suite.Tests != len(specs) ||
		junit.Suite.Failures != 0 {
		t.Errorf("JUnit: %v, %+v", err, junit)
	}
	if len(report.Substitutes) < 4 || !strings.HasPrefix(report.Substitutes[0].Name, "registry.k8s.io/e2e-test-images/") ||
		report.Substitutes[0].Title == "" {
		t.Errorf("the substituted images are %+v", report.Substitutes)
	}
	t.Logf("%d specs in %v", len(report.Specs), got.took)
	tr.eventually(t, func() string {
		return strings.TrimSpace(tr.kubectl(t, "get", "namespaces", "--selector=e2e-run", "-o", "name").ok(t).stdout)
	})
}
