package cluster

import (
	"context"

	"slipway.build/pkg/prove/cluster/logs"
)

// LogOptions say which lines of logs to read.
type LogOptions struct {
	Node string // empty means all nodes
	logs.Options
}

// Logs calls each with the lines of a component's logs: of a process, of a node's kubelet or containerd, or of the newest containers
// with that name in the namespace kube-system. From says which log it is, and is empty if there can be one only.
func (s *State) Logs(ctx context.Context, component string, o LogOptions, each func(from, line string) error) error {
	return logs.Read(ctx, component, o.Options, func() ([]logs.File, error) { return s.logFiles(o.Node) }, each)
}

// LogNames returns what Logs can be asked for.
func (s *State) LogNames() ([]string, error) {
	files, err := s.logFiles("")
	return logs.Components(files), err
}

// logFiles returns the logs of a cluster, or of one of its nodes.
func (s *State) logFiles(only string) ([]logs.File, error) {
	nodes, err := s.chooseNodes(only)
	if err != nil {
		return nil, err
	}
	var files []logs.File
	if only == "" {
		if files, err = logs.OfPrograms(s.path("log"), ""); err != nil {
			return nil, err
		}
	}
	for _, node := range nodes {
		from := node
		if len(nodes) == 1 {
			from = ""
		}
		more, err := logs.OfNode(s.NodeFile(node, "var-log"), node, from)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}
