//go:build integration && linux

package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// exampleRelease makes a release of the operator in examples alone, as docs/examples.md adds it, with the programs that run as Pods
// in its image, and signs and verifies it. It returns the tree.
var exampleRelease = sync.OnceValues(func() (tree, error) {
	src, err := sources()
	if err != nil {
		return tree{}, err
	}
	bin, err := slipwayBinary()
	if err != nil {
		return tree{}, err
	}
	doc := readFile(src.path("docs/examples.md"))
	add := regexp.MustCompile("(?s)```sh\n(\\(cd cmd && go mod edit.*?)```").FindStringSubmatch(doc)
	lines := regexp.MustCompile(`(?m)^- \{name: site-operator, .*\}$`).FindAllString(doc, -1)
	if add == nil || len(lines) != 2 {
		return tree{}, errors.New("docs/examples.md does not say how to release the operator")
	}
	binary, image := lines[0], strings.Replace(lines[1], "binary: site-operator,", "binary: site-operator, with: [clients, in-cluster],", 1)
	tr := tree{dir: filepath.Join(workspace, "example-release")}
	script := fmt.Sprintf(`set -eu
		src=%q slipway=%q
		mkdir cmd images release
		cp -R "$src"/LICENSE "$src"/README.md "$src"/docs "$src"/examples .
		cp "$src"/cmd/go.mod "$src"/cmd/go.sum cmd
		cp -R "$src"/images/static images
		mkdir -p release/manifests/addons
		%s
		{
			sed '/^binaries:/,$d' "$src"/release/release.yaml
			cat <<'END'
binaries:
%s
- {name: clients, package: slipway.build/examples/clients, only: *server}
- {name: in-cluster, package: k8s.io/client-go/examples/in-cluster-client-configuration, only: *server}
images:
%s
registry: registry.example.com
END
		} >release/release.yaml
		echo /_output/ >.gitignore
		git init -q
		git add -A
		git -c user.name=slipway -c user.email=slipway@example.invalid -c commit.gpgsign=false commit -q -m Operator
		"$slipway" release --quick
		"$slipway" keys new ../example
		"$slipway" sign --key ../example.key
		"$slipway" verify _output/release-tars --key ../example.pub
		"$slipway" verify oci:_output/release-images/oci-signed --key ../example.pub
	`, src.dir, bin, add[1], binary, image)
	return tr, madeBeside("a release of the operator", command("", []string{"COSIGN_PASSWORD=secret"}, "bash", "-c",
		fmt.Sprintf("mkdir %q && cd %q\n", tr.dir, tr.dir)+script))
})

// examplePrograms compiles the other programs of examples, and client-go's own, and returns their folder.
var examplePrograms = sync.OnceValues(func() (string, error) {
	src, err := sources()
	dir := filepath.Join(workspace, "examples")
	if err != nil {
		return "", err
	}
	return dir, madeBeside("the programs of examples", command(src.path("examples"), likeRelease, "go", "build", "-o", dir+"/",
		"./clients", "./controller", "k8s.io/client-go/examples/..."))
})

// What is generated in examples is up to date, and its tests pass, as do client-go's. Vet and staticcheck find nothing; the latter is not
// asked about generated clients.
func TestExamplesAreWhole(t *testing.T) {
	lateLane.join(t)
	large(t, "controller-gen, lints and fake clients")
	tr := clone(t).with(likeRelease...)
	dir := tr.path("examples")
	run(t, dir, tr.env, "go", "vet", "./...").ok(t)
	packages := slices.DeleteFunc(strings.Fields(run(t, dir, tr.env, "go", "list", "./...").ok(t).stdout), func(pkg string) bool {
		return strings.Contains(pkg, "/generated/")
	})
	staticcheck := strings.TrimSpace(run(t, tr.dir, tr.env, "go", "tool", "-n", "staticcheck").ok(t).stdout)
	run(t, dir, tr.env, staticcheck, packages...).ok(t)
	run(t, dir, tr.env, "go", "test", "./...", "k8s.io/client-go/examples/fake-client").ok(t)
	tr.remove(t, "examples/operator/manifests/examples.slipway.build_sites.yaml")
	run(t, dir, tr.env, "go", "generate", "./...").ok(t)
	if changed := run(t, tr.dir, nil, "git", "status", "--porcelain").ok(t).stdout; changed != "" {
		t.Errorf("not as generated:\n%s", changed)
	}
}

