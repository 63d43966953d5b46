package verify

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Pod has the class of service that its requests and limits give it, and a control group with these limits.
func qualityOfService(e *env) {
	here := spec("nodeName: " + e.lastNode())
	classes := []struct{ name, class, folder, resources, memory, cpu string }{
		{"guaranteed", "Guaranteed", "", "{requests: {cpu: 200m, memory: 32Mi}, limits: {cpu: 200m, memory: 32Mi}}", "33554432", "20000"},
		{"burstable", "Burstable", "burstable", "{requests: {cpu: 100m, memory: 16Mi}, limits: {memory: 64Mi}}", "67108864", "max"},
		{"best-effort", "BestEffort", "besteffort", "{}", "max", "max"},
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
		if limit := e.controlGroup(group, "memory", "memory.limit_in_bytes", "memory.max").limit(); limit != c.memory {
			fail("the control group of pod %s is limited to %s bytes of memory, want %s", c.name, limit, c.memory)
		}
		if quota := e.controlGroup(group, "cpu", "cpu.cfs_quota_us", "cpu.max").limit(); quota != c.cpu {
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

// limit returns the limit that a file has, or max if it has none.
func (f groupFile) limit() string {
	limit, _, _ := strings.Cut(f.read(), " ") // cpu.max has the period, too
	// In version 1, no limit is -1, or as many pages as a signed number can count in bytes.
	if n, err := strconv.ParseInt(limit, 10, 64); err == nil && (n < 0 || n >= 1<<62) {
		return "max"
	}
	return limit
}

func (f groupFile) write(text string) { noError(os.WriteFile(string(f), []byte(text), 0o644)) }

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

// When the Pods of a node use nearly all the memory that they may have together, the kubelet reports pressure and evicts those that use
// more than they requested. The first is the one that exceeds its request by most: a best-effort Pod, even if a burstable one uses more.
// The burstable one is the second, and a guaranteed one goes on and even grows.
func memoryPressure(e *env) {
	node := e.lastNode()
	here, once := spec("nodeName: "+node), spec("restartPolicy: Never")
	e.apply(pod("best-effort", "allocate 96", here, once) +
		pod("burstable", "allocate 128", here, once, container("resources: {requests: {memory: 100Mi}}")) +
		pod("guaranteed", "grow 1024", here, once, container("resources: {requests: {cpu: 100m, memory: 2Gi}, limits: {cpu: 100m, "+
			"memory: 2Gi}}")))
	e.ready("best-effort", "burstable", "guaranteed")
	for name, bytes := range map[string]int64{"best-effort": 96 << 20, "burstable": 128 << 20} {
		e.until(func() { e.measured(node, name, bytes) })
	}
	const threshold = 100 << 20 // the kubelet's default
	restore := e.leaveMemory(threshold + 24<<20)
	const pressure = `{.status.conditions[?(@.type=="MemoryPressure")].status}`
	// The node's status in the API may be some seconds old, so only a Pod shows that the node takes Pods again.
	relieved := func() {
		e.until(func() {
			e.apply(pod("after", "wait", here))
			phase := e.get("pod/after", "{.status.phase}")
			if phase == "Failed" { // the kubelet has refused it
				e.kubectl("delete", "pod/after")
			}
			if phase != "Running" {
				fail("without pressure, a Pod is %s", phase)
			}
		})
	}
	e.cleanup(relieved)
	e.cleanup(restore)
	e.becomes("node/"+node, pressure, "True")
	e.evicted("best-effort")
	e.wait("jsonpath={.status.containerStatuses[0].state.terminated}", "pod/burstable")
	restore()
	e.is("events", `{.items[?(@.reason=="Evicted")].involvedObject.name}`, "best-effort burstable")
	e.is("pod/guaranteed", "{.status.phase}", "Running")
	relieved()
}

// measured requires that the kubelet knows what a Pod uses, bytes at least. It measures every 10 s or so, and evicts a Pod first of which
// it knows nothing yet.
func (e *env) measured(node, name string, bytes int64) {
	type summary struct {
		Pods []struct {
			PodRef struct{ Name, Namespace string }
			Memory struct{ WorkingSetBytes int64 }
		}
	}
	for _, p := range getJSON[summary](e, "/api/v1/nodes/"+node+"/proxy/stats/summary").Pods {
		if p.PodRef.Name == name && p.PodRef.Namespace == e.namespace && p.Memory.WorkingSetBytes >= bytes {
			return
		}
	}
	fail("the kubelet has not measured yet what Pod %s uses", name)
}

// leaveMemory limits the memory of all Pods on the last node to what they use and some bytes more. What the page cache has of it is not in
// use, as the kubelet sees it.
func (e *env) leaveMemory(bytes int64) (restore func()) {
	usage := e.controlGroup("", "memory", "memory.usage_in_bytes", "memory.current").read()
	stat := e.controlGroup("", "memory", "memory.stat", "memory.stat").read()
	used := must(strconv.ParseInt(usage, 10, 64))
	limit := e.controlGroup("", "memory", "memory.limit_in_bytes", "memory.max")
	before := limit.read()
	limit.write(strconv.FormatInt(used-must(inactive(stat))+bytes, 10))
	return func() { limit.write(before) }
}

// inactive returns the bytes of the page cache that are not in use, from the file memory.stat of a control group. In version 1, the figure
// with the prefix total_ includes groups below.
func inactive(stat string) (int64, error) {
	for _, name := range []string{"total_inactive_file", "inactive_file"} {
		for line := range strings.Lines(stat) {
			if of, value, _ := strings.Cut(strings.TrimSpace(line), " "); of == name {
				return strconv.ParseInt(value, 10, 64)
			}
		}
	}
	return 0, errors.New("memory.stat has no inactive_file")
}

// unusedImage is the artifact with an image that no part of a cluster runs.
const unusedImage = "kubectl.tar"

// A node whose disk is almost full takes no Pods, removes the images that no container uses, and evicts Pods, but not critical ones. Once
// there is space, it takes Pods again, and pulls the image again.
func diskPressure(e *env) {
	image := must(e.Image(unusedImage))
	node := e.lastNode()
	on := spec("nodeName: " + node)
	once := strings.ReplaceAll(pod("once", "version --client", on, spec("restartPolicy: Never")), "$image", image)
	runOnce := func() {
		e.apply(once)
		e.wait("jsonpath={.status.phase}=Succeeded", "pod/once")
		e.kubectl("delete", "pod/once")
	}
	runOnce()
	e.hasImage(node, image, true)

	// By default, there is pressure if less than 15 % of an image file system is available.
	e.apply(pod("victim", "wait", on) + pod("critical", "reserve /data/file 90", on,
		container("volumeMounts: [{name: data, mountPath: /data}]"),
		spec("{priorityClassName: system-node-critical, securityContext: {runAsUser: 0}, volumes: [{name: data, emptyDir: {}}]}")))
	e.cleanup(func() {
		e.kubectl("delete", "pod/critical", "--ignore-not-found")
		e.becomes("node/"+node, diskPressureStatus, "False")
	})
	e.ready("victim", "critical")
	const tainted = `{.spec.taints[?(@.key=="node.kubernetes.io/disk-pressure")].effect}`
	e.becomes("node/"+node, diskPressureStatus, "True")
	e.becomes("node/"+node, tainted, "NoSchedule")
	e.evicted("victim")
	e.hasImage(node, image, false)
	e.hasImage(node, e.image, true) // a container runs it
	e.is("pod/critical", "{.status.phase}", "Running")

	e.kubectl("delete", "pod/critical")
	e.becomes("node/"+node, tainted, "")
	runOnce()
}

// diskPressureStatus is the JSONPath of a node's condition.
const diskPressureStatus = `{.status.conditions[?(@.type=="DiskPressure")].status}`

// hasImage waits until the kubelet of a node reports that it has an image, or that it has not.
func (e *env) hasImage(node, image string, want bool) {
	e.until(func() {
		names := e.get("node/"+node, "{.status.images[*].names[*]}")
		if strings.Contains(" "+names+" ", " "+image+" ") != want {
			fail("that %s is on %s is %t: it has %s", image, node, !want, names)
		}
	})
}
