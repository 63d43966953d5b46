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
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/prove/cluster/machine"
	"slipway.build/pkg/prove/cluster/tarball"
	"slipway.build/pkg/release"
)

// Options say which cluster to make.
type Options struct {
	Dir              string // the folder of the clusters' folders
	Name             string
	Tarballs         string // the folder with the server tarball and release.json
	Bin              string // a folder with programs that the cluster is made with instead of the release's; may be empty
	Nodes            int
	ControlPlaneOnly bool
	RuntimeOnly      bool               // one node with a container runtime, and no Kubernetes
	ControlPlanes    int                // how many of the nodes have a control plane; zero means one
	Wait             time.Duration      // for each part to become ready; zero means DefaultWait
	Settings         Settings           // of Kubernetes
	HollowNodes      int                // besides Nodes
	Tests            string             // the folder with the test tarball, which has their image; empty means Tarballs
	Events           func(action.Event) // receives what happens; not nil
}

// DefaultWait is how long Up waits for each part, which takes seconds on a machine that is not slow.
const DefaultWait = 2 * time.Minute

// Up creates a cluster, and returns when it is ready. If the cluster runs, Up changes nothing but the number of hollow nodes. Otherwise it
// first removes what is there: an unfinished cluster, one with a process that has ended, or one from before the last boot. The caller makes
// sure that one Up or Down runs at a time in a folder.
//
// After a failure, what was made remains for inspection, and Down removes it. The state is nil if no cluster was made, or if the programs
// have refused the settings.
func Up(ctx context.Context, o Options) (*State, error) {
	if err := o.Require(); err != nil {
		return nil, err
	}
	b, fromBin, err := o.source()
	if err != nil {
		return nil, err
	}
	if o.HollowNodes > 0 { // rather now than when the rest is up
		if _, err := tarball.Open(o.tests(), hollowImage); err != nil {
			return nil, err
		}
	}
	s := &State{Name: o.Name, ControlPlaneOnly: o.ControlPlaneOnly, RuntimeOnly: o.RuntimeOnly, ControlPlanes: max(o.ControlPlanes, 1),
		Settings: o.Settings, patience: cmp.Or(o.Wait, DefaultWait)}
	if b != nil {
		s.Release, s.Version = b.Sum(), b.Release.Version
		if s.Tarballs, err = filepath.Abs(o.Tarballs); err != nil {
			return nil, err
		}
	}
	switch before, err := Load(o.Dir, o.Name); {
	case errors.Is(err, ErrNone):
	case err != nil:
		return nil, err
	case before.running():
		if err := before.check(s, o, fromBin); err != nil {
			return nil, err
		}
		if before.HollowNodes == 0 && o.HollowNodes == 0 {
			return before, nil
		}
		before.patience = s.patience
		if err := runSteps(ctx, before.hollowSteps(o.HollowNodes, o.tests()), o.Events); err != nil {
			return nil, err
		}
		return before, nil
	}
	if b != nil {
		if err := b.Verify(ctx); err != nil {
			return nil, err
		}
	}
	if err := Down(ctx, o.Dir, o.Name); err != nil {
		return nil, err
	}
	if err := s.create(o.Dir); err != nil {
		return nil, err
	}
	err = runSteps(ctx, s.steps(b, o, fromBin), o.Events)
	if badrequest.Is(err) { // nothing was started
		return nil, errors.Join(err, Down(context.WithoutCancel(ctx), o.Dir, o.Name))
	}
	if err != nil {
		return s, err
	}
	return s, s.change(func() { s.Ready = true })
}

func (o Options) tests() string { return cmp.Or(o.Tests, o.Tarballs) }

