package verify

import (
	"strings"
)

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
			if n := e.get("pod/"+name, "{.status.containerStatuses[0].restartCount}"); n == "" || n == "0" {
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
