package verify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Probes by TCP, gRPC and a command decide whether a container is ready, and others wait for a startup probe.
func probes(ctx context.Context, e *env) error {
	ready := func(probe string) edit {
		return container("readinessProbe: {periodSeconds: 1, failureThreshold: 1, " + probe + "}")
	}
	exec := func(command string) string { return "exec: {command: [/probe, " + command + "]}" }
	data := spec("{securityContext: {runAsUser: 0}, volumes: [{name: data, emptyDir: {}}]}")
	mount := container("volumeMounts: [{name: data, mountPath: /data}]")
	slow := container("{startupProbe: {periodSeconds: 1, failureThreshold: 600, " + exec("read, /data/up") +
		"}, livenessProbe: {periodSeconds: 1, failureThreshold: 1, " +
		exec("read, /data/up") + "}}")
	err := e.apply(ctx, pod("tcp", "serve", ready("tcpSocket: {port: 8080}"))+pod("no-tcp", "serve", ready("tcpSocket: {port: 9}"))+
		pod("grpc", "serve", ready("grpc: {port: 8080}"))+pod("no-grpc", "serve", ready("grpc: {port: 9}"))+
		pod("exec", "wait", ready(exec(`exit, "0"`)))+pod("no-exec", "wait", ready(exec(`exit, "1"`)))+pod("slow", "wait", data, mount, slow))
	if err != nil {
		return err
	}
	if err := e.ready(ctx, "tcp", "grpc", "exec"); err != nil {
		return err
	}
	if _, err := e.exec(ctx, "grpc", "fetch", "http://127.0.0.1:8080/healthy?set=false"); err != nil {
		return err
	}
	for _, name := range []string{"no-tcp", "grpc", "no-grpc", "no-exec", "slow"} {
		if err := e.unhealthy(ctx, name); err != nil {
			return err
		}
	}
	const started = "{.status.containerStatuses[0].started} {.status.containerStatuses[0].restartCount}"
	if err := e.is(ctx, "pod/slow", started, "false 0"); err != nil {
		return err
	}
	if _, err := e.exec(ctx, "slow", "write", "/data/up", "now"); err != nil {
		return err
	}
	if err := e.ready(ctx, "slow"); err != nil {
		return err
	}
	return e.is(ctx, "pod/slow", started, "true 0")
}

// unhealthy waits until a probe of a Pod has failed, and requires that the Pod runs and is not ready.
func (e *env) unhealthy(ctx context.Context, name string) error {
	err := until(ctx, func() error {
		seen, err := e.get(ctx, "events", "{.items[*].reason}", "--field-selector=reason=Unhealthy,involvedObject.name="+name)
		if err == nil && seen == "" {
			err = fmt.Errorf("no probe of pod %s has failed", name)
		}
		return err
	})
	if err != nil {
		return err
	}
	return until(ctx, func() error { // the event may come first
		return e.is(ctx, "pod/"+name, `{.status.phase} {.status.containerStatuses[0].ready}`, "Running false")
	})
}

