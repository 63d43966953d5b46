package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/prove/cluster/images"
	"slipway.build/pkg/prove/cluster/kubeadm"
)

// nodes returns the steps to a cluster with nodes.
func (s *State) nodes(count int) []step {
	var set imageSet
	c := kubeadm.Config{Cluster: s.Name, Token: kubeadm.NewToken(), Wait: s.patience}
	secret := kubeadm.NewSecret()
	if s.ControlPlanes > 1 {
		c.Key = kubeadm.NewKey()
	}
	// The control plane's images come first: kubeadm pulls them before it does anything else.
	publish := func(ctx context.Context, controlPlane bool) error {
		return s.registry().Push(ctx, slices.DeleteFunc(slices.Clone(set.all), func(i images.Image) bool {
			return isControlPlane(i) != controlPlane
		}))
	}
	const early, late = "publish the control plane's images", "publish other images"
	steps := []step{
		{"images", []string{"settings"}, func(ctx context.Context) (err error) {
			set, err = s.imageSet(ctx)
			if !set.byItself {
				c.Version, c.Registry = s.Version, set.registry
			}
			return err
		}},
		{"network", []string{"images"}, func(ctx context.Context) error {
			err := s.makeSwitch(ctx)
			c.Endpoint = s.endpoint()
			return err
		}},
		{"root of nodes", []string{"settings"}, s.unpackRoot},
		{early, []string{"network"}, func(ctx context.Context) error {
			if err := publish(ctx, true); err != nil {
				return err
			}
			return s.publishPrograms(ctx, set.registry)
		}},
		{late, []string{early}, func(ctx context.Context) error { return publish(ctx, false) }},
	}
	before := []string{late} // kubeadm init
	if s.ControlPlanes > 1 {
		const balancer = "load balancer"
		steps = append(steps, step{balancer, []string{"network", "root of nodes"}, s.startBalancer})
		before = append(before, balancer)
	}
	const initialize = "kubeadm init"
	var nodes []node
	var joined []string
	for i := range count {
		n := s.node(i + 1)
		start, join, after := "start "+n.name, "kubeadm join "+n.name, []string{initialize}
		switch {
		case i == 0:
			join, after = initialize, before
		case n.number <= s.ControlPlanes:
			after = joined[i-1:] // etcd takes one new member at a time
		}
		steps = append(steps,
			step{start, []string{"network", "root of nodes"}, func(ctx context.Context) error { return s.startNode(ctx, n, set.sandbox) }},
			step{join, append([]string{start}, after...), func(ctx context.Context) error { return s.join(ctx, n, c, secret) }})
		nodes, joined = append(nodes, n), append(joined, join)
	}
	return append(steps,
		step{"connect Pods", joined, func(ctx context.Context) error { return s.connectPods(ctx, nodes) }},
		step{"approve kubelets", joined, func(ctx context.Context) error { return s.approveKubelets(ctx, nodes) }},
		step{"addons", []string{initialize}, func(ctx context.Context) error { return s.addAddons(ctx, set.all) }},
		step{"nodes ready", []string{"connect Pods"}, func(ctx context.Context) error {
			_, err := s.kubectl(ctx, "wait", "--for=condition=Ready", "nodes", "--all", s.timeout())
			return s.explain(ctx, err)
		}},
		step{"CoreDNS ready", []string{"nodes ready"}, func(ctx context.Context) error {
			return s.explain(ctx, s.rolledOut(ctx, "deployment/coredns"))
		}},
		step{"metrics-server running", []string{"nodes ready", "addons", "approve kubelets"}, func(ctx context.Context) error {
			if !hasImage(set.all, "metrics-server") {
				return nil
			}
			return s.eventually(ctx, longPause, func(ctx context.Context) error {
				phase, err := s.get(ctx, "{.items[*].status.phase}", "pods", "--selector=k8s-app=metrics-server")
				if err == nil && phase != "Running" {
					err = fmt.Errorf("the phase of its Pod is %q", phase)
				}
				return err
			})
		}},
	)
}

