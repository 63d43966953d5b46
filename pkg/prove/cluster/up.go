package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/action"
)

// Options say which cluster to make.
type Options struct {
	Dir              string // the folder of the clusters' folders
	Name             string
	Tarballs         string // the folder with the server tarball and release.json
	Nodes            int
	ControlPlaneOnly bool
	ControlPlanes    int                // how many of the nodes have a control plane; zero means one
	Wait             time.Duration      // for each part to become ready; zero means DefaultWait
	Events           func(action.Event) // receives what happens; not nil
}

// DefaultWait is how long Up waits for each part, which takes seconds on a machine that is not slow.
const DefaultWait = 2 * time.Minute

// Up makes a cluster, and returns when it is ready. It first removes what an unfinished Up has left. If the cluster is up already,
// it does nothing. The caller makes sure that one Up or Down runs at a time in a folder.
//
// After a failure, what was made remains for inspection, and Down removes it. The state is nil if nothing was made.
func Up(ctx context.Context, o Options) (*State, error) {
	if err := o.Require(); err != nil {
		return nil, err
	}
	b, err := openBundle(o.Tarballs, apiServer)
	if err != nil {
		return nil, err
	}
	o.ControlPlanes = max(o.ControlPlanes, 1)
	switch s, err := Load(o.Dir, o.Name); {
	case errors.Is(err, ErrNone):
	case err != nil:
		return nil, err
	case s.running():
		if s.Release != b.sum() || s.ControlPlaneOnly != o.ControlPlaneOnly || !o.ControlPlaneOnly && (len(s.Nodes()) != o.Nodes || s.ControlPlanes != o.ControlPlanes) {
			return nil, fmt.Errorf("cluster %s %w", o.Name, ErrOther)
		}
		return s, nil
	}
	if err := b.verify(ctx); err != nil {
		return nil, err
	}
	if err := Down(ctx, o.Dir, o.Name); err != nil {
		return nil, err
	}
	s, err := newState(o.Dir, o.Name, b.sum(), o.ControlPlaneOnly, o.ControlPlanes)
	if err != nil {
		return nil, err
	}
	s.patience = cmp.Or(o.Wait, DefaultWait)
	tarballs, err := filepath.Abs(o.Tarballs)
	if err == nil {
		err = s.change(func() { s.Tarballs, s.Version = tarballs, b.release.Version })
	}
	if err != nil {
		return s, err
	}
	if err := take(ctx, s.steps(b, o), o.Events); err != nil {
		return s, err
	}
	return s, s.change(func() { s.Ready = true })
}

// Require returns an error if this machine or this user cannot have such a cluster. Up calls it first.
func (o Options) Require() error {
	if _, err := folder(o.Dir, o.Name); err != nil {
		return err
	}
	if !o.ControlPlaneOnly {
		return requireMachine()
	}
	if runtime.GOOS != "linux" {
		return errNotLinux
	}
	return nil
}

// steps returns the steps to a cluster. The first one unpacks the artifacts that it uses.
func (s *State) steps(b *bundle, o Options) []step {
	if o.ControlPlaneOnly {
		return append([]step{{"unpack", nil, func(ctx context.Context) error {
			return b.unpack(ctx, s.releaseDir(), controlPlanePrograms)
		}}}, s.controlPlane()...)
	}
	return append([]step{{"unpack", nil, func(ctx context.Context) error {
		return b.unpack(ctx, s.releaseDir(), slices.Concat(nodePrograms, networkPlugins, nodeImages, b.archives()), metricsServer)
	}}}, s.nodes(o.Nodes)...)
}

// programs are those by which this machine makes nodes, with their Debian packages. What runs in nodes is the release's.
var programs = []struct{ name, debian string }{
	{"ip", "iproute2"}, {"nsenter", "util-linux"}, {"pivot_root", "util-linux"}, {"mount", "mount"},
}

var errNotLinux = errors.New("a cluster needs Linux: run slipway in a virtual machine")

// requireMachine returns an error that names what a cluster with nodes needs and this machine or this user does not have.
func requireMachine() error {
	if runtime.GOOS != "linux" {
		return errNotLinux
	}
	if os.Geteuid() != 0 {
		return ErrNotRoot
	}
	var lacks, packages []string
	for _, p := range programs {
		if !findProgram(p.name) {
			lacks, packages = append(lacks, p.name), append(packages, p.debian)
		}
	}
	if len(lacks) > 0 {
		slices.Sort(packages)
		return fmt.Errorf("nodes need %s: install the Debian packages: apt-get install %s", strings.Join(lacks, ", "), strings.Join(slices.Compact(packages), " "))
	}
	return nil
}

// findProgram looks in the PATH of a cluster's commands, and not in that of this process.
func findProgram(name string) bool {
	return slices.ContainsFunc(filepath.SplitList(systemPath), func(dir string) bool {
		_, err := exec.LookPath(filepath.Join(dir, name))
		return err == nil
	})
}
