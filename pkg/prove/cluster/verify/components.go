package verify

import (
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/prove/cluster"
)

// components is the group of checks that find out whether the programs of the cluster run.
const components = "components"

// The names of components, which are those of their checks.
const (
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kubelet           = "kubelet"
	kubeProxy         = "kube-proxy"
	coreDNS           = "coredns"
	metricsServer     = "metrics-server"
	cloudManager      = "cloud-controller-manager"
	ingressController = "traefik"
	storageAddon      = "storage"
)

// podLabels select the Pods of components, whose logs explain failures. A kubelet has none.
var podLabels = map[string]string{
	apiServer:         "component=kube-apiserver",
	controllerManager: "component=kube-controller-manager",
	scheduler:         "component=kube-scheduler",
	kubeProxy:         "k8s-app=kube-proxy",
	coreDNS:           "k8s-app=kube-dns",
	metricsServer:     "k8s-app=metrics-server",
	cloudManager:      "k8s-app=cloud-controller-manager",
	ingressController: "k8s-app=traefik",
	storageAddon:      "k8s-app=csi-disk",
}

// Each asks the program itself, or for what only the program does, if possible: the Pod of a stopped program still claims to be ready.
var componentChecks = []Check{
	component(apiServer, apiServerReady),
	component(controllerManager, renewsLease(controllerManager)),
	component(scheduler, renewsLease(scheduler)),
	component(kubelet, kubeletsAnswer),
	component(kubeProxy, proxiesAnswer),
	component(coreDNS, deploymentAvailable(coreDNS)),
	component(metricsServer, podsRun(metricsServer)), // it is ready only once it has measured twice
	component(cloudManager, podsRun(cloudManager)),
	component(ingressController, deploymentAvailable(ingressController)),
	component(storageAddon, volumesServed),
}

// component returns the check of a component. It waits for less time than others: it is about what runs already.
func component(name string, run func(*env)) Check {
	c := Check{Group: components, Name: name, Limit: time.Minute, run: run}
	if name != apiServer {
		c.Needs = []string{apiServer}
	}
	return c
}

func apiServerReady(e *env) {
	e.until(func() { e.kubectl("get", "--raw", "/readyz?verbose", "--request-timeout=5s") })
}

// renewsLease requires that a component is elected and renews its lease, which it does every two seconds.
func renewsLease(name string) func(*env) {
	return func(e *env) {
		if e.ControlPlaneOnly {
			e.healthy(name)
			return
		}
		e.leaseField(name, "holderIdentity", "")
		before := e.leaseField(name, "renewTime", "")
		e.leaseField(name, "renewTime", before)
	}
}

// healthy waits until a program of a control plane without nodes, which holds no lease, says that it is healthy.
func (e *env) healthy(name string) {
	i := slices.IndexFunc(e.Processes, func(p cluster.Process) bool { return p.Name == name })
	if i < 0 {
		fail("the cluster has no %s", name)
	}
	e.until(func() {
		// The program has signed its own certificate.
		e.kubectl("get", "--raw=/healthz", "--server="+e.Processes[i].Address, "--insecure-skip-tls-verify",
			"--request-timeout=5s")
	})
}

// leaseField returns a field of a component's lease once it is set and differs from its value before.
func (e *env) leaseField(name, field, before string) (now string) {
	e.until(func() {
		now = e.get("lease/"+name, "{.spec."+field+"}", "--namespace=kube-system", "--request-timeout=5s")
		if now == "" || now == before {
			fail("%s of lease/%s is still %q", field, name, now)
		}
	})
	return now
}

func kubeletsAnswer(e *env) {
	for _, n := range e.nodes {
		during("kubelet of "+n.Name, func() {
			e.until(func() {
				said := e.kubectl("get", "--raw", "/api/v1/nodes/"+n.Name+"/proxy/healthz", "--request-timeout=5s")
				if strings.TrimSpace(said) != "ok" {
					fail("its health is %q, want ok", said)
				}
			})
		})
	}
}

func proxiesAnswer(e *env) {
	for _, n := range e.nodes {
		during("kube-proxy of "+n.Name, func() {
			e.until(func() { e.httpGet("http://" + n.Address + ":10256/livez") })
		})
	}
}

func deploymentAvailable(name string) func(*env) {
	return func(e *env) {
		e.until(func() {
			available := e.get("deployment/"+name, "{.status.availableReplicas}", "--namespace=kube-system", "--request-timeout=5s")
			if available == "" || available == "0" {
				fail("deployment/%s has no available Pod", name)
			}
		})
	}
}

// volumesServed requires that what works for all nodes runs, and that each kubelet knows the driver.
func volumesServed(e *env) {
	deploymentAvailable("csi-disk-controller")(e)
	for _, n := range e.nodes {
		e.becomes("csinode/"+n.Name, `{.spec.drivers[?(@.name=="disk.csi.slipway.build")].nodeID}`, n.Name)
	}
}

func podsRun(name string) func(*env) {
	return func(e *env) {
		e.until(func() {
			started := e.get("pods", "{.items[*].status.containerStatuses[*].state.running.startedAt}",
				"--namespace=kube-system", "--selector="+podLabels[name], "--request-timeout=5s")
			if started == "" {
				fail("no container of it runs")
			}
		})
	}
}
