package verify

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/child"
)

// What a kubelet does for the Pods of its node.
var kubeletChecks = group("kubelet", []string{scheduler, kubelet},
	Check{Name: "eviction", Long: true, run: eviction},
	Check{Name: "logs", run: logs},
	Check{Name: "dead-containers", run: deadContainers},
	Check{Name: "exec", run: execute},
	Check{Name: "port-forward", run: portForward},
	Check{Name: "liveness", run: liveness},
	Check{Name: "readiness", run: readiness},
	Check{Name: "probes", run: probes},
	Check{Name: "restart-policy", run: restartPolicies},
	Check{Name: "init-containers", run: initContainers},
	Check{Name: "quality-of-service", run: qualityOfService},
	Check{Name: "image-pull", run: imagePull},
	Check{Name: "node-status", run: nodeStatus},
	Check{Name: "volumes", run: volumes},
	Check{Name: "memory-limit", run: memoryLimit},
	Check{Name: "static-pod", Long: true, run: staticPod}, // a kubelet looks after each Pod every 60 to 90 s
	Check{Name: "configuration", run: configuration},
	Check{Name: "memory-pressure", Alone: true, Limit: 5 * time.Minute, run: memoryPressure},
	Check{Name: "disk-pressure", Alone: true, Limit: 5 * time.Minute, run: diskPressure},
)

// The log has the output of a container, and that of its previous run.
func logs(e *env) {
	e.apply(pod("web", "serve") + pod("again", "read /etc/hostname"))
	e.ready("web")
	says := func(want string, args ...string) {
		e.until(func() {
			said := e.kubectl(append([]string{"logs"}, args...)...)
			if strings.TrimSpace(said) != want {
				fail("kubectl logs %s prints %q, want %q", strings.Join(args, " "), said, want)
			}
		})
	}
	says("serving at [::]:8080", "web")
	says("again", "--previous", "again")
}

// Of the containers of a Pod that have ended, a kubelet keeps the last one, and deletes the others with their logs.
func deadContainers(e *env) {
	node := e.lastNode()
	e.apply(pod("again", "read /etc/hostname", spec("nodeName: "+node)))
	e.wait("jsonpath={.metadata.uid}", "pod/again")
	folder := e.NodeFile(node, "var-log", "pods", e.namespace+"_again_"+e.get("pod/again", "{.metadata.uid}"), "main")
	first := filepath.Join(folder, "0.log")
	e.until(func() { must(os.Stat(first)) })
	e.until(func() {
		if _, err := os.Stat(first); !errors.Is(err, os.ErrNotExist) {
			fail("%s is still there (%v) after %s restarts", first, err, e.get("pod/again", "{.status.containerStatuses[0].restartCount}"))
		}
	})
	e.until(func() {
		if said := e.kubectl("logs", "again", "--previous"); strings.TrimSpace(said) != "again" {
			fail("the log of the last container that has ended is %q", said)
		}
	})
}

// A command in a container reads standard input, and its output and exit code come back.
func execute(e *env) {
	e.apply(pod("web", "wait"))
	e.ready("web")
	out := e.feed("typed", "exec", "--stdin", "web", "--", "/probe", "read", "-")
	if out != "typed" {
		fail("the command read %q from standard input, want %q", out, "typed")
	}
	err := attempt(func() { e.exec("web", "exit", "7") })
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		fail("a command that exits with 7 ends with %w", err)
	}
}

// A port of this machine leads to one of a Pod.
func portForward(e *env) {
	e.apply(pod("web", "serve 127.0.0.1:8080")) // out of reach for all others
	e.ready("web")
	address, stop := e.forward("web", "8080")
	defer stop()
	e.until(func() {
		if name := e.httpGet("http://" + address + "/hostname"); name != "web" {
			fail("%q answers at the port, want web", name)
		}
	})
}

