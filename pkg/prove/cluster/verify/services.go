package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
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

// web makes two Pods that serve, and a client to ask from.
func (e *env) web(ctx context.Context) error {
	names := []string{"web-0", "web-1"}
	text := pod("client", "wait")
	for n, name := range names {
		text += pod(name, "serve", label("app: web"), spec("{hostname: "+name+", subdomain: web, nodeName: "+e.nodes[n%len(e.nodes)].Name+"}"))
	}
	if err := e.apply(ctx, text); err != nil {
		return err
	}
	return e.ready(ctx, append(names, "client")...)
}

// service makes a Service for the Pods of web.
func (e *env) service(ctx context.Context, name string, fields ...string) error {
	return e.apply(ctx, `{apiVersion: v1, kind: Service, metadata: {name: $name},
  spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}], $fields}}`, "name", name, "fields", strings.Join(fields, ", "))
}

// reaches requires that the client gets answers from both Pods, and from no other.
func (e *env) reaches(ctx context.Context, url string) error {
	return until(ctx, func() error {
		said, err := e.exec(ctx, "client", "fetch", url+"/hostname", "20")
		if err == nil {
			err = fromBoth(said)
		}
		return err
	})
}

// fromBoth requires that the answers are the names of both Pods.
func fromBoth(said string) error {
	names := strings.Fields(said)
	slices.Sort(names)
	if names = slices.Compact(names); !slices.Equal(names, []string{"web-0", "web-1"}) {
		return fmt.Errorf("answers come from %q, want web-0 and web-1", names)
	}
	return nil
}

// A cluster IP leads to each Pod of the Service, and refuses connections when there is none.
func clusterIP(ctx context.Context, e *env) error {
	if err := e.web(ctx); err != nil {
		return err
	}
	if err := e.service(ctx, "web"); err != nil {
		return err
	}
	ip, err := e.get(ctx, "service/web", "{.spec.clusterIP}")
	if err != nil {
		return err
	}
	if err := e.reaches(ctx, "http://"+ip); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "delete", "pods", "--selector=app=web", "--now"); err != nil {
		return err
	}
	return until(ctx, func() error {
		_, err := e.exec(ctx, "client", "fetch", "http://"+ip+"/hostname")
		return isRefused("connection refused")("an answer", err)
	})
}

