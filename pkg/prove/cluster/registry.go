package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/prove/cluster/images"
	"slipway.build/pkg/prove/cluster/machine"
	"slipway.build/pkg/prove/cluster/tarball"
)

// A cluster has a registry of its own on the switch: the release's olareg, in whose folder each repository is an OCI image layout. The
// container runtime of each node asks it for every image, whichever registry's name the image has, and asks no other.
const (
	registryProgram = "olareg"
	registryPort    = "5000"
)

// registry returns the cluster's registry, which this machine and the nodes reach. It is empty if the cluster has no switch.
func (s *State) registry() images.Registry {
	if s.Subnet == "" {
		return ""
	}
	return images.Registry(net.JoinHostPort(s.onSwitch(registryHost), registryPort))
}

// registryCommand returns the command that serves the folder of the registry.
func (s *State) registryCommand() ([]string, error) {
	program, err := s.fileOf(registryProgram, nil)
	if err != nil {
		return nil, err
	}
	dir := s.path("registry")
	return []string{program, "serve", "--dir", dir, "--port", registryPort, "--gc-frequency", "-1s"}, os.MkdirAll(dir, 0o755)
}

// configureRegistry has the container runtime of a node ask the cluster's registry alone.
func (s *State) configureRegistry(n node) error {
	text := fmt.Sprintf("server = \"http://%s\"\n\n[host.\"http://%[1]s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", s.registry())
	return s.writeInNode(n, 0o644, []byte(text), "certs.d", "_default", "hosts.toml")
}

// Load pushes the images in an archive, which may have been written by "docker save", to the registry of a cluster. It returns their
// names. A Pod whose image has one of them pulls it from there.
func (s *State) Load(ctx context.Context, archive string) ([]string, error) {
	if err := s.RequireNodes(); err != nil {
		return nil, err
	}
	all, err := images.Read(archive)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, i := range all {
		names = append(names, i.Names...)
	}
	return names, s.registry().Push(ctx, all)
}

// Image returns the name of an image by the name of its archive in release.json, without the platform.
func (s *State) Image(archive string) (string, error) {
	i, err := s.image(archive)
	if err != nil {
		return "", err
	}
	return i.Name(), nil
}

// image returns an image of the cluster's release.
func (s *State) image(archive string) (images.Image, error) {
	b, err := s.server()
	if err != nil {
		return images.Image{}, err
	}
	return imageOf(b, archive)
}

// imageOf returns the image in an unpacked archive.
func imageOf(b *tarball.Tarball, archive string) (images.Image, error) {
	file, err := b.File(archive)
	if err != nil {
		return images.Image{}, err
	}
	all, err := images.Read(file)
	if err != nil {
		return images.Image{}, err
	}
	return all[0], nil
}

// podImages returns the unpacked images that Pods may run.
func podImages(b *tarball.Tarball) ([]images.Image, error) {
	return imagesOf(b, withoutName(b.Archives(), nodeImage))
}

// imagesOf returns the images in unpacked archives.
func imagesOf(b *tarball.Tarball, archives []string) ([]images.Image, error) {
	var all []images.Image
	for _, name := range archives {
		i, err := imageOf(b, name)
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}

// unpackRoot unpacks the root file system of nodes, on which each node has a layer of its own.
func (s *State) unpackRoot(ctx context.Context) error {
	i, err := s.image(nodeImage)
	if err != nil {
		return err
	}
	return i.Extract(ctx, s.path("root"))
}

// isControlPlane reports whether only nodes with a control plane run an image.
func isControlPlane(i images.Image) bool {
	return i.IsAny("etcd", apiServer, "kube-controller-manager", "kube-scheduler")
}

// hasImage reports whether an image has a short name.
func hasImage(all []images.Image, short string) bool {
	return slices.ContainsFunc(all, func(i images.Image) bool { return i.IsAny(short) })
}

// An imageSet is the images of a release.
type imageSet struct {
	all      []images.Image // that Pods may run
	registry string         // under whose name the release has all images that kubeadm wants
	byItself bool           // kubeadm wants these without being told
	sandbox  string         // the image for the containers that hold Pods' namespaces
}

// imageSetOf finds the images of an unpacked release. They may have the names of several registries: that which kubeadm asks by default
// comes first.
func imageSetOf(ctx context.Context, b *tarball.Tarball) (imageSet, error) {
	all, err := podImages(b)
	if err != nil {
		return imageSet{}, err
	}
	set, err := imagesWanted(ctx, b, all, "")
	if err == nil {
		return set, nil
	}
	for _, i := range all {
		for _, registry := range i.Repositories(apiServer) {
			if set, err = imagesWanted(ctx, b, all, registry); err == nil {
				return set, nil
			}
		}
	}
	return imageSet{}, err
}

// imagesWanted returns the images that kubeadm has the nodes run, by default or of a registry. The release must have them all.
func imagesWanted(ctx context.Context, b *tarball.Tarball, all []images.Image, registry string) (imageSet, error) {
	kubeadm, err := b.File("kubeadm")
	if err != nil {
		return imageSet{}, err
	}
	args := []string{kubeadm, "config", "images", "list"}
	if registry != "" {
		args = append(args, "--kubernetes-version="+b.Release.Version, "--image-repository="+registry)
	}
	out, err := machine.Output(ctx, "", args...)
	if err != nil {
		return imageSet{}, err
	}
	wanted := strings.Fields(out)
	if err := requireImages(b, all, wanted); err != nil {
		return imageSet{}, err
	}
	called := func(short string) int {
		return slices.IndexFunc(wanted, func(name string) bool { return strings.HasPrefix(path.Base(name), short+":") })
	}
	server, sandbox := called(apiServer), called("pause")
	if server < 0 || sandbox < 0 {
		return imageSet{}, fmt.Errorf("kubeadm wants no %s or no pause image among %q", apiServer, wanted)
	}
	return imageSet{all, path.Dir(wanted[server]), registry == "", wanted[sandbox]}, nil
}

// requireImages returns an error that names the images that the tarball lacks.
func requireImages(b *tarball.Tarball, all []images.Image, names []string) error {
	lacks := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(all, func(i images.Image) bool { return slices.Contains(i.Names, name) })
	})
	if len(lacks) > 0 {
		return fmt.Errorf("%s lacks images that kubeadm wants: %s: its release cannot boot", b.Artifact.Path, strings.Join(lacks, ", "))
	}
	return nil
}
