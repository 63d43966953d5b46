package verify

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
)

// What components say of themselves, and what metrics-server measures.
var metricsChecks = group("metrics", []string{kubelet, kubeProxy},
	Check{Name: "endpoints", run: metricsOfComponents},
	Check{Name: "nodes", Needs: []string{metricsServer}, run: metricsOfNodes},
	Check{Name: "pods", Needs: []string{scheduler, metricsServer}, run: metricsOfPods},
	Check{Name: "autoscaling", Long: true, Needs: []string{scheduler, metricsServer}, run: autoscaling},
)

// Each component of Kubernetes has metrics, its version among them, for who has a role that may read them, and for nobody else. Those of
// kube-proxy, etcd and CoreDNS are for all who reach them.
func metricsOfComponents(e *env) {
	e.cleanup(func() {
		e.kubectl("delete", "clusterrole/"+e.namespace, "clusterrolebinding/"+e.namespace, "--ignore-not-found")
	})
	e.kubectl("create", "clusterrole", e.namespace, "--verb=get", "--non-resource-url=/metrics", "--resource=nodes/metrics")
	e.kubectl("create", "clusterrolebinding", e.namespace, "--clusterrole="+e.namespace, "--serviceaccount="+e.namespace+":default")
	token := e.token()
	version := fmt.Sprintf(`git_version="%s"`, e.Version)
	// The certificates may be anybody's.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	says := func(what, url, token, want string) {
		during("metrics of "+what, func() {
			e.until(func() {
				if text := e.httpGetBy(transport, url+"/metrics", token); !strings.Contains(text, want) {
					fail("%s/metrics lacks %q", url, want)
				}
			})
		})
	}
	secured := func(what, url string) {
		says(what, url, token, version)
		during("metrics of "+what+" without a token", func() {
			e.until(func() { // a forwarded port may drop a connection
				refused("answers 40", func() string { return e.httpGetBy(transport, url+"/metrics", "") })
			})
		})
	}
	forwarded := func(label, port string, steps func(address string)) {
		name := e.get("pods", "{.items[0].metadata.name}", "--namespace=kube-system", "--selector="+label)
		address, stop := e.forward(name, port, "--namespace=kube-system")
		defer stop()
		steps(address)
	}
	secured(apiServer, "https://"+e.nodes[0].Address+":6443")
	for _, n := range e.nodes {
		secured("kubelet of "+n.Name, "https://"+n.Address+":10250")
	}
	for name, port := range map[string]string{controllerManager: "10257", scheduler: "10259"} {
		forwarded(podLabels[name], port, func(address string) { secured(name, "https://"+address) })
	}
	for _, tt := range []struct{ name, label, port, want string }{
		{kubeProxy, podLabels[kubeProxy], "10249", version},
		{"etcd", "component=etcd", "2381", "etcd_server_has_leader 1"},
		{coreDNS, podLabels[coreDNS], "9153", "coredns_build_info{"},
	} {
		forwarded(tt.label, tt.port, func(address string) { says(tt.name, "http://"+address, "", tt.want) })
	}
}

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
