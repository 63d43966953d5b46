package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// When the Pods of a node use nearly all the memory that they may have together, the kubelet reports pressure and evicts those that use
// more than they requested. The first is the one that exceeds its request by most: a best-effort Pod, even if a burstable one uses more.
// The burstable one is the second, and a guaranteed one goes on and even grows.
func memoryPressure(ctx context.Context, e *env) error {
	node := e.lastNode()
	here, once := spec("nodeName: "+node), spec("restartPolicy: Never")
	err := e.apply(ctx, pod("best-effort", "allocate 96", here, once)+
		pod("burstable", "allocate 128", here, once, container("resources: {requests: {memory: 100Mi}}"))+
		pod("guaranteed", "grow 1024", here, once, container("resources: {requests: {cpu: 100m, memory: 2Gi}, limits: {cpu: 100m, "+
			"memory: 2Gi}}")))
	if err != nil {
		return err
	}
	if err := e.ready(ctx, "best-effort", "burstable", "guaranteed"); err != nil {
		return err
	}
	for name, bytes := range map[string]int64{"best-effort": 96 << 20, "burstable": 128 << 20} {
		if err := until(ctx, func() error { return e.measured(ctx, node, name, bytes) }); err != nil {
			return err
		}
	}
	const threshold = 100 << 20 // the kubelet's default
	restore, err := e.leaveMemory(threshold + 24<<20)
	if err != nil {
		return err
	}
	const pressure = `{.status.conditions[?(@.type=="MemoryPressure")].status}`
	// The node's status in the API may be some seconds old, so only a Pod shows that the node takes Pods again.
	relieved := func(ctx context.Context) error {
		return until(ctx, func() error {
			if err := e.apply(ctx, pod("after", "wait", here)); err != nil {
				return err
			}
			phase, err := e.get(ctx, "pod/after", "{.status.phase}")
			if err == nil && phase == "Running" {
				return nil
			}
			if err == nil && phase == "Failed" { // the kubelet has refused it
				_, err = e.kubectl(ctx, "delete", "pod/after")
			}
			return cmp.Or(err, fmt.Errorf("without pressure, a Pod is %s", phase))
		})
	}
	e.cleanup(func(ctx context.Context) error { return errors.Join(restore(), relieved(ctx)) })
	if err := until(ctx, func() error { return e.is(ctx, "node/"+node, pressure, "True") }); err != nil {
		return err
	}
	if err := e.evicted(ctx, "best-effort"); err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.containerStatuses[0].state.terminated}", "pod/burstable"); err != nil {
		return err
	}
	if err := restore(); err != nil {
		return err
	}
	if err := e.is(ctx, "events", `{.items[?(@.reason=="Evicted")].involvedObject.name}`, "best-effort burstable"); err != nil {
		return err
	}
	if err := e.is(ctx, "pod/guaranteed", "{.status.phase}", "Running"); err != nil {
		return err
	}
	return relieved(ctx)
}

// measured requires that the kubelet knows what a Pod uses, bytes at least. It measures every 10 s or so, and evicts a Pod first of which
// it knows nothing yet.
func (e *env) measured(ctx context.Context, node, name string, bytes int64) error {
	said, err := e.kubectl(ctx, "get", "--raw", "/api/v1/nodes/"+node+"/proxy/stats/summary")
	if err != nil {
		return err
	}
	var summary struct {
		Pods []struct {
			PodRef struct{ Name, Namespace string }
			Memory struct{ WorkingSetBytes int64 }
		}
	}
	if err := json.Unmarshal([]byte(said), &summary); err != nil {
		return err
	}
	for _, p := range summary.Pods {
		if p.PodRef.Name == name && p.PodRef.Namespace == e.namespace && p.Memory.WorkingSetBytes >= bytes {
			return nil
		}
	}
	return fmt.Errorf("the kubelet has not measured yet what Pod %s uses", name)
}

// leaveMemory limits the memory of all Pods on the last node to what they use and some bytes more. What the page cache has of it is not in
// use, as the kubelet sees it.
func (e *env) leaveMemory(bytes int64) (restore func() error, err error) {
	usage, err := e.controlGroup("", "memory", "memory.usage_in_bytes", "memory.current").read()
	if err != nil {
		return nil, err
	}
	stat, err := e.controlGroup("", "memory", "memory.stat", "memory.stat").read()
	if err != nil {
		return nil, err
	}
	used, err := strconv.ParseInt(usage, 10, 64)
	if err != nil {
		return nil, err
	}
	cached, err := inactive(stat)
	if err != nil {
		return nil, err
	}
	limit := e.controlGroup("", "memory", "memory.limit_in_bytes", "memory.max")
	before, err := limit.read()
	if err != nil {
		return nil, err
	}
	return func() error { return limit.write(before) }, limit.write(strconv.FormatInt(used-cached+bytes, 10))
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
