package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// nodes returns the steps to a cluster with nodes.
func (s *State) nodes(count int) []step {
	var images []imageFile
	var sandbox string
	nodes := make([]node, count)
	for i := range nodes {
		nodes[i] = s.node(i + 1)
	}
	first := nodes[0]
	c := setup{cluster: s.Name, token: newToken(), secret: newSecret(), wait: s.patience}
	if s.ControlPlanes > 1 {
		c.key = newKey()
	}
	of := func(n node) setup { // the setup of a node
		c := c
		own, _ := s.process(n.name)
		c.name, c.address, c.cgroupRoot = n.name, own.Address, s.cgroup(n)
		return c
	}
	steps := []step{
		{"images", []string{"unpack"}, func(ctx context.Context) error {
			b, err := s.server()
			if err != nil {
				return err
			}
			if images, err = b.images(); err != nil {
				return err
			}
			c.version = s.Version
			c.registry, sandbox, err = chooseRegistry(ctx, b, images)
			return err
		}},
		{"network", []string{"images"}, func(ctx context.Context) (err error) {
			if err := s.makeSwitch(ctx); err != nil {
				return err
			}
			c.endpoint, err = s.endpoint()
			return err
		}},
		{"root of nodes", []string{"unpack"}, s.unpackRoot},
	}
	// The control plane's images come first: kubeadm pulls them before it does anything else.
	split := func(controlPlane bool) []imageFile {
		return slices.DeleteFunc(slices.Clone(images), func(i imageFile) bool { return i.controlPlane() != controlPlane })
	}
	const early, late = "publish the control plane's images", "publish other images"
	steps = append(steps,
		step{early, []string{"network"}, func(ctx context.Context) error {
			if err := s.publish(ctx, split(true)); err != nil {
				return err
			}
			return s.publishPrograms(ctx, c.registry)
		}},
		step{late, []string{early}, func(ctx context.Context) error { return s.publish(ctx, split(false)) }})
	before := []string{late} // kubeadm init
	if s.ControlPlanes > 1 {
		const balancer = "load balancer"
		steps = append(steps, step{balancer, []string{"network", "root of nodes"}, s.startBalancer})
		before = append(before, balancer)
	}
	var joined []string
	for _, n := range nodes {
		start, join := "start "+n.name, "kubeadm join "+n.name
		steps = append(steps, step{start, []string{"network", "root of nodes"},
			func(ctx context.Context) error { return s.startNode(ctx, n, sandbox) }})
		if n == first {
			join = "kubeadm init"
			steps = append(steps, step{join, append(before, start), func(ctx context.Context) error { return s.initialize(ctx, n, of(n)) }})
		} else {
			after := "kubeadm init"
			if n.number <= s.ControlPlanes {
				after = joined[len(joined)-1] // members join etcd one after the other
			}
			steps = append(steps, step{join, []string{start, after}, func(ctx context.Context) error { return s.join(ctx, n, first, of(n)) }})
		}
		joined = append(joined, join)
	}
	return append(steps,
		step{"connect Pods", joined, func(ctx context.Context) error { return s.connectPods(ctx, nodes) }},
		step{"approve kubelets", joined, func(ctx context.Context) error { return s.approveKubelets(ctx, nodes) }},
		step{"addons", []string{"kubeadm init"}, func(ctx context.Context) error { return s.addAddons(ctx, images) }},
		step{"nodes ready", []string{"connect Pods"}, func(ctx context.Context) error {
			return s.wait(ctx, "wait", "--for=condition=Ready", "nodes", "--all", s.timeout())
		}},
		step{"CoreDNS ready", []string{"nodes ready"}, func(ctx context.Context) error {
			return s.wait(ctx, "-n", "kube-system", "rollout", "status", "deployment/coredns", s.timeout())
		}},
		step{"metrics-server running", []string{"nodes ready", "addons", "approve kubelets"}, func(ctx context.Context) error {
			if !hasImage(images, "metrics-server") {
				return nil
			}
			return s.eventually(ctx, func(ctx context.Context) (bool, error) {
				phase, err := s.kubectl(ctx, "-n", "kube-system", "get", "pods", "-l", "k8s-app=metrics-server", "-o",
					"jsonpath={.items[*].status.phase}")
				return phase == "Running", err
			})
		}},
	)
}

// addAddons installs the addons that kubeadm does not install.
func (s *State) addAddons(ctx context.Context, images []imageFile) error {
	first, err := s.onSwitch(serviceHosts.first)
	if err != nil {
		return err
	}
	last, err := s.onSwitch(serviceHosts.last)
	if err != nil {
		return err
	}
	var manifests strings.Builder
	for _, a := range addons {
		if !hasImage(images, a.name) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(s.releaseDir(), filepath.FromSlash(a.dir), "*.yaml"))
		if err != nil {
			return err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			fmt.Fprintf(&manifests, "---\n%s\n", strings.ReplaceAll(string(text), "__ADDRESSES__", first+"-"+last))
		}
	}
	if manifests.Len() == 0 {
		return nil
	}
	return s.eventually(ctx, func(ctx context.Context) (bool, error) {
		_, err := s.kubectlWith(ctx, manifests.String(), "apply", "-f", "-")
		return err == nil, err
	})
}

// timeout returns kubectl's flag for how long to wait.
func (s *State) timeout() string { return "--timeout=" + s.patience.String() }

// wait runs a kubectl command that waits. If that fails, the error lists nodes and Pods.
func (s *State) wait(ctx context.Context, args ...string) error {
	_, err := s.kubectl(ctx, args...)
	if err == nil || ctx.Err() != nil {
		return err
	}
	pods, _ := s.kubectl(ctx, "get", "nodes,pods", "--all-namespaces")
	return fmt.Errorf("%w\n%s", err, pods)
}