// A port of each node leads this machine to each Pod.
func nodePort(ctx context.Context, e *env) error {
	if err := e.web(ctx); err != nil {
		return err
	}
	if err := e.service(ctx, "web", "type: NodePort"); err != nil {
		return err
	}
	port, err := e.get(ctx, "service/web", "{.spec.ports[0].nodePort}")
	if err != nil {
		return err
	}
	for _, n := range e.nodes {
		if err := machineReaches(ctx, "http://"+n.Address+":"+port); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

// machineReaches requires that this machine gets answers from both Pods, and from no other.
func machineReaches(ctx context.Context, url string) error {
	return reachesBoth(ctx, httpGet, url)
}

// reachesBoth requires answers from both Pods, and from no other.
func reachesBoth(ctx context.Context, ask func(ctx context.Context, url string) (string, error), url string) error {
	return until(ctx, func() error {
		var said []string
		for range 20 {
			name, err := ask(ctx, url+"/hostname")
			if err != nil {
				return err
			}
			said = append(said, name)
		}
		return fromBoth(strings.Join(said, " "))
	})
}

// Each Service of type LoadBalancer has an address of its own, which leads this machine to each Pod, until the Service is deleted.
func loadBalancer(ctx context.Context, e *env) error {
	if err := e.web(ctx); err != nil {
		return err
	}
	const ip = "{.status.loadBalancer.ingress[0].ip}"
	var addresses []string
	for _, name := range []string{"web", "other"} {
		if err := e.service(ctx, name, "type: LoadBalancer"); err != nil {
			return err
		}
		if err := e.wait(ctx, "jsonpath="+ip, "service/"+name); err != nil {
			return err
		}
		address, err := e.get(ctx, "service/"+name, ip)
		if err != nil {
			return err
		}
		if slices.Contains(addresses, address) {
			return fmt.Errorf("both Services have the address %s", address)
		}
		if err := machineReaches(ctx, "http://"+address); err != nil {
			return err
		}
		addresses = append(addresses, address)
	}
	silent := func(address string) error {
		return until(ctx, func() error {
			if _, err := httpGet(ctx, "http://"+address+"/hostname"); err == nil {
				return fmt.Errorf("%s still leads to Pods, though no Service has it", address)
			}
			return nil
		})
	}
	if _, err := e.kubectl(ctx, "delete", "service/web"); err != nil {
		return err
	}
	if err := silent(addresses[0]); err != nil {
		return err
	}
	if err := machineReaches(ctx, "http://"+addresses[1]); err != nil {
		return err
	}
	// Another Service may want the address that is free now, and then has no other.
	if err := e.service(ctx, "other", "type: LoadBalancer", "loadBalancerIP: "+addresses[0]); err != nil {
		return err
	}
	if err := machineReaches(ctx, "http://"+addresses[0]); err != nil {
		return err
	}
	return silent(addresses[1])
}

// resolves requires that a name has exactly the wanted addresses; without any, that it does not exist.
func (e *env) resolves(ctx context.Context, name string, want ...string) error {
	slices.Sort(want)
	return until(ctx, func() error {
		said, err := e.exec(ctx, "client", "resolve", name)
		if len(want) == 0 {
			return isRefused("no such host")(said, err)
		}
		if got := strings.Fields(said); err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%s is %q, want %q", name, got, want)
		}
		return err
	})
}

// addresses returns the addresses of the Pods that serve.
func (e *env) addresses(ctx context.Context) ([]string, error) {
	all, err := e.get(ctx, "pods", "{.items[*].status.podIP}", "--selector=app=web")
	return strings.Fields(all), err
}

// The name of a Service without a cluster IP resolves to its Pods, and each Pod has a name of its own.
func headless(ctx context.Context, e *env) error {
	if err := e.web(ctx); err != nil {
		return err
	}
	if err := e.service(ctx, "web", "clusterIP: None"); err != nil {
		return err
	}
	all, err := e.addresses(ctx)
	if err != nil {
		return err
	}
	if err := e.resolves(ctx, "web", all...); err != nil {
		return err
	}
	one, err := e.get(ctx, "pod/web-1", "{.status.podIP}")
	if err != nil {
		return err
	}
	return e.resolves(ctx, "web-1.web."+e.namespace+".svc.cluster.local", one)
}

// The name of an ExternalName Service is an alias.
func externalName(ctx context.Context, e *env) error {
	if err := e.web(ctx); err != nil {
		return err
	}
	if err := e.service(ctx, "web"); err != nil {
		return err
	}
	target := "web." + e.namespace + ".svc.cluster.local"
	if err := e.apply(ctx, `{apiVersion: v1, kind: Service, metadata: {name: other}, spec: {type: ExternalName, externalName: $target}}`,
		"target", target); err != nil {
		return err
	}
	err := until(ctx, func() error {
		said, err := e.exec(ctx, "client", "alias", "other."+e.namespace+".svc.cluster.local")
		if err == nil && said != target+"." {
			err = fmt.Errorf("other is an alias for %q, want %s", said, target)
		}
		return err
	})
	if err != nil {
		return err
	}
	return e.reaches(ctx, "http://other")
}

// A Service with session affinity leads a client to the same Pod every time.
func sessionAffinity(ctx context.Context, e *env) error {
	if err := e.web(ctx); err != nil {
		return err
	}
	if err := e.service(ctx, "web", "sessionAffinity: ClientIP"); err != nil {
		return err
	}
	if err := e.service(ctx, "any"); err != nil { // shows that both can be reached
		return err
	}
	if err := e.reaches(ctx, "http://any"); err != nil {
		return err
	}
	return until(ctx, func() error {
		said, err := e.exec(ctx, "client", "fetch", "http://web/hostname", "20")
		if names := strings.Fields(said); err == nil && len(slices.Compact(names)) != 1 {
			err = fmt.Errorf("one client gets answers from %q", names)
		}
		return err
	})
}

// The short, the qualified and the full name of a Service resolve to its cluster IP, and SRV records have its ports.
func dns(ctx context.Context, e *env) error {
	if err := e.web(ctx); err != nil {
		return err
	}
	if err := e.service(ctx, "web"); err != nil {
		return err
	}
	ip, err := e.get(ctx, "service/web", "{.spec.clusterIP}")
	if err != nil {
		return err
	}
	full := "web." + e.namespace + ".svc.cluster.local"
	for _, name := range []string{"web", "web." + e.namespace, "web." + e.namespace + ".svc", full} {
		if err := e.resolves(ctx, name, ip); err != nil {
			return err
		}
	}
	if err := e.resolves(ctx, "nothing."+e.namespace+".svc.cluster.local"); err != nil {
		return err
	}
	return until(ctx, func() error {
		said, err := e.exec(ctx, "client", "service", "_http._tcp."+full)
		if err == nil && said != full+". 80" {
			err = fmt.Errorf("the record of the Service's port is %q, want %q", said, full+". 80")
		}
		return err
	})
}

// The environment of a Pod has the Services that existed before it.
func environment(ctx context.Context, e *env) error {
	if err := e.service(ctx, "my-web"); err != nil {
		return err
	}
	ip, err := e.get(ctx, "service/my-web", "{.spec.clusterIP}")
	if err != nil {
		return err
	}
	if err := e.apply(ctx, pod("client", "serve")); err != nil {
		return err
	}
	if err := e.ready(ctx, "client"); err != nil {
		return err
	}
	for name, want := range map[string]string{"MY_WEB_SERVICE_HOST": ip, "MY_WEB_SERVICE_PORT_HTTP": "80", "KUBERNETES_SERVICE_PORT": "443"} {
		got, err := e.exec(ctx, "client", "fetch", "http://127.0.0.1:8080/env?name="+name)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	return nil
}

const proxyConfig = "configmap/kube-proxy"

// withMode returns a configuration of kube-proxy in another mode, and the mode that it had.
func withMode(config, mode string) (changed, before string, err error) {
	var c map[string]any
	if err := yaml.Unmarshal([]byte(config), &c); err != nil {
		return "", "", fmt.Errorf("%s: %w", proxyConfig, err)
	}
	before, _ = c["mode"].(string)
	c["mode"] = mode
	text, err := yaml.Marshal(c)
	return string(text), before, err
}

// In each of kube-proxy's modes, new Services lead to their Pods.
func proxyMode(mode string) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		if mode == "ipvs" && !kernelHasIPVS() {
			return skip("needs IPVS in the kernel: there is no /proc/net/ip_vs (try modprobe ip_vs)")
		}
		before, err := e.get(ctx, proxyConfig, `{.data.config\.conf}`, "--namespace=kube-system")
		if err != nil {
			return err
		}
		changed, now, err := withMode(before, mode)
		if err != nil {
			return err
		}
		if now != mode {
			e.cleanup(func(ctx context.Context) error { return e.configureProxy(ctx, before) })
			if err := e.configureProxy(ctx, changed); err != nil {
				return err
			}
		}
		if err := e.proxiesSay(ctx, mode); err != nil {
			return err
		}
		if err := e.web(ctx); err != nil {
			return err
		}
		if err := e.service(ctx, "web", "type: NodePort"); err != nil {
			return err
		}
		if err := e.reaches(ctx, "http://web"); err != nil {
			return err
		}
		port, err := e.get(ctx, "service/web", "{.spec.ports[0].nodePort}")
		if err != nil {
			return err
		}
		return until(ctx, func() error {
			_, err := httpGet(ctx, "http://"+e.nodes[0].Address+":"+port+"/hostname")
			return err
		})
	}
}

