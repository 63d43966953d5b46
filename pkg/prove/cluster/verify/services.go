package verify

import (
	"net"
	"slices"
	"strings"
	"time"
)

// How Pods and this machine reach Services, and by which names.
var serviceChecks = group("services", []string{scheduler, kubelet, kubeProxy, coreDNS},
	Check{Name: "cluster-ip", run: clusterIP},
	Check{Name: "node-port", run: nodePort},
	Check{Name: "load-balancer", Needs: []string{cloudManager}, run: loadBalancer},
	Check{Name: "ingress", Needs: []string{ingressController}, run: ingress},
	Check{Name: "headless", run: headless},
	Check{Name: "external-name", run: externalName},
	Check{Name: "session-affinity", run: sessionAffinity},
	Check{Name: "dns", run: dns},
	Check{Name: "environment", run: environment},
	Check{Name: "proxy-nftables", Alone: true, Limit: 5 * time.Minute, run: proxyMode("nftables")},
	Check{Name: "proxy-ipvs", Alone: true, Skips: true, Limit: 5 * time.Minute, run: proxyMode("ipvs")},
	Check{Name: "proxy-iptables", Alone: true, Limit: 5 * time.Minute, run: proxyMode("iptables")},
)

// web creates two Pods that serve, and a client that asks them.
func (e *env) web() {
	names := []string{"web-0", "web-1"}
	text := pod("client", "wait")
	for n, name := range names {
		text += pod(name, "serve", label("app: web"), spec("{hostname: "+name+", subdomain: web, nodeName: "+e.nodes[n%len(e.nodes)].Name+"}"))
	}
	e.apply(text)
	e.ready(append(names, "client")...)
}

// service applies a Service for the Pods of web.
func (e *env) service(name string, fields ...string) {
	e.apply(`{apiVersion: v1, kind: Service, metadata: {name: $name},
  spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}], $fields}}`,
		"name", name, "fields", strings.Join(fields, ", "))
}

// reaches waits until the client gets answers from both Pods and no other.
func (e *env) reaches(url string) {
	e.until(func() { fromBoth(e.exec("client", "fetch", url+"/hostname", "20")) })
}

// machineReaches waits until this machine gets answers from both Pods and no other.
func (e *env) machineReaches(url string) { e.reachesBoth(e.httpGet, url) }

// reachesBoth waits until answers come from both Pods and no other.
func (e *env) reachesBoth(ask func(url string) string, url string) {
	e.until(func() {
		var said []string
		for range 20 {
			said = append(said, ask(url+"/hostname"))
		}
		fromBoth(strings.Join(said, " "))
	})
}

// fromBoth requires that the answers are the names of both Pods.
func fromBoth(said string) {
	names := strings.Fields(said)
	slices.Sort(names)
	if names = slices.Compact(names); !slices.Equal(names, []string{"web-0", "web-1"}) {
		fail("answers come from %q, want web-0 and web-1", names)
	}
}

// A cluster IP leads to each Pod of the Service, and refuses connections when there is none.
func clusterIP(e *env) {
	e.web()
	e.service("web")
	ip := e.get("service/web", "{.spec.clusterIP}")
	e.reaches("http://" + ip)
	e.kubectl("delete", "pods", "--selector=app=web", "--now")
	e.until(func() {
		refused("connection refused", func() string { return e.exec("client", "fetch", "http://"+ip+"/hostname") })
	})
}

// A port of each node leads this machine to each Pod.
func nodePort(e *env) {
	e.web()
	e.service("web", "type: NodePort")
	port := e.get("service/web", "{.spec.ports[0].nodePort}")
	for _, n := range e.nodes {
		during("node "+n.Name, func() { e.machineReaches("http://" + n.Address + ":" + port) })
	}
}

