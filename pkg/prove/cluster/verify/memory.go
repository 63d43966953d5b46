package verify

import (
	"errors"
	"strconv"
	"strings"
)

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