// Containers that end are started again as the restart policy says.
func restartPolicies(ctx context.Context, e *env) error {
	policy := func(name, code string) string {
		return pod(strings.ToLower(name)+"-"+code, "exit "+code, spec("restartPolicy: "+name))
	}
	if err := e.apply(ctx, policy("Always", "0")+policy("OnFailure", "0")+policy("OnFailure", "3")+policy("Never",
		"0")+policy("Never", "3")); err != nil {
		return err
	}
	for name, phase := range map[string]string{"onfailure-0": "Succeeded", "never-0": "Succeeded", "never-3": "Failed"} {
		if err := e.wait(ctx, "jsonpath={.status.phase}="+phase, "pod/"+name); err != nil {
			return err
		}
	}
	for _, name := range []string{"always-0", "onfailure-3"} {
		err := until(ctx, func() error {
			count, err := e.get(ctx, "pod/"+name, "{.status.containerStatuses[0].restartCount}")
			if err == nil && count == "0" {
				err = fmt.Errorf("the container of pod %s was not started again", name)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, name := range []string{"onfailure-0", "never-0", "never-3"} {
		if err := e.is(ctx, "pod/"+name, "{.status.containerStatuses[0].restartCount}", "0"); err != nil {
			return err
		}
	}
	return nil
}

// Init containers run one after the other before the others, which do not start if one fails. A sidecar starts before the containers
// after it, runs beside them, and does not keep the Pod from its end.
func initContainers(ctx context.Context, e *env) error {
	const head = `
apiVersion: v1
kind: Pod
metadata: {name: $name}
spec:
  restartPolicy: Never
  securityContext: {runAsUser: 0}
  volumes: [{name: data, emptyDir: {}}]
  containers:
  - {name: main, image: $image, imagePullPolicy: IfNotPresent, args: [$main], volumeMounts: &data [{name: data, mountPath: /data}]}
  initContainers:
`
	const one = "  - {name: $step, image: $image, imagePullPolicy: IfNotPresent, args: [$args], volumeMounts: *data $more}\n"
	step := func(name, args, more string) string {
		return strings.NewReplacer("$step", name, "$args", args, "$more", more).Replace(one)
	}
	if err := e.apply(ctx, head+step("first", "write, /data/a, hello", "")+step("second", "read, /data/a", ""), "name", "order", "main",
		"read, /data/a"); err != nil {
		return err
	}
	if err := e.apply(ctx, head+step("first", `exit, "4"`, "")+step("second", "write, /data/a, late", ""), "name", "broken", "main",
		"read, /data/a"); err != nil {
		return err
	}
	const sidecar = `, restartPolicy: Always, startupProbe: {httpGet: {path: /hostname, port: 8080}, periodSeconds: 1}`
	if err := e.apply(ctx, head+step("beside", "serve", sidecar), "name", "sidecar", "main",
		`fetch, "http://127.0.0.1:8080/hostname"`); err != nil {
		return err
	}
	for name, phase := range map[string]string{"order": "Succeeded", "broken": "Failed", "sidecar": "Succeeded"} {
		if err := e.wait(ctx, "jsonpath={.status.phase}="+phase, "pod/"+name); err != nil {
			return err
		}
	}
	const states = "{.status.initContainerStatuses[*].state.terminated.exitCode}"
	if err := e.is(ctx, "pod/order", states, "0 0"); err != nil {
		return err
	}
	if err := e.is(ctx, "pod/broken", states, "4"); err != nil {
		return err
	}
	if err := e.is(ctx, "pod/broken", "{.status.containerStatuses[0].state.terminated}", ""); err != nil {
		return err
	}
	said, err := e.kubectl(ctx, "logs", "sidecar", "--container=main")
	if err == nil && strings.TrimSpace(said) != "sidecar" {
		err = fmt.Errorf("beside the container, %q answers, want sidecar", said)
	}
	return err
}

// A Pod has the class of service that its requests and limits give it, and a control group with these limits.
func qualityOfService(ctx context.Context, e *env) error {
	here := spec("nodeName: " + e.lastNode())
	classes := []struct{ name, class, folder, resources, memory, cpu string }{
		{"guaranteed", "Guaranteed", "", "{requests: {cpu: 200m, memory: 32Mi}, limits: {cpu: 200m, memory: 32Mi}}", "33554432", "20000"},
		{"burstable", "Burstable", "burstable", "{requests: {cpu: 100m, memory: 16Mi}, limits: {memory: 64Mi}}", "67108864", ""},
		{"best-effort", "BestEffort", "besteffort", "{}", "", ""},
	}
	var text string
	var names []string
	for _, c := range classes {
		text, names = text+pod(c.name, "wait", here, container("resources: "+c.resources)), append(names, c.name)
	}
	if err := e.apply(ctx, text); err != nil {
		return err
	}
	if err := e.ready(ctx, names...); err != nil {
		return err
	}
	for _, c := range classes {
		if err := e.is(ctx, "pod/"+c.name, "{.status.qosClass}", c.class); err != nil {
			return err
		}
		uid, err := e.get(ctx, "pod/"+c.name, "{.metadata.uid}")
		if err != nil {
			return err
		}
		// The memory controller has a folder of its own in version 1 of control groups.
		limit, err := e.cgroupFile(c.folder, uid, "memory", "memory.limit_in_bytes", "memory.max")
		if err != nil {
			return err
		}
		if c.memory != "" && limit != c.memory {
			return fmt.Errorf("the control group of pod %s is limited to %s bytes of memory, want %s", c.name, limit, c.memory)
		}
		quota, err := e.cgroupFile(c.folder, uid, "cpu", "cpu.cfs_quota_us", "cpu.max")
		if err != nil {
			return err
		}
		if quota, _, _ := strings.Cut(quota, " "); c.cpu != "" && quota != c.cpu {
			return fmt.Errorf("the control group of pod %s has %s µs of processor time in 100 ms, want %s", c.name, quota, c.cpu)
		}
	}
	return nil
}

// cgroupFile reads a file of a Pod's control group on the last node, of version 1 or 2.
func (e *env) cgroupFile(class, pod, controller, v1, v2 string) (string, error) {
	return e.controlGroup(filepath.Join(class, "pod"+pod), controller, v1, v2).read()
}

// A groupFile is a file of a control group.
type groupFile string

// controlGroup returns a file of a group below that of all Pods on the last node, of version 1 or 2.
func (e *env) controlGroup(group, controller, v1, v2 string) groupFile {
	group = filepath.Join("slipway-"+e.ID, e.lastNode(), "kubepods", group)
	first := filepath.Join("/sys/fs/cgroup", controller, group, v1)
	if _, err := os.Stat(first); err == nil {
		return groupFile(first)
	}
	return groupFile(filepath.Join("/sys/fs/cgroup", group, v2))
}

func (f groupFile) read() (string, error) {
	text, err := os.ReadFile(string(f))
	return strings.TrimSpace(string(text)), err
}

func (f groupFile) write(text string) error { return os.WriteFile(string(f), []byte(text), 0o644) }

// An image that no registry has, or that may not be pulled, keeps a container waiting. One that is there is not pulled again, unless the
// Pod says so.
func imagePull(ctx context.Context, e *env) error {
	here := spec("nodeName: " + e.lastNode())
	image := func(name, policy string) edit {
		return container("{image: " + name + ", imagePullPolicy: " + policy + "}")
	}
	const missing = "example.invalid/missing:1"
	err := e.apply(ctx, pod("missing", "wait", here, image(missing, "IfNotPresent"))+pod("never", "wait", here, image(missing, "Never"))+
		pod("always", "wait", here, image(e.image, "Always")))
	if err != nil {
		return err
	}
	const waiting = "jsonpath={.status.containerStatuses[0].state.waiting.reason}="
	for _, state := range [][2]string{{"never", "ErrImageNeverPull"}, {"missing", "ImagePullBackOff"}} {
		if err := e.wait(ctx, waiting+state[1], "pod/"+state[0]); err != nil {
			return err
		}
	}
	if err := e.ready(ctx, "always"); err != nil {
		return err
	}
	if err := e.apply(ctx, pod("present", "wait", here)); err != nil {
		return err
	}
	if err := e.ready(ctx, "present"); err != nil {
		return err
	}
	for name, want := range map[string]string{"always": "Successfully pulled image", "present": "already present on machine",
		"missing": "Failed to pull image"} {
		err := until(ctx, func() error {
			said, err := e.get(ctx, "events", "{.items[*].message}", "--field-selector=involvedObject.name="+name)
			if err == nil && !strings.Contains(said, want) {
				err = fmt.Errorf("no event of pod %s says %q: %s", name, want, said)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Each node reports its addresses, versions, resources and conditions, and its kubelet renews a lease.
func nodeStatus(ctx context.Context, e *env) error {
	for _, n := range e.nodes {
		what := "node/" + n.Name
		for path, want := range map[string]string{
			`{.status.addresses[?(@.type=="InternalIP")].address}`: n.Address,
			`{.status.addresses[?(@.type=="Hostname")].address}`:   n.Name,
			`{.status.nodeInfo.kubeletVersion}`:                    e.Version,
			`{.status.conditions[?(@.status=="True")].type}`:       "Ready",
			`{.status.nodeInfo.operatingSystem}`:                   "linux",
		} {
			if err := e.is(ctx, what, path, want); err != nil {
				return err
			}
		}
		runtime, err := e.get(ctx, what, "{.status.nodeInfo.containerRuntimeVersion}")
		if err != nil {
			return err
		}
		if !strings.HasPrefix(runtime, "containerd://") {
			return fmt.Errorf("%s runs %q, want containerd", what, runtime)
		}
		lease := "lease/" + n.Name
		before, err := e.get(ctx, lease, "{.spec.renewTime}", "--namespace=kube-node-lease")
		if err != nil {
			return err
		}
		err = until(ctx, func() error {
			now, err := e.get(ctx, lease, "{.spec.renewTime}", "--namespace=kube-node-lease")
			if err == nil && now == before {
				err = fmt.Errorf("the kubelet of %s does not renew its lease", n.Name)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
