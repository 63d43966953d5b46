package conformance

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/prove/cluster"
	"slipway.build/pkg/prove/cluster/kubeadm"
)

// RunNode runs the [NodeConformance] specs of e2e_node.test, on a node with a container runtime and
// without Kubernetes. The suite starts the release's kubelet there, and an API server of its own. Results and errors are those of Run.
func RunNode(ctx context.Context, s *cluster.State, o Options) (Report, error) {
	node := s.Nodes()[0].Name
	tests, images, err := prepare(ctx, s, cluster.NodeSuite, o)
	if err != nil {
		return Report{}, err
	}
	const folder = "e2e"
	dir, seen := s.NodeFile(node, folder), path.Join("/run/slipway/node", folder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Report{}, err
	}
	kubelet, flags, err := s.KubeletConfiguration()
	if err != nil {
		return Report{}, err
	}
	for name, text := range map[string]string{
		kubeletFile: string(kubelet),
		// What the system has to be: kubeadm's checks do not apply to a node in namespaces.
		systemFile: "os: Linux\nkernelSpec:\n  versions: ['.*']\n",
	} {
		if err := atomicfile.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return Report{}, err
		}
	}
	enter, err := s.Enter(node, "sh", "-c", `cd "$1" && shift && exec "$@"`, "sh", seen)
	if err != nil {
		return Report{}, err
	}
	program, ginkgo, err := tests.ProgramsInNode()
	if err != nil {
		return Report{}, err
	}
	all, err := runner{
		suite: suite{
			title: "node-conformance", program: program, ginkgo: ginkgo, labels: NodeConformance, dir: seen, enter: enter,
			flags: []string{
				"--node-name=" + node, "--container-runtime-endpoint=" + kubeadm.RuntimeEndpoint, "--prepull-images=false",
				"--kubelet-config-file=" + path.Join(seen, kubeletFile), "--kubelet-flags=" + strings.Join(flags, " "),
				"--system-spec-file=" + path.Join(seen, systemFile), "--dns-domain=cluster.local", "--report-dir=" + path.Join(seen, "report"),
			},
		},
		dir: dir, log: filepath.Join(o.Logs, "specs.log"), options: o,
	}.run(ctx)
	all.Cluster, all.Version, all.Substitutes = s.Name, s.Version, images
	return all, errors.Join(err, keepLogs(o.Logs, map[string]string{
		"kubelet.log": filepath.Join(dir, "report", "kubelet.log"), "services.log": filepath.Join(dir, "report", "services.log"),
		"containerd.log": s.NodeFile(node, "var-log", "containerd.log"),
	}))
}

// keepLogs copies logs, which are removed with the node. A log is missing if the suite ended before it started the program.
func keepLogs(dir string, files map[string]string) error {
	for name, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = atomicfile.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Files in the suite's folder.
const (
	kubeletFile = "kubelet.yaml"
	systemFile  = "system.yaml"
)
