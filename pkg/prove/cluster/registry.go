package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/atomicfile"
)

// A cluster has a registry of its own on the switch: the release's olareg, in whose folder each repository is an OCI image layout. The
// container runtime of each node asks it for every image, whichever registry's name the image has, and asks no other.
const (
	registryProgram = "olareg"
	registryPort    = 5000
	registryHost    = 254 // the last byte of its address
)

// Registry returns the address of the cluster's registry, which this machine and the nodes reach: host and port, without TLS.
func (s *State) Registry() (string, error) {
	address, err := s.onSwitch(registryHost)
	return net.JoinHostPort(address, strconv.Itoa(registryPort)), err
}

// registryCommand returns the command that serves the folder of the registry.
func (s *State) registryCommand() ([]string, error) {
	b, err := s.server()
	if err != nil {
		return nil, err
	}
	program, err := b.path(registryProgram)
	if err != nil {
		return nil, err
	}
	dir := s.path("registry")
	return []string{program, "serve", "--dir", dir, "--port", strconv.Itoa(registryPort), "--gc-frequency", "-1s"}, os.MkdirAll(dir, 0o755)
}

// configureRegistry tells the container runtime of a node to ask the cluster's registry alone.
func (s *State) configureRegistry(n node) error {
	registry, err := s.Registry()
	if err != nil {
		return err
	}
	dir := filepath.Join(s.nodeDir(n), "certs.d", "_default")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf("server = \"http://%s\"\n\n[host.\"http://%s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", registry, registry)
	return atomicfile.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(text), 0o644)
}

// Load pushes the images in an archive, which may have been written by "docker save", to the registry of a cluster. It returns their
// names. A Pod whose image has one of them pulls it from there.
func (s *State) Load(ctx context.Context, archive string) ([]string, error) {
	if err := s.RequireNodes(); err != nil {
		return nil, err
	}
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil {
		return nil, fmt.Errorf("%s is no archive of images: %w", archive, err)
	}
	var images []imageFile
	var names []string
	for _, d := range manifest {
		if len(d.RepoTags) == 0 {
			return nil, fmt.Errorf("%s: an image in it has no name", archive)
		}
		images, names = append(images, imageFile{archive, d.RepoTags}), append(names, d.RepoTags...)
	}
	return names, s.publish(ctx, images)
}

// publish pushes images to the cluster's registry under all of their names.
func (s *State) publish(ctx context.Context, images []imageFile) error {
	address, err := s.Registry()
	if err != nil {
		return err
	}
	registry, err := name.NewRegistry(address, name.Insecure)
	if err != nil {
		return err
	}
	transport := &http.Transport{} // without the proxy that the environment may name
	defer transport.CloseIdleConnections()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for _, i := range images {
		g.Go(func() error {
			image, err := plainImage(i.file, i.names[0])
			if err != nil {
				return fmt.Errorf("image %s: %w", i.file, err)
			}
			for _, known := range i.names {
				to, err := inRegistry(registry, known)
				if err == nil {
					err = remote.Write(to, image, remote.WithContext(ctx), remote.WithTransport(transport), remote.WithJobs(1))
				}
				if err != nil {
					return fmt.Errorf("push image %s: %w", known, err)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// awaitRegistry waits until the registry, which was just started, answers.
func (s *State) awaitRegistry(ctx context.Context, address string) error {
	transport := &http.Transport{} // without the proxy that the environment may name
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	return s.eventuallyEvery(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/v2/", nil)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			return false, err
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
}

// inRegistry returns the name by which a container runtime asks a registry for an image of another registry.
func inRegistry(registry name.Registry, image string) (name.Tag, error) {
	tag, err := name.NewTag(image)
	if err != nil {
		return tag, err
	}
	return registry.Repo(strings.Split(tag.RepositoryStr(), "/")...).Tag(tag.TagStr()), nil
}

// plainImage returns an image in an archive with its layers as they are in there: to zip them would take longer than to send them.
func plainImage(file, known string) (v1.Image, error) {
	tag, err := name.NewTag(known)
	if err != nil {
		return nil, err
	}
	image, err := tarball.ImageFromPath(file, &tag)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	plain := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, l := range layers {
		if plain, err = mutate.AppendLayers(plain, plainLayer{l}); err != nil {
			return nil, err
		}
	}
	return mutate.ConfigFile(plain, config)
}

// A plainLayer is a layer that is not compressed.
type plainLayer struct{ v1.Layer }

func (l plainLayer) Digest() (v1.Hash, error)            { return l.DiffID() }
func (l plainLayer) Compressed() (io.ReadCloser, error)  { return l.Uncompressed() }
func (l plainLayer) MediaType() (types.MediaType, error) { return types.OCIUncompressedLayer, nil }

// Size reads the layer, whose archive does not say how long it is.
func (l plainLayer) Size() (int64, error) {
	r, err := l.Uncompressed()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return io.Copy(io.Discard, r)
}
