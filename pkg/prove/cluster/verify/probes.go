package verify

import (
	"os"
	"path/filepath"
	"strings"
)

// Probes by TCP, gRPC and a command decide whether a container is ready, and others wait for a startup probe.
func probes(e *env) {
	ready := func(probe string) edit {
		return container("readinessProbe: {periodSeconds: 1, failureThreshold: 1, " + probe + "}")
	}
	exec := func(command string) string { return "exec: {command: [/probe, " + command + "]}" }
	data := spec("{securityContext: {runAsUser: 0}, volumes: [{name: data, emptyDir: {}}]}")
	mount := container("volumeMounts: [{name: data, mountPath: /data}]")
	slow := container("{startupProbe: {periodSeconds: 1, failureThreshold: 600, " + exec("read, /data/up") +
		"}, livenessProbe: {periodSeconds: 1, failureThreshold: 1, " +
		exec("read, /data/up") + "}}")
	e.apply(pod("tcp", "serve", ready("tcpSocket: {port: 8080}")) + pod("no-tcp", "serve", ready("tcpSocket: {port: 9}")) +
		pod("grpc", "serve", ready("grpc: {port: 8080}")) + pod("no-grpc", "serve", ready("grpc: {port: 9}")) +
		pod("exec", "wait", ready(exec(`exit, "0"`))) + pod("no-exec", "wait", ready(exec(`exit, "1"`))) + pod("slow", "wait", data, mount, slow))
	e.ready("tcp", "grpc", "exec")
	e.exec("grpc", "fetch", "http://127.0.0.1:8080/healthy?set=false")
	for _, name := range []string{"no-tcp", "grpc", "no-grpc", "no-exec", "slow"} {
		e.unhealthy(name)
	}
	const started = "{.status.containerStatuses[0].started} {.status.containerStatuses[0].restartCount}"
	e.is("pod/slow", started, "false 0")
	e.exec("slow", "write", "/data/up", "now")
	e.ready("slow")
	e.is("pod/slow", started, "true 0")
}

// unhealthy waits until a probe of a Pod has failed, and requires that the Pod runs and is not ready.
func (e *env) unhealthy(name string) {
	e.until(func() {
		if e.get("events", "{.items[*].reason}", "--field-selector=reason=Unhealthy,involvedObject.name="+name) == "" {
			fail("no probe of pod %s has failed", name)
		}
	})
	e.becomes("pod/"+name, `{.status.phase} {.status.containerStatuses[0].ready}`, "Running false") // the event may come first
}

// Containers that end are started again as the restart policy says.
func restartPolicies(e *env) {
	policy := func(name, code string) string {
		return pod(strings.ToLower(name)+"-"+code, "exit "+code, spec("restartPolicy: "+name))
	}
	e.apply(policy("Always", "0") + policy("OnFailure", "0") + policy("OnFailure", "3") + policy("Never", "0") + policy("Never", "3"))
	for name, phase := range map[string]string{"onfailure-0": "Succeeded", "never-0": "Succeeded", "never-3": "Failed"} {
		e.wait("jsonpath={.status.phase}="+phase, "pod/"+name)
	}
	for _, name := range []string{"always-0", "onfailure-3"} {
		e.until(func() {
			if e.get("pod/"+name, "{.status.containerStatuses[0].restartCount}") == "0" {
				fail("the container of pod %s was not started again", name)
			}
		})
	}
	for _, name := range []string{"onfailure-0", "never-0", "never-3"} {
		e.is("pod/"+name, "{.status.containerStatuses[0].restartCount}", "0")
	}
}

// Init containers run one after the other before the others, which do not start if one fails. A sidecar starts before the containers
// after it, runs beside them, and does not keep the Pod from its end.
func initContainers(e *env) {
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
	e.apply(head+step("first", "write, /data/a, hello", "")+step("second", "read, /data/a", ""), "name", "order", "main",
		"read, /data/a")
	e.apply(head+step("first", `exit, "4"`, "")+step("second", "write, /data/a, late", ""), "name", "broken", "main",
		"read, /data/a")
	const sidecar = `, restartPolicy: Always, startupProbe: {httpGet: {path: /hostname, port: 8080}, periodSeconds: 1}`
	e.apply(head+step("beside", "serve", sidecar), "name", "sidecar", "main", `fetch, "http://127.0.0.1:8080/hostname"`)
	for name, phase := range map[string]string{"order": "Succeeded", "broken": "Failed", "sidecar": "Succeeded"} {
		e.wait("jsonpath={.status.phase}="+phase, "pod/"+name)
	}
	const states = "{.status.initContainerStatuses[*].state.terminated.exitCode}"
	e.is("pod/order", states, "0 0")
	e.is("pod/broken", states, "4")
	e.is("pod/broken", "{.status.containerStatuses[0].state.terminated}", "")
	said := e.kubectl("logs", "sidecar", "--container=main")
	if strings.TrimSpace(said) != "sidecar" {
		fail("beside the container, %q answers, want sidecar", said)
	}
}

// A Pod has the class of service that its requests and limits give it, and a control group with these limits.
func qualityOfService(e *env) {
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
	e.apply(text)
	e.ready(names...)
	for _, c := range classes {
		e.is("pod/"+c.name, "{.status.qosClass}", c.class)
		group := filepath.Join(c.folder, "pod"+e.get("pod/"+c.name, "{.metadata.uid}"))
		limit := e.controlGroup(group, "memory", "memory.limit_in_bytes", "memory.max").read()
		if c.memory != "" && limit != c.memory {
			fail("the control group of pod %s is limited to %s bytes of memory, want %s", c.name, limit, c.memory)
		}
		quota := e.controlGroup(group, "cpu", "cpu.cfs_quota_us", "cpu.max").read()
		if quota, _, _ := strings.Cut(quota, " "); c.cpu != "" && quota != c.cpu {
			fail("the control group of pod %s has %s µs of processor time in 100 ms, want %s", c.name, quota, c.cpu)
		}
	}
}

// A groupFile is a file of a control group.
type groupFile string

// controlGroup returns a file of a group below that of all Pods on the last node. In version 1 of control groups, each controller has a
// folder of its own.
func (e *env) controlGroup(group, controller, v1, v2 string) groupFile {
	group = filepath.Join("slipway-"+e.ID, e.lastNode(), "kubepods", group)
	first := filepath.Join("/sys/fs/cgroup", controller, group, v1)
	if _, err := os.Stat(first); err == nil {
		return groupFile(first)
	}
	return groupFile(filepath.Join("/sys/fs/cgroup", group, v2))
}

func (f groupFile) read() string { return strings.TrimSpace(string(must(os.ReadFile(string(f))))) }

func (f groupFile) write(text string) { noError(os.WriteFile(string(f), []byte(text), 0o644)) }

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

// Each node reports its addresses, versions, resources and conditions, and its kubelet renews a lease.
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
