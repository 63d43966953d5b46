package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// How Pods, and this machine, reach Services, and by which names.
var serviceChecks = group("services",
	Check{Name: "cluster-ip", run: clusterIP},
	Check{Name: "node-port", run: nodePort},
	Check{Name: "headless", run: headless},
	Check{Name: "external-name", run: externalName},
	Check{Name: "session-affinity", run: sessionAffinity},
	Check{Name: "dns", run: dns},
	Check{Name: "environment", run: environment},
	Check{Name: "proxy-nftables", Alone: true, Limit: 5 * time.Minute, run: proxyMode("nftables")},
	Check{Name: "proxy-ipvs", Alone: true, Skips: true, Limit: 5 * time.Minute, run: proxyMode("ipvs")},
	Check{Name: "proxy-iptables", Alone: true, Limit: 5 * time.Minute, run: proxyMode("iptables")},
)

// web are two Pods that serve, and another one, apart from them, to ask from.
func (e *env) web(ctx context.Context) error {
	names := []string{"web-0", "web-1"}
	text := pod("client", "wait")
	for n, name := range names {
		text += strings.Replace(pod(name, "serve", "hostname: "+name, "subdomain: web", "nodeName: "+e.nodes[n%len(e.nodes)].Name), "app: "+name, "app: web", 1)
	}
	if err := e.apply(ctx, text); err != nil {
		return err
	}
	return e.ready(ctx, append(names, "client")...)
}

// service makes a Service of them.
func (e *env) service(ctx context.Context, name string, fields ...string) error {
	return e.apply(ctx, `{apiVersion: v1, kind: Service, metadata: {name: $name},
  spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}], $fields}}`, "name", name, "fields", strings.Join(fields, ", "))
}

// reaches requires that the client gets an answer of both Pods, and of no other.
func (e *env) reaches(ctx context.Context, url string) error {
	return until(ctx, func() error {
		said, err := e.exec(ctx, "client", "fetch", url+"/hostname", "20")
		if err == nil {
			err = both(said)
		}
		return err
	})
}

func both(said string) error {
	names := strings.Fields(said)
	slices.Sort(names)
	if names = slices.Compact(names); !slices.Equal(names, []string{"web-0", "web-1"}) {
		return fmt.Errorf("it leads to %q, want web-0 and web-1", names)
	}
	return nil
}

// A cluster IP leads to each Pod of the Service, and nowhere when there is none.
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
		err := until(ctx, func() error {
			var said []string
			for range 20 {
				name, err := httpGet(ctx, "http://"+n.Address+":"+port+"/hostname")
				if err != nil {
					return err
				}
				said = append(said, name)
			}
			return both(strings.Join(said, " "))
		})
		if err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

// resolves requires that names are those of addresses, or of nothing.
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

func (e *env) addresses(ctx context.Context) ([]string, error) {
	all, err := e.get(ctx, "pods", "{.items[*].status.podIP}", "--selector=app=web")
	return strings.Fields(all), err
}

// The name of a Service without an address is that of its Pods, each of which has one, too.
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

// A Service can be another name of something.
func externalName(ctx context.Context, e *env) error {
	if err := e.web(ctx); err != nil {
		return err
	}
	if err := e.service(ctx, "web"); err != nil {
		return err
	}
	target := "web." + e.namespace + ".svc.cluster.local"
	if err := e.apply(ctx, `{apiVersion: v1, kind: Service, metadata: {name: other}, spec: {type: ExternalName, externalName: $target}}`, "target", target); err != nil {
		return err
	}
	err := until(ctx, func() error {
		said, err := e.exec(ctx, "client", "alias", "other."+e.namespace+".svc.cluster.local")
		if err == nil && said != target+"." {
			err = fmt.Errorf("other is an alias of %q, want %s", said, target)
		}
		return err
	})
	if err != nil {
		return err
	}
	return e.reaches(ctx, "http://other")
}

// A Service with session affinity leads one client to the same Pod every time.
func sessionAffinity(ctx context.Context, e *env) error {
	if err := e.web(ctx); err != nil {
		return err
	}
	if err := e.service(ctx, "web", "sessionAffinity: ClientIP"); err != nil {
		return err
	}
	if err := e.service(ctx, "any"); err != nil { // which tells that both can be reached
		return err
	}
	if err := e.reaches(ctx, "http://any"); err != nil {
		return err
	}
	return until(ctx, func() error {
		said, err := e.exec(ctx, "client", "fetch", "http://web/hostname", "20")
		if names := strings.Fields(said); err == nil && len(slices.Compact(names)) != 1 {
			err = fmt.Errorf("one client is led to %q", names)
		}
		return err
	})
}

// A Service has a name, with and without those of its namespace and the cluster, and records that tell its ports.
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

// A Pod finds Services that were there before it in its environment.
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

// modeLine is kube-proxy's setting of how it does its work.
var modeLine = regexp.MustCompile(`(?m)^mode: .*$`)

// In each of kube-proxy's modes, new Services lead to their Pods.
func proxyMode(mode string) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		if mode == "ipvs" && !kernelHasIPVS() {
			return skip("the kernel has no IPVS: there is no /proc/net/ip_vs (modprobe ip_vs, where there is such a module)")
		}
		before, err := e.get(ctx, proxyConfig, `{.data.config\.conf}`, "--namespace=kube-system")
		if err != nil {
			return err
		}
		if now := modeLine.FindString(before); strings.Trim(now, `mode: "`) != mode {
			e.cleanup(func(ctx context.Context) error { return e.configureProxy(ctx, before) })
			if err := e.configureProxy(ctx, modeLine.ReplaceAllString(before, "mode: "+mode)); err != nil {
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

// configureProxy gives all kube-proxies a configuration, and waits until they run with it.
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

// proxiesSay requires that each kube-proxy says that it runs in a mode.
func (e *env) proxiesSay(ctx context.Context, mode string) error {
	return until(ctx, func() error {
		said, err := e.kubectl(ctx, "--namespace=kube-system", "logs", "--selector=k8s-app=kube-proxy", "--tail=-1", "--prefix")
		if err != nil {
			return err
		}
		if n := strings.Count(said, "Using "+mode+" Proxier"); n != len(e.nodes) {
			return fmt.Errorf("%d kube-proxies say that they use %s, want %d", n, mode, len(e.nodes))
		}
		return nil
	})
}

func kernelHasIPVS() bool {
	_, err := os.Stat("/proc/net/ip_vs")
	return err == nil
}