// imageSet finds the images of the cluster's release.
func (s *State) imageSet(ctx context.Context) (imageSet, error) {
	b, err := s.server()
	if err != nil {
		return imageSet{}, err
	}
	return imageSetOf(ctx, b)
}

// join adds a node to the cluster by kubeadm. The first one makes the cluster, and has the administrator's kubeconfig.
func (s *State) join(ctx context.Context, n node, c kubeadm.Config, secret []byte) error {
	patched, err := s.writePatches(n)
	if err != nil {
		return err
	}
	c.Settings = s.Settings // with the feature gates that each component has
	c.Node = kubeadm.Node{Name: n.name, Address: s.address(n), CgroupRoot: s.cgroup(n), Patched: patched}
	controlPlane := n.number <= s.ControlPlanes
	if controlPlane {
		if err := kubeadm.WriteControlPlaneFiles(s.NodeFile(n.name, "kubernetes"), secret, s.Settings); err != nil {
			return err
		}
	}
	if n.number > 1 {
		if err := s.writeDiscovery(n, c); err != nil {
			return err
		}
		config, err := c.Join(controlPlane)
		if err != nil {
			return err
		}
		return s.kubeadm(ctx, n, "kubeadm", config, "join")
	}
	config, err := c.Init()
	if err != nil {
		return err
	}
	command := []string{"init"}
	if c.Key != "" {
		command = append(command, "--upload-certs")
	}
	if err := s.kubeadm(ctx, n, "kubeadm", config, command...); err != nil {
		return err
	}
	return s.copyKubeconfig()
}

// writeDiscovery writes where a node that joins finds the API, and the CA that signs its certificate.
func (s *State) writeDiscovery(n node, c kubeadm.Config) error {
	ca, err := os.ReadFile(s.NodeFile(s.node(1).name, "kubernetes", "pki", "ca.crt"))
	if err != nil {
		return err
	}
	text, err := c.Discovery(ca)
	if err != nil {
		return err
	}
	return s.writeInNode(n, 0o644, text, kubeadm.DiscoveryFile)
}

// copyKubeconfig copies the administrator's kubeconfig from the first node.
func (s *State) copyKubeconfig() error {
	text, err := os.ReadFile(s.NodeFile(s.node(1).name, "kubernetes", "admin.conf"))
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(s.Kubeconfig(), text, 0o600)
}

// ignoredChecks are kubeadm's checks that do not matter here: a supported kernel, a service manager, no swap, the size of the machine.
const ignoredChecks = "--ignore-preflight-errors=SystemVerification,Service-kubelet,Swap,NumCPU,Mem"

// kubeadm runs a kubeadm in a node, with its output in a log. It waits for one that an earlier process has left there.
func (s *State) kubeadm(ctx context.Context, n node, program string, config []byte, command ...string) error {
	const name = "kubeadm.yaml"
	if err := s.writeInNode(n, 0o600, config, name); err != nil {
		return err
	}
	out, err := s.inNode(ctx, n, slices.Concat([]string{"flock", "/run/slipway/kubeadm.lock", program}, command,
		[]string{"--config=" + kubeadm.Folder + "/" + name, ignoredChecks})...)
	if written := s.writeInNode(n, 0o644, []byte(out), "var-log", "kubeadm.log"); err == nil {
		return written
	}
	return fmt.Errorf("%w; see %s", err, s.NodeFile(n.name, "var-log"))
}

