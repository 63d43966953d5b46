package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/prove/cluster/images"
	"slipway.build/pkg/prove/cluster/tarball"
)

// Add installs addons of the tarball of addons in a folder, by default that of the cluster's release, and returns when they run. It
// compares the tarball with release.json, and its version with the cluster's. An addon that the cluster has already is changed to what
// the tarball has.
func (s *State) Add(ctx context.Context, tars string, names []string, events func(action.Event)) error {
	if err := s.RequireNodes(); err != nil {
		return err
	}
	tars = cmp.Or(tars, s.Tarballs)
	b, err := tarball.OpenAddons(tars)
	if err != nil {
		return err
	}
	if got := b.Release.Version; got != s.Version {
		return fmt.Errorf("%s has version %s, and cluster %s has %s", filepath.Join(tars, b.Artifact.Path), got, s.Name, s.Version)
	}
	s.patience = cmp.Or(s.patience, DefaultWait)
	steps := []step{{"unpack", nil, func(ctx context.Context) (err error) {
		b, err = s.unpackAddons(ctx, b, names)
		return err
	}}}
	for _, name := range names {
		steps = append(steps, step{"addon " + name, nil, func(ctx context.Context) error { return s.installAddon(ctx, b, name) }})
	}
	return runSteps(ctx, inOrder(steps), events)
}

// unpackAddons unpacks the tarball of addons, unless that was done before.
func (s *State) unpackAddons(ctx context.Context, b *tarball.Tarball, names []string) (*tarball.Tarball, error) {
	dir := filepath.Join(s.releaseDir(), "optional")
	if earlier, err := tarball.OpenAddons(dir); err != nil || earlier.Artifact.SHA256 != b.Artifact.SHA256 {
		if err := b.Verify(ctx); err != nil {
			return nil, err
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
		if err := b.Unpack(ctx, dir, b.Archives(), addonsFolder); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	b, err := tarball.OpenAddons(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := known(dir, name); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// known returns an error unless there are manifests of an addon among unpacked ones.
func known(dir, name string) error {
	var names []string
	files, err := manifestsBelow(filepath.Join(dir, filepath.FromSlash(addonsFolder)))
	for _, file := range files {
		addon, _, _ := strings.Cut(file, string(filepath.Separator))
		if !slices.Contains(names, addon) {
			names = append(names, addon)
		}
	}
	if err == nil && !slices.Contains(names, name) {
		err = suggest.Unknown("addon", name, names)
	}
	return err
}

// manifestsBelow returns the manifests below a folder, relative to it.
func manifestsBelow(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(file string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(file) == ".yaml" {
			file, err = filepath.Rel(dir, file)
			files = append(files, file)
		}
		return err
	})
	return files, err
}

// installAddon installs an unpacked addon, and waits until it runs.
func (s *State) installAddon(ctx context.Context, b *tarball.Tarball, name string) error {
	dir := filepath.Join(s.releaseDir(), "optional", filepath.FromSlash(addonFolder(name)))
	files, err := manifestsBelow(dir)
	if err != nil {
		return err
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		fmt.Fprintf(&all, "---\n%s\n", text)
	}
	manifests := all.String()
	available, err := podImages(b)
	if err != nil {
		return err
	}
	named := slices.DeleteFunc(available, func(i images.Image) bool {
		return !slices.ContainsFunc(i.Names, func(name string) bool { return strings.Contains(manifests, name) })
	})
	if err := s.registry().Push(ctx, named); err != nil {
		return err
	}
	var objects []applied
	err = s.eventually(ctx, longPause, func(ctx context.Context) error { // a custom resource is not served at once
		out, err := s.kubectlWith(ctx, manifests, "apply", "-f", "-", "-o", "json")
		if err != nil {
			return err
		}
		objects, err = readApplied(out)
		return err
	})
	if err != nil {
		return err
	}
	for _, o := range objects {
		if !slices.Contains([]string{"Deployment", "DaemonSet", "StatefulSet"}, o.Kind) {
			continue
		}
		if _, err := s.kubectl(ctx, "--namespace="+o.Metadata.Namespace, "rollout", "status", o.Kind+"/"+o.Metadata.Name,
			s.timeout()); err != nil {
			return s.explain(ctx, err)
		}
	}
	return s.change(func() {
		if !slices.Contains(s.Addons, name) {
			s.Addons = append(s.Addons, name)
		}
	})
}

// An applied object is what kubectl apply prints of it.
type applied struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
}

// readApplied reads what kubectl apply prints: an object, or a list of several.
func readApplied(out string) ([]applied, error) {
	var printed struct {
		applied
		Items []applied
	}
	err := json.Unmarshal([]byte(out), &printed)
	if printed.Kind != "List" {
		return []applied{printed.applied}, err
	}
	return printed.Items, err
}
