package cluster

import (
	"fmt"
	"strconv"

	"slipway.build/pkg/mechanism/suggest"
)

// Enter returns a command line, for this machine, that runs a command in a node: in its namespaces, at the root of its files, with the
// PATH of its programs. It needs root.
func (s *State) Enter(node string, command ...string) ([]string, error) {
	if s.ControlPlaneOnly {
		return nil, fmt.Errorf("cluster %s %w", s.Name, ErrNoNodes)
	}
	if _, err := s.chooseNodes(node); err != nil {
		return nil, err
	}
	return s.enter(node, command...)
}

// enter returns the command line of a command in a node.
func (s *State) enter(node string, command ...string) ([]string, error) {
	p, ok := s.process(node)
	if !ok || s.Boot != bootID() || !p.alive() {
		return nil, fmt.Errorf("node %s does not run", node)
	}
	b, err := s.server()
	if err != nil {
		return nil, err
	}
	line := []string{"nsenter", "--target", strconv.Itoa(p.PID), "--mount", "--net", "--uts", "--ipc", "--pid", "env", "PATH=" + b.nodePath(),
		"CONTAINER_RUNTIME_ENDPOINT=" + RuntimeEndpoint, "CONTAINERD_NAMESPACE=k8s.io", // for crictl and ctr
		"sh", "-c", `cd / && exec "$@"`, "sh"} // nsenter's own flag means a folder of this machine
	return append(line, command...), nil
}

// chooseNodes returns the node with a name, or all nodes if the name is empty.
func (s *State) chooseNodes(name string) ([]string, error) {
	var names []string
	for _, n := range s.Nodes() {
		if n.Name == name {
			return []string{name}, nil
		}
		names = append(names, n.Name)
	}
	if name != "" {
		return nil, suggest.Unknown("node", name, names)
	}
	return names, nil
}
