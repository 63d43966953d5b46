package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"slipway.build/pkg/prove/cluster/images"
	"slipway.build/pkg/prove/cluster/kubeadm"
)

// A hollow node is a kubelet of the release's kubemark, in a Pod, whose containers are only pretended. The API server, the scheduler and
// the controllers have as much to do with it as with any other node.

// Hollow nodes have this label and this taint, and their Pods are in this namespace.
const (
	HollowLabel     = "slipway.build/hollow"
	HollowNamespace = "kubemark"
)

const (
	hollowImage  = "kubemark.tar" // in the test tarball
	hollowPrefix = "hollow-"      // of a hollow node's name, before its number from 0
)

//go:embed hollow.yaml
var hollowManifest string

// ErrHollow says that a cluster has hollow nodes.
var ErrHollow = errors.New("has hollow nodes, which stay what they are: remove them first")

// hollowSteps returns the steps that give the cluster as many hollow nodes as are wanted, whatever it has.
func (s *State) hollowSteps(count int, tars string, after ...string) []step {
	var image images.Image
	const publish, start = "publish kubemark", "hollow nodes"
	remove := step{"remove hollow nodes", []string{start}, func(ctx context.Context) error { return s.removeHollow(ctx, count) }}
	if count == 0 {
		return []step{{start, nil, func(ctx context.Context) error {
			_, err := s.system(ctx, "delete", "namespace/"+HollowNamespace, "secret/bootstrap-token-hollow", "--ignore-not-found", s.timeout())
			return err
		}}, remove}
	}
	return []step{
		{publish, after, func(ctx context.Context) (err error) {
			image, err = s.publishTestImage(ctx, tars, hollowImage)
			return err
		}},
		{start, []string{publish}, func(ctx context.Context) error { return s.startHollow(ctx, count, image.Name()) }},
		remove,
	}
}

// startHollow starts hollow nodes, and waits until they are ready.
func (s *State) startHollow(ctx context.Context, count int, image string) error {
	if err := s.change(func() { s.HollowNodes = count }); err != nil {
		return err
	}
	_, secret, _ := strings.Cut(kubeadm.NewToken(), ".")
	values := map[string]string{
		"replicas": strconv.Itoa(count), "secret": secret, "endpoint": s.endpoint(), "label": HollowLabel, "image": image,
	}
	manifest := os.Expand(hollowManifest, func(name string) string { return values[name] })
	if _, err := s.kubectlWith(ctx, manifest, "apply", "-f", "-"); err != nil {
		return err
	}
	err := s.eventually(ctx, longPause, func(ctx context.Context) error {
		nodes, err := s.hollow(ctx)
		if ready := countReady(nodes); err == nil && ready < count {
			err = fmt.Errorf("%d of %d hollow nodes are ready", ready, count)
		}
		return err
	})
	return s.explain(ctx, err)
}

// removeHollow removes the hollow nodes from a number on, once their Pods are gone: a kubelet would go on as if its node was there.
func (s *State) removeHollow(ctx context.Context, from int) error {
	nodes, err := s.hollow(ctx)
	if err != nil {
		return err
	}
	for name := range nodes {
		number, err := strconv.Atoi(strings.TrimPrefix(name, hollowPrefix))
		if err != nil || number < from {
			continue
		}
		if _, err := s.kubectl(ctx, "wait", "--for=delete", "--namespace="+HollowNamespace, "pod/"+name, s.timeout()); err != nil {
			return err
		}
		if _, err := s.kubectl(ctx, "delete", "node", name, "--ignore-not-found"); err != nil {
			return err
		}
	}
	return s.change(func() { s.HollowNodes = from })
}

// hollow returns whether each hollow node is ready, by name.
func (s *State) hollow(ctx context.Context) (map[string]bool, error) {
	return s.readyNodes(ctx, "--selector="+HollowLabel)
}

// readyNodes returns whether each node is ready, by name, as the API server says. Flags can select some.
func (s *State) readyNodes(ctx context.Context, flags ...string) (map[string]bool, error) {
	const path = `{range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`
	out, err := s.get(ctx, path, append([]string{"nodes"}, flags...)...)
	if err != nil {
		return nil, err
	}
	ready := map[string]bool{}
	for line := range strings.Lines(out) {
		name, status, _ := strings.Cut(strings.TrimSpace(line), " ")
		ready[name] = status == "True"
	}
	return ready, nil
}

func countReady(nodes map[string]bool) int {
	count := 0
	for _, ready := range nodes {
		if ready {
			count++
		}
	}
	return count
}

// ownTestImages are the images of the test tarball that no spec of e2e.test knows: that of hollow nodes, and the one with the suite itself.
var ownTestImages = []string{hollowImage, "conformance.tar"}

// publishTestImage takes one image of the test tarball in a folder, after comparing it with release.json and its version with the
// cluster's, and pushes it to the cluster's registry.
func (s *State) publishTestImage(ctx context.Context, tars, archive string) (images.Image, error) {
	b, err := s.openTests(ctx, tars, archive)
	if err != nil {
		return images.Image{}, err
	}
	dir := filepath.Join(s.releaseDir(), strings.TrimSuffix(archive, filepath.Ext(archive)))
	defer os.RemoveAll(dir) // the registry has it
	if err := b.Unpack(ctx, dir, []string{archive}); err != nil {
		return images.Image{}, err
	}
	all, err := images.Read(filepath.Join(dir, filepath.FromSlash(b.Member(archive))))
	if err != nil {
		return images.Image{}, err
	}
	return all[0], s.registry().Push(ctx, all)
}