// Each Service of type LoadBalancer has an address of its own, which leads this machine to each Pod, until the Service is deleted.
func loadBalancer(e *env) {
	e.web()
	const ip = "{.status.loadBalancer.ingress[0].ip}"
	var addresses []string
	for _, name := range []string{"web", "other"} {
		e.service(name, "type: LoadBalancer")
		e.wait("jsonpath="+ip, "service/"+name)
		address := e.get("service/"+name, ip)
		if slices.Contains(addresses, address) {
			fail("both Services have the address %s", address)
		}
		e.machineReaches("http://" + address)
		addresses = append(addresses, address)
	}
	silent := func(address string) {
		e.until(func() {
			c, err := net.DialTimeout("tcp", net.JoinHostPort(address, "80"), time.Second)
			if err == nil {
				c.Close()
				fail("%s still leads somewhere, though no Service has it", address)
			}
		})
	}
	e.kubectl("delete", "service/web")
	silent(addresses[0])
	e.machineReaches("http://" + addresses[1])
	// A Service may ask for the address that is free now, and then loses its own.
	e.service("other", "type: LoadBalancer", "loadBalancerIP: "+addresses[0])
	e.machineReaches("http://" + addresses[0])
	silent(addresses[1])
}

// resolves waits until a name has exactly these addresses.
func (e *env) resolves(name string, want ...string) {
	slices.Sort(want)
	e.until(func() {
		if got := strings.Fields(e.exec("client", "resolve", name)); !slices.Equal(got, want) {
			fail("%s is %q, want %q", name, got, want)
		}
	})
}

// The name of a Service without a cluster IP resolves to its Pods, and each Pod has a name of its own.
func headless(e *env) {
	e.web()
	e.service("web", "clusterIP: None")
	e.resolves("web", strings.Fields(e.get("pods", "{.items[*].status.podIP}", "--selector=app=web"))...)
	e.resolves("web-1.web."+e.namespace+".svc.cluster.local", e.get("pod/web-1", "{.status.podIP}"))
}

// The name of an ExternalName Service is an alias.
func externalName(e *env) {
	e.web()
	e.service("web")
	target := "web." + e.namespace + ".svc.cluster.local"
	e.apply(`{apiVersion: v1, kind: Service, metadata: {name: other}, spec: {type: ExternalName, externalName: $target}}`,
		"target", target)
	e.until(func() {
		if said := e.exec("client", "alias", "other."+e.namespace+".svc.cluster.local"); said != target+"." {
			fail("other is an alias for %q, want %s", said, target)
		}
	})
	e.reaches("http://other")
}

// A Service with session affinity leads a client to the same Pod every time.
func sessionAffinity(e *env) {
	e.web()
	e.service("web", "sessionAffinity: ClientIP")
	e.service("any") // shows that both can be reached
	e.reaches("http://any")
	e.until(func() {
		names := strings.Fields(e.exec("client", "fetch", "http://web/hostname", "20"))
		if len(slices.Compact(names)) != 1 {
			fail("one client gets answers from %q", names)
		}
	})
}

// The short, the qualified and the full name of a Service resolve to its cluster IP, and SRV records have its ports.
func dns(e *env) {
	e.web()
	e.service("web")
	ip := e.get("service/web", "{.spec.clusterIP}")
	full := "web." + e.namespace + ".svc.cluster.local"
	for _, name := range []string{"web", "web." + e.namespace, "web." + e.namespace + ".svc", full} {
		e.resolves(name, ip)
	}
	e.until(func() {
		refused("no such host", func() string {
			return e.exec("client", "resolve", "nothing."+e.namespace+".svc.cluster.local")
		})
	})
	e.until(func() {
		if said := e.exec("client", "service", "_http._tcp."+full); said != full+". 80" {
			fail("the record of the Service's port is %q, want %q", said, full+". 80")
		}
	})
}

// A Pod has environment variables for the Services that existed before it.
func environment(e *env) {
	e.service("my-web")
	ip := e.get("service/my-web", "{.spec.clusterIP}")
	e.apply(pod("client", "serve"))
	e.ready("client")
	for name, want := range map[string]string{"MY_WEB_SERVICE_HOST": ip, "MY_WEB_SERVICE_PORT_HTTP": "80", "KUBERNETES_SERVICE_PORT": "443"} {
		if got := e.exec("client", "fetch", "http://127.0.0.1:8080/env?name="+name); got != want {
			fail("%s is %q, want %q", name, got, want)
		}
	}
}
