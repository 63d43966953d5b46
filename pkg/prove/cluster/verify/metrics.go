package verify

import (
	"fmt"
	"strings"
)

// What metrics-server measures.
var metricsChecks = group("metrics", []string{kubelet, kubeProxy, metricsServer},
	Check{Name: "nodes", run: metricsOfNodes},
	Check{Name: "pods", Needs: []string{scheduler}, run: metricsOfPods},
	Check{Name: "autoscaling", Long: true, Needs: []string{scheduler}, run: autoscaling},
)

// kubectl top shows how busy each node is.
func metricsOfNodes(e *env) {
	e.until(func() {
		rows := e.top("nodes")
		for _, n := range e.nodes {
			row := rows[n.Name]
			if len(row) != 5 || !strings.HasSuffix(row[1], "m") || !strings.HasSuffix(row[3], "Mi") || row[3] == "0Mi" {
				fail("for node %s it prints %q", n.Name, row)
			}
		}
	})
}

// kubectl top shows the memory that a Pod has allocated.
func metricsOfPods(e *env) {
	e.apply(pod("large", "allocate 100"))
	e.ready("large")
	e.until(func() {
		rows := e.top("pods")
		var memory int
		if row := rows["large"]; len(row) == 3 {
			_, _ = fmt.Sscanf(row[2], "%dMi", &memory) // of another form, it stays 0
		}
		if memory < 100 || memory > 200 {
			fail("for a Pod that uses 100Mi it prints %q", rows["large"])
		}
	})
}

// top returns the rows of kubectl top by their first cell.
func (e *env) top(what string) map[string][]string {
	rows := map[string][]string{}
	for line := range strings.Lines(e.kubectl("top", what, "--no-headers")) {
		if cells := strings.Fields(line); len(cells) > 0 {
			rows[cells[0]] = cells
		}
	}
	return rows
}

// An autoscaler adds a Pod when those there are use more than they should.
func autoscaling(e *env) {
	e.apply(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: $image, imagePullPolicy: IfNotPresent, args: [allocate, "64"], resources: {requests: {memory: 32Mi}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 2
  metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 50}}}]
`)
	e.wait("jsonpath={.spec.replicas}=2", "deployment/web")
	// It scales first, and says why later.
	e.becomes("horizontalpodautoscaler/web", `{.status.conditions[?(@.type=="ScalingActive")].reason}`, "ValidMetricFound")
}