// check returns an error unless a cluster that runs is as a new one would be.
func (s *State) check(next *State, o Options, fromBin []string) error {
	if s.Upgrade != nil {
		return fmt.Errorf("%w, %s", s.wrap(ErrUpgrading), s.Upgrade.Version)
	}
	same, err := s.hasPrograms(o.Bin, fromBin)
	if err != nil {
		return err
	}
	if !same || !s.Settings.Same(next.Settings) || s.Release != next.Release ||
		s.ControlPlaneOnly != next.ControlPlaneOnly || s.RuntimeOnly != next.RuntimeOnly ||
		!s.ControlPlaneOnly && (len(s.Nodes()) != o.Nodes || s.ControlPlanes != next.ControlPlanes) {
		return s.wrap(ErrOther)
	}
	return nil
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

// steps returns the steps to a cluster. The first ones copy the programs, and unpack the artifacts, that it uses.
func (s *State) steps(b *tarball.Tarball, o Options, fromBin []string) []step {
	steps := inOrder([]step{
		{"copy programs", nil, func(ctx context.Context) error { return s.copyPrograms(ctx, o.Bin, fromBin) }},
		{"unpack", nil, func(ctx context.Context) error {
			if b == nil {
				return nil // there is nothing of a release
			}
			if err := s.unpack(ctx, b); err != nil {
				return err
			}
			return s.use(b.Sum())
		}},
		{"settings", nil, s.checkSettings},
	})
	if len(fromBin) == 0 {
		steps = steps[1:]
		steps[0].after = nil
	}
	switch {
	case o.ControlPlaneOnly:
		return append(steps, s.controlPlane()...)
	case o.RuntimeOnly:
		return append(steps, s.nodeAlone()...)
	}
	steps = append(steps, s.nodes(o.Nodes)...)
	if len(fromBin) > 0 {
		steps = append(steps, step{"programs in Pods", []string{"CoreDNS ready", "metrics-server running"}, s.rollOutPrograms})
	}
	if o.HollowNodes > 0 {
		steps = append(steps, s.hollowSteps(o.HollowNodes, o.tests(), "nodes ready")...)
	}
	return steps
}

// unpack unpacks what the cluster uses of a release, unless that was done before.
func (s *State) unpack(ctx context.Context, b *tarball.Tarball) error {
	dir := s.path(folderOf(b.Sum()))
	if exists(filepath.Join(dir, release.File)) {
		return nil
	}
	if err := writeEnvironment(dir, b.Release); err != nil {
		return err
	}
	if s.ControlPlaneOnly {
		fromBin := func(name string) bool { return s.original(name) != nil }
		return b.Unpack(ctx, dir, slices.DeleteFunc(slices.Clone(controlPlanePrograms), fromBin))
	}
	folders := []string{runtimeDefaults}
	for _, name := range addons {
		folders = append(folders, addonFolder(name))
	}
	artifacts := slices.Concat(nodePrograms, networkPlugins, nodeImages, b.Archives())
	if !s.Settings.Empty() {
		artifacts = append(artifacts, settingPrograms...)
	}
	return b.Unpack(ctx, dir, artifacts, folders...)
}

// writeEnvironment writes the file, in the folder of an unpacked release, with the variables that nodes start kubelets with.
func writeEnvironment(dir string, r *release.Release) error {
	text := ""
	if r.FIPS != nil && r.FIPS.Environment {
		text = release.FIPSMode + "\n"
	}
	return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "environment"), []byte(text), 0o644))
}

// hostTools are the programs of this machine that create nodes, with their Debian packages. What runs in nodes is the release's.
var hostTools = []struct{ name, debian string }{
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
	for _, p := range hostTools {
		// In the PATH of a cluster's commands, and not in that of this process.
		if !slices.ContainsFunc(filepath.SplitList(machine.Path), func(dir string) bool {
			_, err := exec.LookPath(filepath.Join(dir, p.name))
			return err == nil
		}) {
			lacks, packages = append(lacks, p.name), append(packages, p.debian)
		}
	}
	if len(lacks) > 0 {
		slices.Sort(packages)
		return fmt.Errorf("nodes need %s: install the Debian packages: apt-get install %s", strings.Join(lacks, ", "),
			strings.Join(slices.Compact(packages), " "))
	}
	return nil
}