// runsExamples requires that the programs of examples do on a cluster what they are for.
func (tr tree) runsExamples(t *testing.T) {
	programs, err := examplePrograms()
	if err != nil {
		t.Fatal(err)
	}
	config := strings.TrimSpace(tr.slipway(t, "cluster", "kubeconfig").ok(t).stdout)
	direct := tr.with("HTTPS_PROXY=", "https_proxy=")
	program := func(name string, args ...string) *process {
		return direct.start(t, filepath.Join(programs, name), append([]string{"--kubeconfig", config}, args...)...)
	}
	said := func(p *process) string { return p.stdout() + readFile(p.err) }
	says := func(p *process, text string) {
		t.Helper()
		if !p.until(t, func() bool { return strings.Contains(said(p), text) }) {
			t.Fatalf("%s does not say %q:\n%s", p.cmd, text, said(p))
		}
	}

	// Of two controllers, one works; when it is killed, the other one goes on.
	tr.kubectl(t, "create", "configmap", "colors", "--from-literal=sky=blue").ok(t)
	tr.kubectl(t, "label", "configmap", "colors", "examples.slipway.build/digest=true").ok(t)
	digest := func() string {
		return tr.kubectl(t, "get", "configmap", "colors", "-o",
			`jsonpath={.metadata.annotations.examples\.slipway\.build/sha256}`).ok(t).stdout
	}
	changes := func(before string) (after string) {
		t.Helper()
		tr.eventually(t, func() string {
			if after = digest(); after == before {
				return "the digest is " + before
			}
			return ""
		})
		return after
	}
	first := program("controller", "--identity", "first")
	says(first, `"Working" identity="first"`)
	second := program("controller", "--identity", "second")
	says(second, `leader="first"`)
	blue := changes("")
	first.kill(t)
	tr.kubectl(t, "patch", "configmap", "colors", "--patch", `{"data": {"sky": "gray"}}`).ok(t)

	clientsSay(t, program("clients").wait(t).ok(t).stdout)
	tr.runsUpstreamsExamples(t, program, says)
	tr.runsOperator(t)

	if gray := changes(blue); len(gray) != 64 {
		t.Errorf("the digest is %q", gray)
	}
	says(second, `"Working" identity="second"`)
	if events := tr.kubectl(t, "get", "events", "--field-selector", "reason=Digested,involvedObject.name=colors", "-o",
		"name").ok(t).stdout; events == "" {
		t.Error("the controllers have written no Event")
	}
	tr.kubectl(t, "delete", "configmap", "colors").ok(t)
}

// clientsSay requires what the program clients prints, in the cluster and out of it.
func clientsSay(t *testing.T, out string) {
	t.Helper()
	for _, want := range []string{
		`typed: updated example-\w+-second`,
		`REST: example-\w+-first is blue, as application/vnd.kubernetes.protobuf`,
		`discovery: v1\.\S+ serves [1-9]\d+ resources`,
		`dynamic: a ConfigMap is one of configmaps, and example-\w+-second is red`,
		`list of the newest version: 2`,
		`list of any version \("0"\): [012]`,
		`list of exactly the first's version: 1`,
		`list not older than the second's version: 2`,
		`list not older than a future version: refused: .*Too large resource version.*`,
		`field selector metadata.name=example-\w+-first: example-\w+-first`,
		`field selector metadata.name!=example-\w+-first: example-\w+-second`,
		`field selector data.color=blue: refused: "data.color" is not a known field selector.*`,
	} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(out) {
			t.Errorf("clients do not print %q:\n%s", want, out)
		}
	}
}

// runsUpstreamsExamples does so with those of client-go that are for a cluster, except the one that is for Pods.
func (tr tree) runsUpstreamsExamples(t *testing.T, program func(name string, args ...string) *process, says func(*process, string)) {
	for name, want := range map[string]string{
		"out-of-cluster-client-configuration": " pods in the cluster",
		"workqueue":                           "Pod default/mypod does not exist anymore",
		"leader-election":                     "Controller loop...",
	} {
		var args []string
		if name == "leader-election" {
			args = []string{"-lease-lock-namespace=default", "-lease-lock-name=example"}
		}
		p := program(name, args...)
		says(p, want)
		p.kill(t)
	}
	for _, name := range []string{"create-update-delete-deployment", "dynamic-create-update-delete-deployment"} {
		p := program(name) // without a terminal, nobody has to press Return
		if got := p.wait(t).ok(t); !strings.Contains(got.stdout, "Updated deployment...\n") ||
			!strings.Contains(got.stdout, "Deleted deployment.\n") {
			t.Errorf("%s: %v", name, got)
		}
		tr.kubectl(t, "wait", "deployment/demo-deployment", "--for=delete", "--timeout=60s").ok(t)
	}
}

