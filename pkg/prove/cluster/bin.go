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
	"slipway.build/pkg/prove/cluster/bundle"
	"slipway.build/pkg/prove/cluster/kubeadm"
)

// A cluster can be made of programs in a folder, which make has compiled, instead of those of a release. What the folder lacks comes from
// a release, and so does everything that is no program of Kubernetes: the nodes' root file system, and the images below the programs.

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

// binNames returns the names of the programs that a cluster takes from a folder, if that has them.
func (o Options) binNames() []string {
	if o.ControlPlaneOnly {
		return controlPlanePrograms
	}
	names := removed(nodePrograms, registryProgram)
	for _, c := range components {
		names = append(names, c.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// fromBin returns the names of the programs that a folder has and lacks.
func (o Options) fromBin() (has, lacks []string, err error) {
	if o.Bin == "" {
		return nil, o.binNames(), nil
	}
	for _, name := range o.binNames() {
		if info, err := os.Stat(filepath.Join(o.Bin, name)); err == nil && info.Mode().IsRegular() {
			has = append(has, name)
		} else {
			lacks = append(lacks, name)
		}
	}
	if len(has) == 0 {
		return nil, nil, fmt.Errorf("%s has no program of a cluster", o.Bin)
	}
	return has, lacks, nil
}

// source returns the release that a cluster is made from, or nil if a folder has all of its programs, and the names of the programs that
// come from the folder.
func (o Options) source() (b *bundle.Bundle, fromBin []string, err error) {
	has, lacks, err := o.fromBin()
	if err != nil {
		return nil, nil, err
	}
	if len(lacks) == 0 && o.ControlPlaneOnly {
		return nil, has, nil
	}
	b, err = bundle.Open(o.Tarballs, apiServer)
	if missing := new(MissingError); len(has) > 0 && o.ControlPlaneOnly && errors.As(err, missing) {
		err = NoProgramsError{lacks, o.Bin, err}
	}
	return b, has, err
}

// madeOf reports whether a cluster was made with the programs in a folder.
func (s *State) madeOf(dir string, names []string) (bool, error) {
	if len(s.Programs) != len(names) {
		return false, nil
	}
	for _, name := range names {
		p := s.first(name)
		if p == nil {
			return false, nil
		}
		sum, err := checksum.File(filepath.Join(dir, name))
		if err != nil || sum != p.SHA256 {
			return false, err
		}
	}
	return true, nil
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

// placePrograms makes a node find the programs that the cluster was made with.
func (s *State) placePrograms(n node) error {
	for _, p := range s.Programs {
		if slices.Contains(nodePrograms, p.Name) {
			if err := s.placeProgram(n, p.Name, &p); err != nil {
				return err
			}
		}
	}
	return nil
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

// eachProgram calls f for those programs that the cluster was made with instead of the release's, and keeps what f changes in them.
func (s *State) eachProgram(names []string, f func(name string, p *Program) error) error {
	for _, name := range names {
		p := s.first(name)
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
		p := s.first(name)
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

// rollOutPrograms has DaemonSets and Deployments run the programs that the cluster is made with.
func (s *State) rollOutPrograms(ctx context.Context) error {
	return s.eachProgram(slices.Sorted(maps.Keys(workloads)), func(name string, p *Program) error { return s.putWorkload(ctx, name, p) })
}
