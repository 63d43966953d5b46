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
	"strconv"
	"sync"
	"time"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/prove/cluster/machine"
	"slipway.build/pkg/prove/cluster/tarball"
	"slipway.build/pkg/release"
)

// A State describes a cluster. It is written before anything is made that outlives this process, so that Down can remove everything.
type State struct {
	Name             string    `json:"name"`
	ID               string    `json:"id"`                 // in the names of the interface and the control groups
	Version          string    `json:"version"`            // of Kubernetes
	Release          string    `json:"release"`            // the SHA-256 of its release.json
	Tarballs         string    `json:"tarballs,omitempty"` // the folder of the release
	Made             time.Time `json:"made"`
	Boot             string    `json:"boot"` // of the machine; after the next boot nothing of the cluster runs
	ControlPlaneOnly bool      `json:"controlPlaneOnly"`
	RuntimeOnly      bool      `json:"runtimeOnly,omitempty"` // a node with a container runtime, and no Kubernetes
	ControlPlanes    int       `json:"controlPlanes"`         // nodes with a control plane, which are the first
	Subnet           string    `json:"subnet,omitempty"`      // of the nodes' addresses
	Ready            bool      `json:"ready"`                 // Up has finished
	Controllers      []string  `json:"controllers,omitempty"` // of cgroup version 2, which the machine's own group did not delegate before Up
	Processes        []Process `json:"processes"`             // the inits of nodes, or the control plane's programs
	Upgrade          *Target   `json:"upgrade,omitempty"`     // the release that the cluster is on its way to
	Programs         []Program `json:"programs,omitempty"`    // that Up took from a folder instead of the release
	Replaced         []Program `json:"replaced,omitempty"`    // that Replace has put in their places since
	Unsettled        []string  `json:"unsettled,omitempty"`   // components whose replacement has begun and not ended
	Settings         Settings  `json:"settings,omitzero"`
	HollowNodes      int       `json:"hollowNodes,omitempty"` // besides those with a process
	Addons           []string  `json:"addons,omitempty"`      // that Add has installed

	dir      string
	patience time.Duration    // how long Up waits for each part
	mu       sync.Mutex       // held while the state is changed and written
	unpacked *tarball.Tarball // the server tarball, once it was opened
}

// A Process is a process of a cluster.
type Process struct {
	Name string `json:"name"`
	machine.Process
	Address string   `json:"address,omitempty"`
	Flags   []string `json:"flags,omitempty"`   // of a program of a control plane without nodes
	Release string   `json:"release,omitempty"` // of a node: SHA-256 of the release whose kubelet runs there; empty during an upgrade
}

// A Target is the release of an upgrade that has begun and not ended.
type Target struct {
	Version  string `json:"version"`
	Release  string `json:"release"`  // the SHA-256 of its release.json
	Tarballs string `json:"tarballs"` // its folder
}

// Errors for errors.Is.
var (
	ErrNone       = errors.New("there is no such cluster")
	ErrOther      = errors.New("is up already, from another release, of other programs, or with other nodes or settings")
	ErrUnfinished = errors.New("is not finished")
	ErrUpgrading  = errors.New("is on its way to another release")
	ErrNoNodes    = errors.New("is a control plane without nodes, which can run nothing")
	ErrNoKubelet  = errors.New("is a node without Kubernetes")
	ErrNotRoot    = errors.New("nodes need root")
	ErrNotReady   = errors.New("not ready in time") // within Options.Wait
)

// A MissingError is a tarball, or the description of a release, that a folder lacks.
type MissingError = tarball.MissingError

// RequireNodes returns an error unless the cluster is up and has nodes.
func (s *State) RequireNodes() error {
	switch {
	case s.RuntimeOnly:
		return s.wrap(ErrNoKubelet)
	case s.ControlPlaneOnly:
		return s.wrap(ErrNoNodes)
	case !s.Ready:
		return s.wrap(ErrUnfinished)
	}
	return nil
}