// forward makes a port of this machine lead to one of a Pod, and returns its address.
func (e *env) forward(pod, port string, flags ...string) (address string, stop func()) {
	limited, cancel := context.WithCancel(e.ctx)
	c := e.command(limited, e.Kubeconfig(), append([]string{"port-forward", "pod/" + pod, ":" + port, "--address=127.0.0.1"}, flags...)...)
	var said bytes.Buffer
	out, in := io.Pipe()
	c.Stdout, c.Stderr = in, &said
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		in.CloseWithError(child.Run(c, syscall.SIGKILL, nil))
	}()
	stop = func() { out.Close(); cancel(); <-ended }
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		stop()
		fail("kubectl port-forward prints nothing (%v): %s", lines.Err(), said.String())
	}
	address = regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(lines.Text())
	if address == "" {
		stop()
		fail("kubectl port-forward does not name the port: %q", lines.Text())
	}
	return address, stop
}

// An image that no registry has, or that may not be pulled, keeps a container waiting. One that is there is not pulled again, unless the
// Pod says so.
func imagePull(e *env) {
	here := spec("nodeName: " + e.lastNode())
	image := func(name, policy string) edit {
		return container("{image: " + name + ", imagePullPolicy: " + policy + "}")
	}
	const missing = "example.invalid/missing:1"
	e.apply(pod("missing", "wait", here, image(missing, "IfNotPresent")) + pod("never", "wait", here, image(missing, "Never")) +
		pod("always", "wait", here, image(e.image, "Always")))
	const waiting = "jsonpath={.status.containerStatuses[0].state.waiting.reason}="
	for _, state := range [][2]string{{"never", "ErrImageNeverPull"}, {"missing", "ImagePullBackOff"}} {
		e.wait(waiting+state[1], "pod/"+state[0])
	}
	e.ready("always")
	e.apply(pod("present", "wait", here))
	e.ready("present")
	for name, want := range map[string]string{"always": "Successfully pulled image", "present": "already present on machine",
		"missing": "Failed to pull image"} {
		e.until(func() {
			said := e.get("events", "{.items[*].message}", "--field-selector=involvedObject.name="+name)
			if !strings.Contains(said, want) {
				fail("no event of pod %s says %q: %s", name, want, said)
			}
		})
	}
}

// Volumes hold what they are declared to hold, and other containers and, in a hostPath, the node see what a container writes.
func volumes(e *env) {
	host := e.NodeFile(e.lastNode(), "tmp", e.namespace)
	e.cleanup(func() { noError(os.RemoveAll(host)) })
	e.apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: green}
---
apiVersion: v1
kind: Secret
metadata: {name: secret}
stringData: {word: sesame}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  nodeName: $node
  securityContext: {runAsUser: 0}
  containers:
  - {name: main, image: $image, imagePullPolicy: IfNotPresent, args: [wait], volumeMounts: &all
     [{name: settings, mountPath: /settings}, {name: secret, mountPath: /secret}, {name: empty, mountPath: /empty},
      {name: host, mountPath: /host}]}
  - {name: other, image: $image, imagePullPolicy: IfNotPresent, args: [wait], volumeMounts: *all}
  volumes:
  - {name: settings, configMap: {name: settings}}
  - {name: secret, secret: {secretName: secret}}
  - {name: empty, emptyDir: {}}
  - {name: host, hostPath: {path: /tmp/$namespace, type: DirectoryOrCreate}}
