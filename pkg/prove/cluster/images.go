package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"slipway.build/pkg/mechanism/unpack"
)

// An imageFile is an unpacked archive of an image, with the names in it.
type imageFile struct {
	file  string
	names []string
}

// images returns the unpacked images.
func (b *bundle) images() ([]imageFile, error) {
	var images []imageFile
	for _, name := range b.archives() {
		i, err := b.image(name)
		if err != nil {
			return nil, err
		}
		images = append(images, i)
	}
	return images, nil
}

// image returns an unpacked image by the name of its archive.
func (b *bundle) image(name string) (imageFile, error) {
	file, err := b.path(name)
	if err != nil {
		return imageFile{}, err
	}
	m, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(file) })
	if err != nil {
		return imageFile{}, fmt.Errorf("image %s: %w", file, err)
	}
	i := imageFile{file: file}
	for _, d := range m {
		i.names = append(i.names, d.RepoTags...)
	}
	if len(i.names) == 0 {
		return imageFile{}, fmt.Errorf("image %s: it has no name", file)
	}
	return i, nil
}

// unpackRoot unpacks the root file system of nodes, on which each node has a layer of its own.
func (s *State) unpackRoot(ctx context.Context) error {
	b, err := s.server()
	if err != nil {
		return err
	}
	file, err := b.path(nodeImage)
	if err != nil {
		return err
	}
	image, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		return fmt.Errorf("image %s: %w", file, err)
	}
	if err := os.MkdirAll(s.path("root"), 0o755); err != nil {
		return err
	}
	files := mutate.Extract(image)
	defer files.Close()
	if err := unpack.RootFilesystem(ctx, files, s.path("root")); err != nil {
		return fmt.Errorf("image %s: %w", file, err)
	}
	return nil
}

// name returns the image's shortest name. The others have the architecture in them.
func (i imageFile) name() string {
	return slices.MinFunc(i.names, func(a, b string) int { return len(a) - len(b) })
}

// controlPlane reports whether only the first node runs the image, as a static Pod.
func (i imageFile) controlPlane() bool {
	return slices.ContainsFunc([]string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}, func(short string) bool {
		return len(i.repositories(short)) > 0
	})
}

// repositories returns the parts before a short name in the image's names: for coredns in
// registry.k8s.io/coredns/coredns:v1.14.2, registry.k8s.io/coredns.
func (i imageFile) repositories(short string) []string {
	var all []string
	for _, name := range i.names {
		repository, last := path.Split(name)
		if base, _, ok := strings.Cut(last, ":"); ok && base == short {
			all = append(all, strings.TrimSuffix(repository, "/"))
		}
	}
	return all
}

// hasImage reports whether an image has a short name.
func hasImage(images []imageFile, short string) bool {
	return slices.ContainsFunc(images, func(i imageFile) bool { return len(i.repositories(short)) > 0 })
}

// chooseRegistry returns the registry under whose name the release has all images that kubeadm wants, and the image for the
// containers that hold Pods' namespaces. Images may have the names of several registries.
func chooseRegistry(ctx context.Context, b *bundle, images []imageFile) (registry, sandbox string, err error) {
	err = fmt.Errorf("%s has no image named %s", b.tarball.Path, apiServer)
	for _, i := range images {
		for _, registry := range i.repositories(apiServer) {
			var wanted []string
			if wanted, err = wantedImages(ctx, b, registry); err != nil {
				return "", "", err
			}
			if err = b.requireImages(images, wanted); err != nil {
				continue
			}
			at := slices.IndexFunc(wanted, func(name string) bool { return strings.HasPrefix(path.Base(name), "pause:") })
			if at < 0 {
				return "", "", fmt.Errorf("kubeadm wants no pause image among %q", wanted)
			}
			return registry, wanted[at], nil
		}
	}
	return "", "", err
}

// wantedImages returns the images that kubeadm has the nodes run.
func wantedImages(ctx context.Context, b *bundle, registry string) ([]string, error) {
	kubeadm, err := b.path("kubeadm")
	if err != nil {
		return nil, err
	}
	out, err := output(ctx, "", kubeadm, "config", "images", "list",
		"--kubernetes-version="+b.release.Version, "--image-repository="+registry)
	return strings.Fields(out), err
}

// requireImages returns an error that names the images that the tarball lacks.
func (b *bundle) requireImages(images []imageFile, names []string) error {
	var lacks []string
	for _, name := range names {
		if !slices.ContainsFunc(images, func(i imageFile) bool { return slices.Contains(i.names, name) }) {
			lacks = append(lacks, name)
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("%s lacks images that kubeadm wants: %s: its release cannot boot", b.tarball.Path, strings.Join(lacks, ", "))
	}
	return nil
}