// runsOperator requires of the operator's release that its image runs in the cluster, and keeps a Site though a Pod of it is killed.
func (tr tree) runsOperator(t *testing.T) {
	r, err := exampleRelease()
	if err != nil {
		t.Fatal(err)
	}
	loaded := strings.Fields(tr.slipway(t, "cluster", "load", r.path(images+"/"+runtime.GOARCH+"/site-operator.tar")).ok(t).stdout)
	run(t, tr.dir, nil, "tar", "-xzf", r.path(tars+"/kubernetes-manifests.tar.gz")).ok(t)
	manifests := tr.path("kubernetes/manifests/addons/site-operator")
	defer func() {
		if t.Failed() {
			t.Log(tr.kubectl(t, "-n", "site-operator", "logs", "-l", "app=site-operator", "--prefix", "--tail=50"))
		}
	}()
	tr.kubectl(t, "apply", "-f", manifests).ok(t)
	tr.kubectl(t, "wait", "crd/sites.examples.slipway.build", "--for=condition=Established", "--timeout=60s").ok(t)
	tr.kubectl(t, "-n", "site-operator", "rollout", "status", "deployment/site-operator", "--timeout=180s").ok(t)

	const site = `{"apiVersion": "examples.slipway.build/v1alpha1", "kind": "Site", "metadata": {"name": "%s"},
		"spec": {"image": "registry.k8s.io/pause:%s", "replicas": %d}}`
	apply := func(name string, replicas int) result {
		put(t, fmt.Appendf(nil, site, name, addonImages["pause"], replicas), tr.path("site.json"))
		return tr.kubectl(t, "apply", "-f", tr.path("site.json"))
	}
	ready := func(replicas int) {
		t.Helper()
		tr.eventually(t, func() string {
			var s struct {
				Metadata struct{ Generation int64 }
				Status   struct {
					ObservedGeneration int64
					ReadyReplicas      int
					Conditions         []struct{ Type, Status string }
				}
			}
			if err := json.Unmarshal([]byte(tr.kubectl(t, "get", "site", "garden", "-o", "json").ok(t).stdout), &s); err != nil {
				t.Fatal(err)
			}
			if c := s.Status.Conditions; s.Status.ObservedGeneration != s.Metadata.Generation || s.Status.ReadyReplicas != replicas ||
				len(c) != 1 || c[0].Type != "Ready" || c[0].Status != "True" {
				return fmt.Sprintf("the Site is %+v", s)
			}
			return ""
		})
	}
	apply("many", 11).fails(t, 1, "spec.replicas", "should be less than or equal to 10")
	apply("garden", 1).ok(t)
	ready(1)
	leader := func() string {
		holder := tr.kubectl(t, "-n", "site-operator", "get", "lease", "site-operator", "-o", "jsonpath={.spec.holderIdentity}").ok(t).stdout
		pod, _, _ := strings.Cut(holder, "_")
		return pod
	}
	killed := leader()
	tr.kubectl(t, "-n", "site-operator", "delete", "pod", killed, "--force", "--grace-period=0").ok(t)
	apply("garden", 2).ok(t)
	ready(2)
	if now := leader(); now == killed || now == "" {
		t.Errorf("after %q was killed, the leader is %q", killed, now)
	}
	tr.kubectl(t, "delete", "deployment", "garden").ok(t)
	tr.kubectl(t, "wait", "deployment/garden", "--for=create", "--timeout=60s").ok(t)
	ready(2)
	tr.kubectl(t, "delete", "site", "garden", "--cascade=foreground", "--timeout=60s").ok(t)
	tr.kubectl(t, "get", "deployment", "garden").fails(t, 1, "not found")

	// The image has a program for Pods.
	here, err := filepath.Abs("../../examples/clients/pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pod := strings.ReplaceAll(readFile(here), "__REGISTRY__/site-operator:__VERSION__", loaded[len(loaded)-1])
	put(t, []byte(pod), tr.path("pod.yaml"))
	tr.kubectl(t, "apply", "-f", tr.path("pod.yaml")).ok(t)
	tr.kubectl(t, "wait", "pod/clients", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=120s").ok(t)
	clientsSay(t, tr.kubectl(t, "logs", "clients").ok(t).stdout)
	tr.kubectl(t, "delete", "-f", tr.path("pod.yaml"), "--now").ok(t)

	// client-go's lists the Pods of all namespaces.
	tr.kubectl(t, "create", "clusterrolebinding", "in-cluster", "--clusterrole=view", "--serviceaccount=default:default").ok(t)
	tr.kubectl(t, "run", "in-cluster", "--image", loaded[len(loaded)-1], "--command", "--", "/usr/local/bin/in-cluster").ok(t)
	tr.eventually(t, func() string {
		if got := tr.kubectl(t, "logs", "in-cluster"); !strings.Contains(got.stdout, " pods in the cluster\n") {
			return got.String()
		}
		return ""
	})
	tr.kubectl(t, "delete", "pod/in-cluster", "clusterrolebinding/in-cluster", "--now").ok(t)
	tr.kubectl(t, "delete", "-f", manifests, "--timeout", time.Minute.String()).ok(t)
}
