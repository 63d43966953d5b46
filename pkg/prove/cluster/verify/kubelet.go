package verify

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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
func logs(ctx context.Context, e *env) error {
	if err := e.apply(ctx, pod("web", "serve")+pod("again", "read /etc/hostname")); err != nil {
		return err
	}
	if err := e.ready(ctx, "web"); err != nil {
		return err
	}
	says := func(want string, args ...string) error {
		return until(ctx, func() error {
			said, err := e.kubectl(ctx, append([]string{"logs"}, args...)...)
			if err == nil && strings.TrimSpace(said) != want {
				err = fmt.Errorf("kubectl logs %s prints %q, want %q", strings.Join(args, " "), said, want)
			}
			return err
		})
	}
	if err := says("serving at [::]:8080", "web"); err != nil {
		return err
	}
	return says("again", "--previous", "again")
}

// A command in a container reads standard input, and its output and exit code come back.
func execute(ctx context.Context, e *env) error {
	if err := e.apply(ctx, pod("web", "wait")); err != nil {
		return err
	}
	if err := e.ready(ctx, "web"); err != nil {
		return err
	}
	out, err := e.feed(ctx, "typed", "exec", "--stdin", "web", "--", "/probe", "read", "-")
	if err != nil {
		return err
	}
	if out != "typed" {
		return fmt.Errorf("the command read %q from standard input, want %q", out, "typed")
	}
	_, err = e.exec(ctx, "web", "exit", "7")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		return fmt.Errorf("a command that exits with 7 ends with %w", err)
	}
	return nil
}