`, "node", e.lastNode())
	e.ready("web")
	for _, file := range []string{"/empty/note", "/host/note"} {
		e.exec("web", "write", file, "hello")
	}
	for file, want := range map[string]string{"/settings/color": "green", "/secret/word": "sesame", "/empty/note": "hello",
		"/host/note": "hello"} {
		got := e.kubectl("exec", "web", "--container=other", "--", "/probe", "read", file)
		if strings.TrimSpace(got) != want {
			fail("%s holds %q, want %q", file, got, want)
		}
	}
	if text := must(os.ReadFile(filepath.Join(host, "note"))); string(text) != "hello\n" {
		fail("on the node, the file in the hostPath holds %q", text)
	}
}

// A Pod runs while its manifest is in the node's folder. The API shows a mirror of it, whose deletion does not end it.
func staticPod(e *env) {
	node := e.lastNode()
	file := e.NodeFile(node, "kubernetes", "manifests", e.namespace+".yaml")
	remove := func() {
		if err := os.Remove(file); !errors.Is(err, os.ErrNotExist) {
			noError(err)
		}
	}
	e.cleanup(remove)
	noError(os.MkdirAll(filepath.Dir(file), 0o755))
	text := e.expand(pod("static", "wait", metadata("namespace: "+e.namespace)))
	noError(atomicfile.WriteFile(file, []byte(text), 0o644)) // the kubelet ignores temporary names with a dot
	name := "pod/static-" + node
	e.wait("create", name)
	e.wait("condition=Ready", name)
	const container, uid = "{.status.containerStatuses[0].containerID}", "{.metadata.uid}"
	before := e.get(name, uid)
	runs := e.get(name, container)
	e.kubectl("delete", name, "--wait=false")
	e.until(func() {
		if e.get(name, uid) == before {
			fail("the mirror Pod was not recreated")
		}
		e.is(name, container, runs)
	})
	remove()
	e.wait("delete", name)
}

// Each node reports its addresses, versions and conditions, the processors and memory of the machine and what Pods may have of them, and
// its kubelet renews a lease.
func nodeStatus(e *env) {
	for _, n := range e.nodes {
		what := "node/" + n.Name
		for path, want := range map[string]string{
			`{.status.addresses[?(@.type=="InternalIP")].address}`: n.Address,
			`{.status.addresses[?(@.type=="Hostname")].address}`:   n.Name,
			`{.status.nodeInfo.kubeletVersion}`:                    e.Version,
			`{.status.conditions[?(@.status=="True")].type}`:       "Ready",
			`{.status.nodeInfo.operatingSystem}`:                   "linux",
		} {
			e.is(what, path, want)
		}
		e.is(what, "{.status.capacity.cpu}", strconv.Itoa(runtime.NumCPU()))
		e.is(what, "{.status.capacity.memory}", memoryOfMachine())
		for _, resource := range []string{"cpu", "memory", "pods"} {
			if amount := e.get(what, "{.status.allocatable."+resource+"}"); amount == "" || amount == "0" {
				fail("%s has %q of %s for Pods", what, amount, resource)
			}
		}
		runtime := e.get(what, "{.status.nodeInfo.containerRuntimeVersion}")
		if !strings.HasPrefix(runtime, "containerd://") {
			fail("%s runs %q, want containerd", what, runtime)
		}
		lease := "lease/" + n.Name
		before := e.get(lease, "{.spec.renewTime}", "--namespace=kube-node-lease")
		e.until(func() {
			now := e.get(lease, "{.spec.renewTime}", "--namespace=kube-node-lease")
			if now == before {
				fail("the kubelet of %s does not renew its lease", n.Name)
			}
		})
	}
}

// memoryOfMachine returns how much memory this machine has, as a kubelet reports it.
func memoryOfMachine() string {
	var kib int64
	must(fmt.Sscanf(string(must(os.ReadFile("/proc/meminfo"))), "MemTotal: %d kB", &kib))
	return fmt.Sprintf("%dKi", kib)
}

// Each kubelet reports, at its endpoint configz, the configuration of its file. What the kubelet does with it is not checked
// here.
func configuration(e *env) {
	for _, n := range e.nodes {
		file := e.InNode(n.Name, "/var/lib/kubelet/config.yaml")
		var want map[string]any
		during(file, func() { noError(yaml.Unmarshal(must(os.ReadFile(file)), &want)) })
		got := getJSON[struct{ KubeletConfig map[string]any }](e, "/api/v1/nodes/"+n.Name+"/proxy/configz")
		for _, field := range []string{"evictionPressureTransitionPeriod", "maxOpenFiles", "cgroupDriver",
			"serverTLSBootstrap", "staticPodPath"} {
			if w, g := fmt.Sprint(want[field]), fmt.Sprint(got.KubeletConfig[field]); want[field] == nil || w != g {
				fail("kubelet of %s: %s is %s, but its file has %s", n.Name, field, g, w)
			}
		}
	}
}
