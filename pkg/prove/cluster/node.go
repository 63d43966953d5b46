package cluster

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/atomicfile"
)

//go:embed node.sh
var nodeInit string

// A node is a machine of the cluster: a set of namespaces on this one.
type node struct {
	name   string
	number int // from 1
}

func (s *State) node(number int) node { return node{fmt.Sprintf("%s-%d", s.Name, number), number} }

// releaseInNode is where a node sees what was unpacked of its release: a link to one of the folders in releasesInNode.
const (
	releaseInNode  = "/run/slipway/release"
	releasesInNode = "/run/slipway/" + releases
)

// diskSize is the size of a node's disk, which holds images, containers and volumes. The file takes only what is written.
const diskSize = "16G"

// nodeDir returns the folder that a node writes to. In the node it is /run/slipway/node.
func (s *State) nodeDir(n node) string { return s.path("nodes", n.name) }

// cgroup returns the control group of a node's containers, which is below that of the cluster.
func (s *State) cgroup(n node) string { return s.clusterCgroup() + "/" + n.name }

func (s *State) clusterCgroup() string { return "slipway-" + s.ID }

// startNode starts a node, and waits until its container runtime answers.
func (s *State) startNode(ctx context.Context, n node, sandbox string) error {
	b, err := s.server()
	if err != nil {
		return err
	}
	dir := s.nodeDir(n)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	address, err := s.address(n.number)
	if err != nil {
		return err
	}
	groups, err := machineCgroups()
	if err != nil {
		return err
	}
	added, err := groups.toDelegate()
	if err != nil {
		return err
	}
	if err := s.change(func() { s.Controllers = slices.Compact(slices.Sorted(slices.Values(append(s.Controllers, added...)))) }); err != nil {
		return err
	}
	if err := groups.add(s.cgroup(n)); err != nil {
		return err
	}
	if err := s.configureRuntime(n, b, sandbox); err != nil {
		return err
	}
	if err := s.configureRegistry(n); err != nil {
		return err
	}
	if err := s.placePrograms(n); err != nil {
		return err
	}
	p := Process{Name: n.name, Address: address.Addr().String(), Release: s.Release}
	if err := s.start(p, nodeNamespaces, dir, "/bin/sh", "-c", nodeInit, "node.sh", n.name, p.Address, b.nodePath(), diskSize,
		folderOf(s.Release)); err != nil {
		return err
	}
	p, _ = s.process(n.name)
	if err := s.plug(ctx, p, n.number); err != nil {
		return err
	}
	return s.waitForRuntime(ctx, n)
}

// configureRuntime writes the configuration of a node's container runtime.
func (s *State) configureRuntime(n node, b *bundle, sandbox string) error {
	text := containerdConfig(sandbox, b.foldersInNode(networkPlugins)[0])
	return atomicfile.WriteFile(filepath.Join(s.nodeDir(n), "containerd.toml"), []byte(text), 0o644)
}

// waitForRuntime waits until a node's container runtime serves kubelets. It does so a moment after it answers other clients.
func (s *State) waitForRuntime(ctx context.Context, n node) error {
	err := s.eventually(ctx, func(ctx context.Context) (bool, error) {
		_, err := s.crictl(ctx, n, "--timeout=1s", "images", "--quiet")
		return err == nil, err
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("containerd does not answer: %w; see %s", err, filepath.Join(s.nodeDir(n), "var-log", "containerd.log"))
	}
	return err
}

// inNode runs a command in a node.
func (s *State) inNode(ctx context.Context, n node, command ...string) (string, error) {
	line, err := s.enter(n.name, command...)
	if err != nil {
		return "", err
	}
	return output(ctx, "", line...)
}

// nodePath returns the PATH of a node's programs: those of its own before those of the release.
func (b *bundle) nodePath() string {
	return strings.Join(slices.Concat([]string{ownProgramsInNode}, b.foldersInNode(nodePrograms), []string{systemPath}), ":")
}

// connectPods adds routes to the Pods of other nodes, and configures the network of each node's Pods, which makes the node ready.
func (s *State) connectPods(ctx context.Context, nodes []node) error {
	ranges := make([]string, len(nodes))
	for i, n := range nodes {
		err := s.eventually(ctx, func(ctx context.Context) (bool, error) {
			out, err := s.kubectl(ctx, "get", "node", n.name, "--ignore-not-found", "-o", "jsonpath={.spec.podCIDR}")
			ranges[i] = strings.TrimSpace(out)
			return ranges[i] != "", err
		})
		if err != nil {
			return err
		}
	}
	for i, n := range nodes {
		p, ok := s.process(n.name)
		if !ok {
			return fmt.Errorf("node %s does not run", n.name)
		}
		var routes []string
		for j, other := range nodes {
			if to, ok := s.process(other.name); ok && j != i {
				routes = append(routes, "route replace "+ranges[j]+" via "+to.Address+" dev eth0")
			}
		}
		if len(routes) > 0 {
			if err := ipIn(ctx, p, routes...); err != nil {
				return err
			}
		}
		config, err := podNetworkConfig(ranges[i])
		if err != nil {
			return err
		}
		if err := atomicfile.WriteFile(filepath.Join(s.nodeDir(n), "cni", cniConfig), config, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// containerdConfig returns the configuration of a node's container runtime, containerd 2.
func containerdConfig(sandbox, plugins string) string {
	return fmt.Sprintf(`version = 3

[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = %q

[plugins."io.containerd.cri.v1.images".registry]
  config_path = "/run/slipway/node/certs.d"

[plugins."io.containerd.cri.v1.runtime"]
  # Without CAP_SYS_RESOURCE, a process cannot make another one harder to kill than itself.
  restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = [%q]
  conf_dir = "/etc/cni/net.d"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
`, sandbox, plugins)
}

// cniConfig is the file with the configuration of a node's network plugins.
const cniConfig = "10-slipway.conflist"

// podNetworkConfig returns the configuration of a node's network plugins. Each Pod has a link to the node, which routes between them.
// With a bridge instead, packets between Pods would pass kube-proxy's rules only where the kernel has br_netfilter.
func podNetworkConfig(podRange string) ([]byte, error) {
	return json.MarshalIndent(object{
		"cniVersion": "1.0.0",
		"name":       "slipway",
		"plugins": []object{
			{
				"type": "ptp",
				"ipam": object{
					"type":   "host-local",
					"ranges": [][]object{{{"subnet": podRange}}},
					"routes": []object{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	}, "", "  ")
}
