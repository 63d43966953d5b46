package cluster

import (
	"encoding/json"
	"fmt"
)

// containerdConfig is that of a node's container runtime. Version 2 of the format is read by containerd 1.3 to 2.
func containerdConfig(sandbox, snapshotter string) string {
	return fmt.Sprintf(`version = 2

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  # Without CAP_SYS_RESOURCE nobody can make a process harder to kill than oneself.
  restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/run/slipway/release/kubernetes/addons/cni/bin"
  conf_dir = "/etc/cni/net.d"

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = %q

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
`, sandbox, snapshotter)
}

// podNetworkConfig is what the network plugins of a node need to know, with the node's range of addresses. Each Pod has a link to the
// node, which routes between them: on a bridge, packets between Pods would pass kube-proxy's rules only where the kernel has br_netfilter.
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
