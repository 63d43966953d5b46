package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"slipway.build/pkg/mechanism/atomicfile"
)

// A State is what is known of a cluster. It is written before each thing is made that outlives the process, so that whoever
// reads it can remove everything, whatever happened.
type State struct {
	Name             string    `json:"name"`
	ID               string    `json:"id"`                 // part of the names of what the kernel has of this cluster
	Version          string    `json:"version"`            // of Kubernetes
	Release          string    `json:"release"`            // the SHA-256 of its SHA256SUMS
	Tarballs         string    `json:"tarballs,omitempty"` // the folder that it was made of
	Boot             string    `json:"boot"`               // the machine's: after another one nothing runs
	ControlPlaneOnly bool      `json:"controlPlaneOnly"`
	Subnet           string    `json:"subnet,omitempty"`      // that nodes have their addresses in
	Ready            bool      `json:"ready"`                 // up came to its end
	Controllers      []string  `json:"controllers,omitempty"` // of cgroup version 2, which the machine's own group handed on only since up
	Processes        []Process `json:"processes"`             // the inits of nodes, or the control plane's programs

	dir      string
	patience time.Duration // how long Up waits for a thing to happen
	mu       sync.Mutex    // held while it is changed and written
}

// A Process is one that runs for a cluster.
type Process struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Start   uint64 `json:"start"` // in ticks since boot: with the PID it is this process and no later one
	Address string `json:"address,omitempty"`
}

// ErrNone says that there is no cluster of that name.
var ErrNone = errors.New("there is no such cluster")

const stateFile = "state.json"

// goodName is what node names, and folders, can begin with.
var goodName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// folder is where everything of a cluster is.
func folder(dir, name string) (string, error) {
	if !goodName.MatchString(name) {
		return "", NameError(name)
	}
	return filepath.Abs(filepath.Join(dir, name))
}

// A NameError is a name that no cluster can have.
type NameError string

func (e NameError) Error() string {
	return fmt.Sprintf("cluster name %q: not 1 to 32 of a-z, 0-9 and -, beginning and ending with a letter or digit", string(e))
}

// BadRequest marks the error as the request's fault: see package badrequest.
func (NameError) BadRequest() {}

// Load reads the state of a cluster: its error is ErrNone if there is none.
func Load(dir, name string) (*State, error) {
	where, err := folder(dir, name)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(where, stateFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cluster %s in %s: %w", name, dir, ErrNone)
	}
	if err != nil {
		return nil, err
	}
	s := &State{dir: where}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(where, stateFile), err)
	}
	return s, nil
}

// Names lists the clusters in a folder.
func Names(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", stateFile))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	slices.Sort(names)
	return names, nil
}

// newState makes the folder of a cluster, and writes what is known of it, which says that there may be one.
func newState(dir, name, release string, controlPlaneOnly bool) (*State, error) {
	where, err := folder(dir, name)
	if err != nil {
		return nil, err
	}
	// The folder's path is no other cluster's on this machine.
	sum := sha256.Sum256([]byte(where))
	s := &State{Name: name, Release: release, ControlPlaneOnly: controlPlaneOnly, ID: hex.EncodeToString(sum[:4]), dir: where, Boot: bootID()}
	if err := os.MkdirAll(where, 0o755); err != nil {
		return nil, err
	}
	return s, s.change(func() {})
}

// change changes the state and writes it.
func (s *State) change(f func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(s.path(stateFile), append(text, '\n'), 0o644)
}

// path is that of something in the cluster's folder.
func (s *State) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (s *State) Kubeconfig() string { return s.path("kubeconfig") }

// Kubectl is the path of the release's kubectl.
func (s *State) Kubectl() string { return s.path("release", "kubernetes", "server", "bin", "kubectl") }

// ReleaseFile is the path of a file of the unpacked release, by its name in the tarball's folder kubernetes.
func (s *State) ReleaseFile(name string) string {
	return s.path("release", "kubernetes", filepath.FromSlash(name))
}

// NodeFile is the path, on this machine, of something that a node writes: var-log, kubelet, kubernetes, tmp.
func (s *State) NodeFile(node string, parts ...string) string {
	return s.path(append([]string{"nodes", node}, parts...)...)
}

// process finds one by its name.
func (s *State) process(name string) (Process, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.Processes, func(p Process) bool { return p.Name == name })
	if i < 0 {
		return Process{}, false
	}
	return s.Processes[i], true
}

// running tells whether the cluster is ready, and nothing of it has ended since.
func (s *State) running() bool { return s.Ready && s.Boot == bootID() && s.checkAlive() == nil }

// Nodes are the processes that are nodes.
func (s *State) Nodes() []Process {
	var nodes []Process
	for _, p := range s.Processes {
		if !s.ControlPlaneOnly && p.Name != switchName {
			nodes = append(nodes, p)
		}
	}
	return nodes
}