// wrap adds the name of the cluster to an error.
func (s *State) wrap(err error) error { return fmt.Errorf("cluster %s %w", s.Name, err) }

const stateFile = "state.json"

// goodName matches names that the names of nodes and folders can begin with.
var goodName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// folder returns the folder of a cluster.
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

// Load reads the state of a cluster. It returns ErrNone if there is none.
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
	names, err := filepath.Glob(filepath.Join(dir, "*", stateFile))
	for i, file := range names {
		names[i] = filepath.Base(filepath.Dir(file))
	}
	return names, err
}

// create makes the folder of a cluster and writes its first state. From then on, there may be something to remove.
func (s *State) create(dir string) (err error) {
	if s.dir, err = folder(dir, s.Name); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(s.dir)) // no other cluster on this machine has the folder's path
	s.ID, s.Boot, s.Made = hex.EncodeToString(sum[:4]), machine.BootID(), time.Now()
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	return s.change(func() {})
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

// path returns a path in the cluster's folder.
func (s *State) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (s *State) Kubeconfig() string { return s.path("kubeconfig") }

// releaseDir returns the folder of what was unpacked of the release. It is a link to one in the folder of releases, which every node
// sees as a whole: during an upgrade there are two.
func (s *State) releaseDir() string { return s.path("release") }

// releases is the folder of unpacked releases, in that of a cluster.
const releases = "releases"

// folderOf returns the folder of a release in that of the cluster, by the SHA-256 of its release.json.
func folderOf(sum string) string { return filepath.Join(releases, sum[:min(len(sum), 12)]) }

// use makes a release the cluster's own: that whose kubectl, images and manifests it uses.
func (s *State) use(sum string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unpacked = nil
	return relink(folderOf(sum), s.releaseDir())
}

// exists reports whether there is a file.
func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// relink makes a name a symbolic link, or changes where it leads, in one step.
func relink(to, name string) error {
	return replaceBy(name, func(next string) error { return os.Symlink(to, next) })
}

// replaceBy has a new file take the place of one, in one step.
func replaceBy(name string, create func(next string) error) error {
	next := name + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := create(next); err != nil {
		return err
	}
	return os.Rename(next, name)
}

// server returns what was unpacked of the server tarball.
func (s *State) server() (*tarball.Tarball, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unpacked != nil {
		return s.unpacked, nil
	}
	b, err := tarball.Open(s.releaseDir(), apiServer)
	if errors.As(err, new(MissingError)) {
		return nil, fmt.Errorf("cluster %s %w: %v", s.Name, ErrUnfinished, err) // not the folder that Up takes tarballs from
	}
	s.unpacked = b
	return b, err
}

// FIPS returns what the cluster's release says of FIPS mode, or nil if there is no release or it says nothing.
func (s *State) FIPS() (*release.FIPS, error) {
	if s.Release == "" {
		return nil, nil
	}
	b, err := s.server()
	if err != nil {
		return nil, err
	}
	return b.Release.FIPS, nil
}

// NodeFile returns the path, on this machine, of a file that a node writes: in var-log, kubernetes or tmp.
func (s *State) NodeFile(node string, parts ...string) string {
	return s.path(append([]string{"nodes", node}, parts...)...)
}

// InNode returns the path, on this machine, of any file of a node that runs.
func (s *State) InNode(node, file string) string {
	p, _ := s.process(node)
	return filepath.Join("/proc", strconv.Itoa(p.PID), "root", file)
}

// process returns a process by its name.
func (s *State) process(name string) (Process, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.Processes, func(p Process) bool { return p.Name == name })
	if i < 0 {
		return Process{}, false
	}
	return s.Processes[i], true
}

// Nodes returns the processes that are the inits of nodes.
func (s *State) Nodes() []Process {
	var nodes []Process
	for _, p := range s.Processes {
		if !s.ControlPlaneOnly && p.Name != switchName && p.Name != balancerName {
			nodes = append(nodes, p)
		}
	}
	return nodes
}