// A port of this machine leads to one of a Pod.
func portForward(ctx context.Context, e *env) error {
	if err := e.apply(ctx, pod("web", "serve 127.0.0.1:8080")); err != nil { // out of reach for all others
		return err
	}
	if err := e.ready(ctx, "web"); err != nil {
		return err
	}
	limited, cancel := context.WithCancel(ctx)
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
		return fmt.Errorf("kubectl port-forward prints nothing (%v): %s", lines.Err(), said.String())
	}
	found := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(lines.Text())
	if found == "" {
		return fmt.Errorf("kubectl port-forward does not name the port: %q", lines.Text())
	}
	return until(ctx, func() error {
		name, err := httpGet(ctx, "http://"+found+"/hostname")
		if err == nil && name != "web" {
			err = fmt.Errorf("%q answers at the port, want web", name)
		}
		return err
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
func liveness(ctx context.Context, e *env) error {
	if err := e.apply(ctx, probed, "kind", "livenessProbe", "path", "/healthy"); err != nil {
		return err
	}
	if err := e.ready(ctx, "web"); err != nil {
		return err
	}
	before, err := e.get(ctx, "pod/web", "{.status.containerStatuses[0].containerID}")
	if err != nil {
		return err
	}
	if _, err := e.exec(ctx, "web", "fetch", "http://127.0.0.1:8080/healthy?set=false"); err != nil {
		return err
	}
	return until(ctx, func() error {
		after, err := e.get(ctx, "pod/web", "{.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready} "+
			"{.status.containerStatuses[0].containerID}")
		if err == nil && (!strings.HasPrefix(after, "0 ") && strings.Contains(after, " true ") && !strings.HasSuffix(after, before)) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("the container was not restarted: %s", after))
	})
}

// A Pod is an endpoint of its Service only while its readiness probe succeeds.
func readiness(ctx context.Context, e *env) error {
	if err := e.apply(ctx, probed, "kind", "readinessProbe", "path", "/ready"); err != nil {
		return err
	}
	for n, want := range []string{"true", "false", "true"} {
		if n > 0 {
			if _, err := e.exec(ctx, "web", "fetch", "http://127.0.0.1:8080/ready?set="+want); err != nil {
				return err
			}
		}
		err := until(ctx, func() error {
			ready, err := e.get(ctx, "endpointslices", "{.items[*].endpoints[*].conditions.ready}", "--selector=kubernetes.io/service-name=web")
			if err == nil && ready != want {
				err = fmt.Errorf("endpoints are ready: %q, want %q", ready, want)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return e.is(ctx, "pod/web", "{.status.containerStatuses[0].restartCount}", "0")
}

// Volumes hold what they are declared to hold, and other containers and, in a hostPath, the node see what a container writes.
func volumes(ctx context.Context, e *env) error {
	host := e.NodeFile(e.lastNode(), "tmp", e.namespace)
	e.cleanup(func(context.Context) error { return os.RemoveAll(host) })
	err := e.apply(ctx, `
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
     [{name: settings, mountPath: /settings}, {name: secret, mountPath: /secret}, {name: empty, mountPath: /empty}, {name: host, mountPath: /host}]}
  - {name: other, image: $image, imagePullPolicy: IfNotPresent, args: [wait], volumeMounts: *all}
  volumes:
  - {name: settings, configMap: {name: settings}}
  - {name: secret, secret: {secretName: secret}}
  - {name: empty, emptyDir: {}}
  - {name: host, hostPath: {path: /tmp/$namespace, type: DirectoryOrCreate}}
`, "node", e.lastNode())
	if err != nil {
		return err
	}
	if err := e.ready(ctx, "web"); err != nil {
		return err
	}
	for _, file := range []string{"/empty/note", "/host/note"} {
		if _, err := e.exec(ctx, "web", "write", file, "hello"); err != nil {
			return err
		}
	}
	for file, want := range map[string]string{"/settings/color": "green", "/secret/word": "sesame", "/empty/note": "hello",
		"/host/note": "hello"} {
		got, err := e.kubectl(ctx, "exec", "web", "--container=other", "--", "/probe", "read", file)
		if err != nil {
			return err
		}
		if strings.TrimSpace(got) != want {
			return fmt.Errorf("%s holds %q, want %q", file, got, want)
		}
	}
	text, err := os.ReadFile(filepath.Join(host, "note"))
	if err == nil && string(text) != "hello\n" {
		err = fmt.Errorf("on the node, the file in the hostPath holds %q", text)
	}
	return err
}

// A container that uses more memory than its limit is killed, and one that uses less is not.
func memoryLimit(ctx context.Context, e *env) error {
	limited := func(name, args string) string {
		return pod(name, args, spec("restartPolicy: Never"), container("resources: {limits: {memory: 64Mi}}"))
	}
	if err := e.apply(ctx, limited("small", "allocate 8")+limited("large", "allocate 256")); err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.containerStatuses[0].state.terminated.reason}=OOMKilled", "pod/large"); err != nil {
		return err
	}
	if err := e.ready(ctx, "small"); err != nil {
		return err
	}
	return e.is(ctx, "pod/small", "{.status.phase}", "Running")
}

// A Pod that fills a volume beyond its size limit is evicted, and one that does not is not.
func eviction(ctx context.Context, e *env) error {
	filling := func(name, size string) string {
		return pod(name, "fill /data/file "+size, container("volumeMounts: [{name: data, mountPath: /data}]"),
			spec("{securityContext: {runAsUser: 0}, volumes: [{name: data, emptyDir: {sizeLimit: 4Mi}}]}"))
	}
	if err := e.apply(ctx, filling("large", "16")+filling("small", "1")); err != nil {
		return err
	}
	if err := e.evicted(ctx, "large"); err != nil {
		return err
	}
	return e.is(ctx, "pod/small", "{.status.phase}", "Running")
}

// evicted waits until a Pod is evicted, and requires that no other is. The event says so. The Pod's status may not: a container that ends
// without an error has succeeded.
func (e *env) evicted(ctx context.Context, name string) error {
	if err := e.wait(ctx, "jsonpath={.status.containerStatuses[0].state.terminated}", "pod/"+name); err != nil {
		return err
	}
	return e.is(ctx, "events", `{.items[?(@.reason=="Evicted")].involvedObject.name}`, name)
}

// A Pod runs while its manifest is in the node's folder. The API shows a mirror of it, whose deletion does not end it.
func staticPod(ctx context.Context, e *env) error {
	node := e.lastNode()
	file := e.NodeFile(node, "kubernetes", "manifests", e.namespace+".yaml")
	remove := func(context.Context) error {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	e.cleanup(remove)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	text := e.expand(pod("static", "wait", metadata("namespace: "+e.namespace)))
	if err := atomicfile.WriteFile(file, []byte(text), 0o644); err != nil { // the kubelet ignores temporary names with a dot
		return err
	}
	name := "pod/static-" + node
	if err := e.wait(ctx, "create", name); err != nil {
		return err
	}
	if err := e.wait(ctx, "condition=Ready", name); err != nil {
		return err
	}
	const container, uid = "{.status.containerStatuses[0].containerID}", "{.metadata.uid}"
	before, err := e.get(ctx, name, uid)
	if err != nil {
		return err
	}
	runs, err := e.get(ctx, name, container)
	if err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "delete", name, "--wait=false"); err != nil {
		return err
	}
	err = until(ctx, func() error {
		after, err := e.get(ctx, name, uid)
		if err == nil && after == before {
			err = errors.New("the mirror Pod was not recreated")
		}
		if err != nil {
			return err
		}
		return e.is(ctx, name, container, runs)
	})
	if err != nil {
		return err
	}
	if err := remove(ctx); err != nil {
		return err
	}
	return e.wait(ctx, "delete", name)
}

// Each kubelet reports, at its endpoint configz, the configuration of its file. What the kubelet does with it is not checked
// here.
func configuration(ctx context.Context, e *env) error {
	for _, n := range e.nodes {
		file := e.InNode(n.Name, "/var/lib/kubelet/config.yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var want map[string]any
		if err := yaml.Unmarshal(text, &want); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		said, err := e.kubectl(ctx, "get", "--raw", "/api/v1/nodes/"+n.Name+"/proxy/configz")
		if err != nil {
			return err
		}
		var got struct{ KubeletConfig map[string]any }
		if err := json.Unmarshal([]byte(said), &got); err != nil {
			return err
		}
		for _, field := range []string{"evictionPressureTransitionPeriod", "maxOpenFiles", "cgroupDriver",
			"serverTLSBootstrap", "staticPodPath"} {
			if w, g := fmt.Sprint(want[field]), fmt.Sprint(got.KubeletConfig[field]); want[field] == nil || w != g {
				return fmt.Errorf("kubelet of %s: %s is %s, but its file has %s", n.Name, field, g, w)
			}
		}
	}
	return nil
}
