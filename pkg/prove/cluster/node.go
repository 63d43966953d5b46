package cluster

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/prove/cluster/kubeadm"
	"slipway.build/pkg/prove/cluster/machine"
	"slipway.build/pkg/prove/cluster/tarball"
)

//go:embed node.sh
var nodeInit string

// A node is a machine of the cluster: a set of namespaces on this one.
type node struct {
	name   string
	number int // from 1
}

func (s *State) node(number int) node { return node{fmt.Sprintf("%s-%d", s.Name, number), number} }

// allNodes returns the nodes whose inits were started.
func (s *State) allNodes() []node {
	var all []node
	for range s.Nodes() {
		all = append(all, s.node(len(all)+1))
	}
	return all
}

// eachNode calls f for all nodes at once.
func (s *State) eachNode(ctx context.Context, f func(context.Context, node) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range s.allNodes() {
		g.Go(func() error {
			if err := f(ctx, n); err != nil {
				return fmt.Errorf("node %s: %w", n.name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// releaseInNode is where a node sees what was unpacked of its release: a link to one of the folders beside it.
const releaseInNode = "/run/slipway/release"

// diskSize is the size of a node's disk, which holds images, containers and volumes. The file takes only what is written.
const diskSize = "16G"

// cgroup returns the control group of a node's containers, which is below that of the cluster.
func (s *State) cgroup(n node) string { return s.clusterCgroup() + "/" + n.name }

func (s *State) clusterCgroup() string { return "slipway-" + s.ID }

// writeInNode writes a file in the folder of a node.
func (s *State) writeInNode(n node, perm os.FileMode, text []byte, parts ...string) error {
	file := s.NodeFile(n.name, parts...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteFile(file, text, perm)
}

// startNode starts a node, and waits until its container runtime answers.
func (s *State) startNode(ctx context.Context, n node, sandbox string) error {
	b, err := s.server()
	if err != nil {
		return err
	}
	groups, err := machine.FindCgroups()
	if err != nil {
		return err
	}
	added, err := groups.Undelegated()
	if err != nil {
		return err
	}
	if err := s.change(func() { s.Controllers = slices.Compact(slices.Sorted(slices.Values(append(s.Controllers, added...)))) }); err != nil {
		return err
	}
	if err := errors.Join(groups.Add(s.cgroup(n)), s.configureRuntime(n, b, sandbox), s.configureRegistry(n), s.placePrograms(n)); err != nil {
		return err
	}
	p := Process{Name: n.name, Address: s.address(n), Release: s.Release}
	if err := s.start(p, machine.AllNamespaces, s.NodeFile(n.name), "/bin/sh", "-c", nodeInit, "node.sh", n.name, p.Address, nodePath(b),
		diskSize, folderOf(s.Release)); err != nil {
		return err
	}
	if err := s.connectNode(ctx, n); err != nil {
		return err
	}
	return s.waitForRuntime(ctx, n)
}

// foldersInNode returns the folders of unpacked artifacts as a node sees them.
func foldersInNode(b *tarball.Tarball, names []string) []string {
	var folders []string
	for _, name := range names {
		if folder := path.Join(releaseInNode, path.Dir(b.Member(name))); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// nodePath returns the PATH of a node's programs: those of its own before those of the release.
func nodePath(b *tarball.Tarball) string {
	return strings.Join(slices.Concat([]string{ownProgramsInNode}, foldersInNode(b, nodePrograms), []string{machine.Path}), ":")
}

// configureRuntime writes the configuration of a node's container runtime, containerd 2: the release's, which may be none, and over it what
// a node in namespaces needs. Of files that are imported, the last one counts.
func (s *State) configureRuntime(n node, b *tarball.Tarball, sandbox string) error {
	const own = "containerd"
	text := fmt.Sprintf(`version = 3
imports = [%q, %q]
`, path.Join(releaseInNode, runtimeDefaults, "*.toml"), path.Join(kubeadm.Folder, own, "*.toml"))
	return errors.Join(s.writeInNode(n, 0o644, []byte(text), "containerd.toml"),
		s.writeInNode(n, 0o644, runtimeOverlay(sandbox, foldersInNode(b, networkPlugins)[0]), own, "node.toml"))
}

// runtimeOverlay returns what is a node's own of the configuration of containerd.
func runtimeOverlay(sandbox, plugins string) []byte {
	return fmt.Appendf(nil, `version = 3

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

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  # There is no systemd in a node.
  SystemdCgroup = false
`, sandbox, plugins)
}

// waitForRuntime waits until a node's container runtime serves kubelets. It answers other clients a moment earlier.
func (s *State) waitForRuntime(ctx context.Context, n node) error {
	err := s.eventually(ctx, longPause, func(ctx context.Context) error {
		_, err := s.crictl(ctx, n, "--timeout=1s", "images", "--quiet")
		return err
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("containerd does not answer: %w; see %s", err, s.NodeFile(n.name, "var-log", "containerd.log"))
	}
	return err
}

// configurePods writes the configuration of a node's network plugins. Each Pod has a link to the node, which routes between them.
// With a bridge instead, packets between Pods would pass kube-proxy's rules only where the kernel has br_netfilter.
func (s *State) configurePods(n node, addresses string) error {
	text, err := json.MarshalIndent(object{
		"cniVersion": "1.0.0",
		"name":       "slipway",
		"plugins": []object{
			{
				"type": "ptp",
				"ipam": object{
					"type":   "host-local",
					"ranges": [][]object{{{"subnet": addresses}}},
					"routes": []object{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	}, "", "  ")
	if err != nil {
		return err
	}
	return s.writeInNode(n, 0o644, text, "cni", "10-slipway.conflist")
}

// Enter returns a command line, for this machine, that runs a command in a node: in its namespaces, at the root of its files, with the
// PATH of its programs. It needs root.
func (s *State) Enter(node string, command ...string) ([]string, error) {
	if s.ControlPlaneOnly {
		return nil, s.wrap(ErrNoNodes)
	}
	if _, err := s.chooseNodes(node); err != nil {
		return nil, err
	}
	return s.enter(node, command...)
}

// enter returns the command line of a command in a node.
func (s *State) enter(node string, command ...string) ([]string, error) {
	p, ok := s.process(node)
	if !ok || s.Boot != machine.BootID() || !p.Alive() {
		return nil, fmt.Errorf("node %s does not run", node)
	}
	b, err := s.server()
	if err != nil {
		return nil, err
	}
	line := []string{"nsenter", "--target", strconv.Itoa(p.PID), "--mount", "--net", "--uts", "--ipc", "--pid", "env", "PATH=" + nodePath(b),
		"CONTAINER_RUNTIME_ENDPOINT=" + kubeadm.RuntimeEndpoint, "CONTAINERD_NAMESPACE=k8s.io", // for crictl and ctr
		"sh", "-c", `cd / && exec "$@"`, "sh"} // nsenter's own flag means a folder of this machine
	return append(line, command...), nil
}

// chooseNodes returns the node with a name, or all nodes if the name is empty.
func (s *State) chooseNodes(name string) ([]string, error) {
	var names []string
	for _, n := range s.Nodes() {
		names = append(names, n.Name)
	}
	switch {
	case name == "":
		return names, nil
	case slices.Contains(names, name):
		return []string{name}, nil
	}
	return nil, suggest.Unknown("node", name, names)
}

// inNode runs a command in a node.
func (s *State) inNode(ctx context.Context, n node, command ...string) (string, error) {
	line, err := s.enter(n.name, command...)
	if err != nil {
		return "", err
	}
	return machine.Output(ctx, "", line...)
}

// crictl runs a command of crictl in a node.
func (s *State) crictl(ctx context.Context, n node, command ...string) (string, error) {
	return s.inNode(ctx, n, append([]string{"crictl", "--runtime-endpoint=" + kubeadm.RuntimeEndpoint}, command...)...)
}

// crictlInto runs a command of crictl in a node and decodes what it prints.
func (s *State) crictlInto(ctx context.Context, n node, into any, command ...string) error {
	text, err := s.crictl(ctx, n, append(command, "--output=json")...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("crictl %s in node %s: %w", command[0], n.name, err)
	}
	return nil
}

// restartProgram ends a program that the init of a node starts again, and waits until it was started.
func (s *State) restartProgram(ctx context.Context, n node, name string) error {
	before, err := s.keptProcess(n, name)
	if err != nil {
		return err
	}
	if _, err := s.inNode(ctx, n, "sh", "-c", `kill "$1" || true # it may have ended`, "sh", before); err != nil {
		return err
	}
	return s.eventually(ctx, longPause, func(context.Context) error {
		now, err := s.keptProcess(n, name)
		if err == nil && (now == "" || now == before) {
			err = fmt.Errorf("%s has not ended", name)
		}
		return err
	})
}

// keptProcess returns the process, in the node's own numbers, of a program that the init of a node keeps running.
func (s *State) keptProcess(n node, name string) (string, error) {
	pid, err := os.ReadFile(s.InNode(n.name, "/run/slipway/"+name+".pid"))
	return strings.TrimSpace(string(pid)), err
}

// A nodeContainer is a container as crictl describes it.
type nodeContainer struct {
	ID        string            `json:"id"`
	State     string            `json:"state"`
	CreatedAt string            `json:"createdAt"` // in nanoseconds
	Labels    map[string]string `json:"labels"`
	Metadata  struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Image struct {
		Image     string `json:"image"`
		Specified string `json:"userSpecifiedImage"`
	} `json:"image"`
}

// nodeContainers returns containers in a node, the newest first. Flags of crictl ps select them.
func (s *State) nodeContainers(ctx context.Context, n node, flags ...string) ([]nodeContainer, error) {
	var list struct{ Containers []nodeContainer }
	if err := s.crictlInto(ctx, n, &list, append([]string{"ps"}, flags...)...); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Containers, func(a, b nodeContainer) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return list.Containers, nil
}
