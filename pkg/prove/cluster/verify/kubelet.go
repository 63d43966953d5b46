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
	limited, cancel := context.WithCancel(e.ctx)
	defer cancel()
	c := e.command(limited, e.Kubeconfig(), "port-forward", "pod/web", ":8080", "--address=127.0.0.1")
	var said bytes.Buffer
	out, in := io.Pipe()
	c.Stdout, c.Stderr = in, &said
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		in.CloseWithError(child.Run(c, syscall.SIGKILL, nil))
	}()
	defer func() { out.Close(); cancel(); <-ended }()
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		fail("kubectl port-forward prints nothing (%v): %s", lines.Err(), said.String())
	}
	found := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(lines.Text())
	if found == "" {
		fail("kubectl port-forward does not name the port: %q", lines.Text())
	}
	e.until(func() {
		if name := e.httpGet("http://" + found + "/hostname"); name != "web" {
			fail("%q answers at the port, want web", name)
		}
	})
}

// probed is a Pod with a Service, whose health or readiness can be switched off.
const probed = `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - {name: main, image: $image, imagePullPolicy: IfNotPresent, args: [serve],
     $kind: {httpGet: {path: $path, port: 8080}, periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 5}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`

// A container that fails its liveness probe is restarted.
func liveness(e *env) {
	e.apply(probed, "kind", "livenessProbe", "path", "/healthy")
	e.ready("web")
	before := e.get("pod/web", "{.status.containerStatuses[0].containerID}")
	e.exec("web", "fetch", "http://127.0.0.1:8080/healthy?set=false")
	e.until(func() {
		after := e.get("pod/web", "{.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready} "+
			"{.status.containerStatuses[0].containerID}")
		if strings.HasPrefix(after, "0 ") || !strings.Contains(after, " true ") || strings.HasSuffix(after, before) {
			fail("the container was not restarted: %s", after)
		}
	})
}

// A Pod is an endpoint of its Service only while its readiness probe succeeds.
func readiness(e *env) {
	e.apply(probed, "kind", "readinessProbe", "path", "/ready")
	for n, want := range []string{"true", "false", "true"} {
		if n > 0 {
			e.exec("web", "fetch", "http://127.0.0.1:8080/ready?set="+want)
		}
		e.until(func() {
			ready := e.get("endpointslices", "{.items[*].endpoints[*].conditions.ready}", "--selector=kubernetes.io/service-name=web")
			if ready != want {
				fail("endpoints are ready: %q, want %q", ready, want)
			}
		})
	}
	e.is("pod/web", "{.status.containerStatuses[0].restartCount}", "0")
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

// A container that uses more memory than its limit is killed, and one that uses less is not.
func memoryLimit(e *env) {
	limited := func(name, args string) string {
		return pod(name, args, spec("restartPolicy: Never"), container("resources: {limits: {memory: 64Mi}}"))
	}
	e.apply(limited("small", "allocate 8") + limited("large", "allocate 256"))
	e.wait("jsonpath={.status.containerStatuses[0].state.terminated.reason}=OOMKilled", "pod/large")
	e.ready("small")
	e.is("pod/small", "{.status.phase}", "Running")
}

// A Pod that fills a volume beyond its size limit is evicted, and one that does not is not.
func eviction(e *env) {
	filling := func(name, size string) string {
		return pod(name, "fill /data/file "+size, container("volumeMounts: [{name: data, mountPath: /data}]"),
			spec("{securityContext: {runAsUser: 0}, volumes: [{name: data, emptyDir: {sizeLimit: 4Mi}}]}"))
	}
	e.apply(filling("large", "16") + filling("small", "1"))
	e.evicted("large")
	e.is("pod/small", "{.status.phase}", "Running")
}

// evicted waits until a Pod is evicted, and requires that no other is. The event says so. The Pod's status may not: a container that ends
// without an error has succeeded.
func (e *env) evicted(name string) {
	e.wait("jsonpath={.status.containerStatuses[0].state.terminated}", "pod/"+name)
	e.is("events", `{.items[?(@.reason=="Evicted")].involvedObject.name}`, name)
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