// configureProxy changes the configuration of all kube-proxies, and waits until they run with it.
func (e *env) configureProxy(ctx context.Context, config string) error {
	patch, err := json.Marshal(map[string]any{"data": map[string]string{"config.conf": config}})
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"patch", proxyConfig, "--type=merge", "--patch=" + string(patch)},
		{"rollout", "restart", "daemonset/kube-proxy"},
		{"rollout", "status", "daemonset/kube-proxy", patience(ctx)},
	} {
		if _, err := e.kubectl(ctx, append([]string{"--namespace=kube-system"}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// proxiesSay requires that each kube-proxy logs that it runs in a mode.
func (e *env) proxiesSay(ctx context.Context, mode string) error {
	return until(ctx, func() error {
		said, err := e.kubectl(ctx, "--namespace=kube-system", "logs", "--selector=k8s-app=kube-proxy", "--tail=-1", "--prefix")
		if err != nil {
			return err
		}
		if n := strings.Count(said, "Using "+mode+" Proxier"); n != len(e.nodes) {
			return fmt.Errorf("%d kube-proxies log that they use %s, want %d", n, mode, len(e.nodes))
		}
		return nil
	})
}

func kernelHasIPVS() bool {
	_, err := os.Stat("/proc/net/ip_vs")
	return err == nil
}
