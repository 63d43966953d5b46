package cluster

import (
	"context"
	"path/filepath"

	"slipway.build/pkg/mechanism/atomicfile"
)

// podsAlone are the addresses of Pods on a node without a cluster.
const podsAlone = "10.100.0.0/24"

// nodeAlone returns the steps to a node with a container runtime, a network for Pods and a registry, on which something else starts a
// kubelet.
func (s *State) nodeAlone() []step {
	var images []imageFile
	var sandbox string
	n := s.node(1)
	return []step{
		{"images", []string{"unpack"}, func(ctx context.Context) error {
			b, err := s.server()
			if err != nil {
				return err
			}
			if images, err = b.images(); err != nil {
				return err
			}
			_, sandbox, err = chooseRegistry(ctx, b, images)
			return err
		}},
		{"network", []string{"images"}, s.makeSwitch},
		{"root of nodes", []string{"unpack"}, s.unpackRoot},
		{"publish images", []string{"network"}, func(ctx context.Context) error { return s.publish(ctx, images) }},
		{"start " + n.name, []string{"network", "root of nodes"}, func(ctx context.Context) error {
			if err := s.startNode(ctx, n, sandbox); err != nil {
				return err
			}
			// An API server that starts there takes the address of the interface with the default route. It leads nowhere.
			p, _ := s.process(n.name)
			if err := ipIn(ctx, p, "route replace default dev eth0"); err != nil {
				return err
			}
			config, err := podNetworkConfig(podsAlone)
			if err != nil {
				return err
			}
			return atomicfile.WriteFile(filepath.Join(s.nodeDir(n), "cni", cniConfig), config, 0o644)
		}},
	}
}

// KubeletConfiguration returns a configuration for a kubelet that something starts on a node without Kubernetes, and flags for it.
func (s *State) KubeletConfiguration() (config []byte, flags []string, err error) {
	group := "/" + s.cgroup(s.node(1))
	settings := nodeSettings()
	for key, value := range (object{
		"cgroupRoot": group, "podCIDR": podsAlone, "serializeImagePulls": false,
		"fileCheckFrequency": "10s", "volumeStatsAggPeriod": "10s",
		"clusterDomain":      "cluster.local",
		"serverTLSBootstrap": false, // there is nobody to sign it
	}) {
		settings[key] = value
	}
	config, err = documents(settings)
	// Groups outside of the node's own would be those of the whole machine.
	return config, []string{"--kubelet-cgroups=" + group + "/kubelet", "--system-cgroups=", "--runtime-cgroups=" + group + "/runtime"}, err
}