// connectPods adds routes to the Pods of other nodes, and configures the network of each node's Pods, which makes the node ready.
func (s *State) connectPods(ctx context.Context, nodes []node) error {
	ranges := make([]string, len(nodes))
	for i, n := range nodes {
		err := s.eventually(ctx, longPause, func(ctx context.Context) (err error) {
			ranges[i], err = s.get(ctx, "{.spec.podCIDR}", "node/"+n.name, "--ignore-not-found")
			if err == nil && ranges[i] == "" {
				err = fmt.Errorf("node %s has no addresses for Pods", n.name)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for i, n := range nodes {
		var routes []string
		for j, other := range nodes {
			if j != i {
				routes = append(routes, "route replace "+ranges[j]+" via "+s.address(other)+" dev eth0")
			}
		}
		p, _ := s.process(n.name)
		if len(routes) > 0 {
			if err := p.IP(ctx, routes...); err != nil {
				return err
			}
		}
		if err := s.configurePods(n, ranges[i]); err != nil {
			return err
		}
	}
	return nil
}

// approveKubelets approves the serving certificates of kubelets, as an administrator would.
func (s *State) approveKubelets(ctx context.Context, nodes []node) error {
	left := map[string]bool{}
	for _, n := range nodes {
		left["system:node:"+n.name] = true
	}
	return s.eventually(ctx, longPause, func(ctx context.Context) error {
		const serving = `.items[?(@.spec.signerName=="kubernetes.io/kubelet-serving")]`
		out, err := s.get(ctx, "{range "+serving+`}{.metadata.name} {.spec.username}{"\n"}{end}`, "csr")
		if err != nil {
			return err
		}
		for line := range strings.Lines(out) {
			request, user, _ := strings.Cut(strings.TrimSpace(line), " ")
			if !left[user] {
				continue
			}
			if _, err := s.kubectl(ctx, "certificate", "approve", request); err != nil {
				return err
			}
			delete(left, user)
		}
		if len(left) > 0 {
			return errors.New("not every kubelet has requested a certificate")
		}
		return nil
	})
}

// addAddons installs the addons that kubeadm does not install.
func (s *State) addAddons(ctx context.Context, all []images.Image) error {
	addresses := s.onSwitch(serviceFirst) + "-" + s.onSwitch(serviceLast)
	var manifests strings.Builder
	for _, name := range addons {
		if !hasImage(all, name) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(s.releaseDir(), filepath.FromSlash(addonFolder(name)), "*.yaml"))
		if err != nil {
			return err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			fmt.Fprintf(&manifests, "---\n%s\n", strings.ReplaceAll(string(text), "__ADDRESSES__", addresses))
		}
	}
	if manifests.Len() == 0 {
		return nil
	}
	return s.eventually(ctx, longPause, func(ctx context.Context) error {
		_, err := s.kubectlWith(ctx, manifests.String(), "apply", "-f", "-")
		return err
	})
}

// podsAlone are the addresses of Pods on a node without a cluster.
const podsAlone = "10.100.0.0/24"

// nodeAlone returns the steps to a node with a container runtime, a network for Pods and a registry, on which something else starts a
// kubelet.
func (s *State) nodeAlone() []step {
	var set imageSet
	n := s.node(1)
	return []step{
		{"images", []string{"settings"}, func(ctx context.Context) (err error) {
			set, err = s.imageSet(ctx)
			return err
		}},
		{"network", []string{"images"}, s.makeSwitch},
		{"root of nodes", []string{"settings"}, s.unpackRoot},
		{"publish images", []string{"network"}, func(ctx context.Context) error { return s.registry().Push(ctx, set.all) }},
		{"start " + n.name, []string{"network", "root of nodes"}, func(ctx context.Context) error {
			if err := s.startNode(ctx, n, set.sandbox); err != nil {
				return err
			}
			// An API server that starts there takes the address of the interface with the default route. It leads nowhere.
			p, _ := s.process(n.name)
			if err := p.IP(ctx, "route replace default dev eth0"); err != nil {
				return err
			}
			return s.configurePods(n, podsAlone)
		}},
	}
}

// KubeletConfiguration returns a configuration for a kubelet that something starts on a node without Kubernetes, and flags for it.
func (s *State) KubeletConfiguration() (config []byte, flags []string, err error) {
	group := "/" + s.cgroup(s.node(1))
	config, err = kubeadm.Kubelet(object{
		"cgroupRoot": group, "podCIDR": podsAlone, "serializeImagePulls": false,
		"fileCheckFrequency": "10s", "volumeStatsAggPeriod": "10s",
		"clusterDomain":      "cluster.local",
		"serverTLSBootstrap": false, // nothing would sign it
	})
	// Groups outside of the node's own would be those of the whole machine.
	return config, []string{"--kubelet-cgroups=" + group + "/kubelet", "--system-cgroups=", "--runtime-cgroups=" + group + "/runtime"}, err
}
