package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/prove/cluster/kubeadm"
	"slipway.build/pkg/prove/cluster/tarball"
)

// A cluster can run programs from a folder, where make has compiled them, instead of those of a release. Other programs come from the
// release, and so do the nodes' root file system and the images that the programs are put into.

// A NoProgramsError is a folder that lacks programs of a control plane, which no release can fill in for.
type NoProgramsError struct {
	Names   []string
	Dir     string
	Release error // why there is no release
}

func (e NoProgramsError) Error() string {
	return fmt.Sprintf("%s lacks %s, and %v", e.Dir, strings.Join(e.Names, ", "), e.Release)
}

func (e NoProgramsError) Unwrap() error { return e.Release }

// source returns a cluster's release, or nil if Bin has every program of a control plane, and the names of the programs that come from
// the folder Bin.
func (o Options) source() (b *tarball.Tarball, fromBin []string, err error) {
	names := controlPlanePrograms
	if !o.ControlPlaneOnly {
		names = append(withoutName(nodePrograms, registryProgram), new(State).components()...)
	}
	var lacks []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if info, err := os.Stat(filepath.Join(o.Bin, name)); o.Bin != "" && err == nil && info.Mode().IsRegular() {
			fromBin = append(fromBin, name)
		} else {
			lacks = append(lacks, name)
		}
	}
	if o.Bin != "" && len(fromBin) == 0 {
		return nil, nil, fmt.Errorf("%s has no program of a cluster", o.Bin)
	}
	if len(lacks) == 0 && o.ControlPlaneOnly {
		return nil, fromBin, nil
	}
	b, err = tarball.Open(o.Tarballs, apiServer)
	if len(fromBin) > 0 && o.ControlPlaneOnly && errors.As(err, new(MissingError)) {
		err = NoProgramsError{lacks, o.Bin, err}
	}
	return b, fromBin, err
}

// hasPrograms reports whether a cluster was made with the programs that a folder has now.
func (s *State) hasPrograms(dir string, names []string) (bool, error) {
	for _, name := range names {
		p := s.original(name)
		if p == nil {
			return false, nil
		}
		sum, err := checksum.File(filepath.Join(dir, name))
		if err != nil || sum != p.SHA256 {
			return false, err
		}
	}
	return len(s.Programs) == len(names), nil
}

// copyPrograms copies programs from a folder into that of the cluster. Without a release, the version is that of the API server.
func (s *State) copyPrograms(ctx context.Context, dir string, names []string) error {
	var programs []Program
	for _, name := range names {
		p, err := s.store(ctx, dir, name)
		if err != nil {
			return err
		}
		programs = append(programs, p)
	}
	return s.change(func() {
		s.Programs = programs
		if api := find(programs, apiServer); s.Release == "" && api != nil {
			s.Version = strings.TrimPrefix(api.Version, "Kubernetes ")
		}
	})
}

// staticPods are the components that kubeadm runs as static Pods, and that can be of a folder.
var staticPods = []string{apiServer, "kube-controller-manager", "kube-scheduler"}

// publishPrograms pushes images with the programs of static Pods.
func (s *State) publishPrograms(ctx context.Context, registry string) error {
	return s.eachProgram(staticPods, func(name string, p *Program) error {
		_, err := s.imageFor(ctx, name, registry+"/"+name+":any", p)
		return err
	})
}

// eachProgram calls f for those of the programs that do not come from the release, and stores what f changes in them.
func (s *State) eachProgram(names []string, f func(name string, p *Program) error) error {
	for _, name := range names {
		p := s.original(name)
		if p == nil {
			continue
		}
		if err := f(name, p); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := s.change(func() { s.Programs = append(without(s.Programs, name), *p) }); err != nil {
			return err
		}
	}
	return nil
}

// writePatches writes, for kubeadm in a node, changes to the manifests of static Pods: to their images. It reports whether there are any.
func (s *State) writePatches(n node) (bool, error) {
	patched := false
	for _, name := range staticPods {
		p := s.original(name)
		if p == nil {
			continue
		}
		text, err := json.Marshal([]object{{"op": "replace", "path": "/spec/containers/0/image", "value": p.Image}})
		if err != nil {
			return false, err
		}
		if err := s.writeInNode(n, 0o644, text, kubeadm.Patches, name+"+json.json"); err != nil {
			return false, err
		}
		patched = true
	}
	return patched, nil
}

// rollOutPrograms updates DaemonSets and Deployments whose programs do not come from the release.
func (s *State) rollOutPrograms(ctx context.Context) error {
	return s.eachProgram(slices.Sorted(maps.Keys(workloads)), func(name string, p *Program) error { return s.installWorkload(ctx, name, p) })
}
