package cluster

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/suggest"
)

// LogOptions say which lines of logs to read.
type LogOptions struct {
	Node   string // empty means all nodes
	Last   int    // how many lines of each log at most; negative means all
	Follow bool   // go on until the context ends, with logs of containers that start meanwhile
}

// Logs calls each with the lines of a component's logs: of a process, of a node's kubelet or containerd, or of the newest containers
// with that name in the namespace kube-system. From says which log it is, and is empty if there can be one only.
func (s *State) Logs(ctx context.Context, component string, o LogOptions, each func(from, line string) error) error {
	if _, err := s.chooseNodes(o.Node); err != nil {
		return err
	}
	var open []*logReader
	defer func() {
		for _, r := range open {
			r.file.Close()
		}
	}()
	for first := true; ; first = false {
		files, err := s.logFiles(o.Node)
		if err != nil {
			return err
		}
		wanted := slices.DeleteFunc(slices.Clone(files), func(l logFile) bool { return l.component != component })
		if first && len(wanted) == 0 {
			return suggest.Unknown("log", component, names(files))
		}
		for _, l := range wanted {
			if slices.ContainsFunc(open, func(r *logReader) bool { return r.path == l.path }) {
				continue
			}
			f, err := os.Open(l.path)
			if errors.Is(err, fs.ErrNotExist) && !first {
				continue // its container was removed this moment
			}
			if err != nil {
				return err
			}
			r := &logReader{logFile: l, file: f, last: -1}
			if first {
				r.last = o.Last
			}
			open = append(open, r)
		}
		for _, r := range open {
			if err := r.read(each, !o.Follow); err != nil {
				return err
			}
		}
		if !o.Follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// LogNames returns what Logs can be asked for.
func (s *State) LogNames() ([]string, error) {
	files, err := s.logFiles("")
	return names(files), err
}

// A logFile is a file with the log of a component.
type logFile struct {
	component, from, path string
	container             bool // the container runtime wrote it
}

func names(files []logFile) []string {
	var all []string
	for _, l := range files {
		all = append(all, l.component)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// logFiles returns the logs of a cluster, or of one of its nodes.
func (s *State) logFiles(only string) ([]logFile, error) {
	var files []logFile
	if only == "" {
		paths, err := filepath.Glob(s.log("*"))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			files = append(files, logFile{component: strings.TrimSuffix(filepath.Base(path), ".log"), path: path})
		}
	}
	nodes, err := s.chooseNodes(only)
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		from := node
		if len(nodes) == 1 {
			from = ""
		}
		of, err := nodeLogs(s.NodeFile(node, "var-log"), node, from)
		if err != nil {
			return nil, err
		}
		files = append(files, of...)
	}
	return files, nil
}

// nodeLogs returns the logs in the folder /var/log of a node.
func nodeLogs(dir, node, from string) ([]logFile, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil, err
	}
	var files []logFile
	for _, path := range paths {
		files = append(files, logFile{strings.TrimSuffix(filepath.Base(path), ".log"), from, path, false})
	}
	pods, err := os.ReadDir(filepath.Join(dir, "pods"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	newest := map[string]logFile{} // by Pod and container: a static Pod that was changed has several folders
	times := map[string]time.Time{}
	var order []string
	for _, p := range pods {
		namespace, rest, _ := strings.Cut(p.Name(), "_")
		pod, _, _ := strings.Cut(rest, "_") // its UID
		if namespace != "kube-system" {
			continue
		}
		containers, err := filepath.Glob(filepath.Join(dir, "pods", p.Name(), "*"))
		if err != nil {
			return nil, err
		}
		for _, c := range containers {
			path, changed := lastLog(c)
			if path == "" {
				continue
			}
			l := logFile{filepath.Base(c), from, path, true}
			if pod != l.component+"-"+node { // not a static Pod: a node may have several
				l.from = strings.TrimSpace(from + " " + pod)
			}
			key := pod + "/" + l.component
			if _, ok := newest[key]; !ok {
				order = append(order, key)
			} else if !changed.After(times[key]) {
				continue
			}
			newest[key], times[key] = l, changed
		}
	}
	for _, key := range order {
		files = append(files, newest[key])
	}
	return files, nil
}

// lastLog returns the log of the last run of a container, and when it was last written. A run's log is NUMBER.log.
func lastLog(dir string) (path string, changed time.Time) {
	entries, _ := os.ReadDir(dir) // a container may be removed at any moment
	last := -1
	for _, e := range entries {
		number, err := strconv.Atoi(strings.TrimSuffix(e.Name(), ".log"))
		if err != nil || number < last {
			continue
		}
		if info, err := e.Info(); err == nil {
			last, path, changed = number, filepath.Join(dir, e.Name()), info.ModTime()
		}
	}
	return path, changed
}
