package verify

import (
	"encoding/json"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

const proxyConfig = "configmap/kube-proxy"

// withMode returns a configuration of kube-proxy in another mode, and the mode that it had.
func withMode(config, mode string) (changed, before string) {
	var c map[string]any
	during(proxyConfig, func() { noError(yaml.Unmarshal([]byte(config), &c)) })
	before, _ = c["mode"].(string)
	c["mode"] = mode
	return string(must(yaml.Marshal(c))), before
}

// In each of kube-proxy's modes, new Services lead to their Pods.
func proxyMode(mode string) func(*env) {
	return func(e *env) {
		if mode == "ipvs" && !kernelHasIPVS() {
			noError(skip("needs IPVS in the kernel: there is no /proc/net/ip_vs (try modprobe ip_vs)"))
		}
		before := e.get(proxyConfig, `{.data.config\.conf}`, "--namespace=kube-system")
		changed, now := withMode(before, mode)
		if now != mode {
			e.cleanup(func() { e.configureProxy(before) })
			e.configureProxy(changed)
		}
		e.proxiesSay(mode)
		e.web()
		e.service("web", "type: NodePort")
		e.reaches("http://web")
		port := e.get("service/web", "{.spec.ports[0].nodePort}")
		e.until(func() {
			e.httpGet("http://" + e.nodes[0].Address + ":" + port + "/hostname")
		})
	}
}

// configureProxy changes the configuration of all kube-proxies, and waits until they run with it.
func (e *env) configureProxy(config string) {
	patch := must(json.Marshal(manifest{"data": manifest{"config.conf": config}}))
	e.kubectl("--namespace=kube-system", "patch", proxyConfig, "--type=merge", "--patch="+string(patch))
	e.kubectl("--namespace=kube-system", "rollout", "restart", "daemonset/kube-proxy")
	e.rolledOut("daemonset/kube-proxy", "--namespace=kube-system")
}

// proxiesSay requires that each kube-proxy logs that it runs in a mode.
func (e *env) proxiesSay(mode string) {
	e.until(func() {
		said := e.kubectl("--namespace=kube-system", "logs", "--selector=k8s-app=kube-proxy", "--tail=-1", "--prefix")
		if n := strings.Count(said, "Using "+mode+" Proxier"); n != len(e.nodes) {
			fail("%d kube-proxies log that they use %s, want %d", n, mode, len(e.nodes))
		}
	})
}

func kernelHasIPVS() bool {
	_, err := os.Stat("/proc/net/ip_vs")
	return err == nil
}
