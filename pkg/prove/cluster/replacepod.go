package cluster

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// imageFor returns the name of the image in which a program runs: the release's, or one that has the program in a layer above it, which
// it pushes to the cluster's registry. Now is the name of the image that runs, from the same repository.
//
// Each image has a name of its own: the kubelet makes a container wait that it has started before.
func (s *State) imageFor(ctx context.Context, component, now string, p *Program) (string, error) {
	if p != nil && p.Image != "" {
		return p.Image, nil
	}
	b, err := s.server()
	if err != nil {
		return "", err
	}
	i, err := b.image(component + ".tar")
	if err != nil {
		return "", err
	}
	tag, err := name.NewTag(now)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(i.names, func(known string) bool { return strings.HasPrefix(known, tag.Context().Name()+":") })
	if at < 0 {
		return "", fmt.Errorf("image %s of %s has no name in %s", i.file, component, tag.Context().Name())
	}
	released := i.names[at]
	if p == nil {
		return released, nil
	}
	image, err := withProgram(i, released, s.stored(*p))
	if err != nil {
		return "", err
	}
	built := fmt.Sprintf("%s-%s.%s", released, p.SHA256[:12], strconv.FormatInt(time.Now().UnixMilli(), 36))
	if err := s.push(ctx, built, image); err != nil {
		return "", err
	}
	p.Image = built
	return built, nil
}

// withProgram returns an image with another file in the place of its entry point.
func withProgram(i imageFile, known, file string) (v1.Image, error) {
	base, err := plainImage(i.file, known)
	if err != nil {
		return nil, err
	}
	config, err := base.ConfigFile()
	if err != nil {
		return nil, err
	}
	if len(config.Config.Entrypoint) == 0 {
		return nil, fmt.Errorf("image %s has no entry point", i.file)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	header := &tar.Header{Name: strings.TrimPrefix(config.Config.Entrypoint[0], "/"), Mode: 0o755, Size: int64(len(program)),
		Format: tar.FormatPAX}
	if err := w.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return mutate.AppendLayers(base, static.NewLayer(layer.Bytes(), types.OCIUncompressedLayer))
}

// push pushes an image to the cluster's registry.
func (s *State) push(ctx context.Context, known string, image v1.Image) error {
	address, err := s.Registry()
	if err != nil {
		return err
	}
	registry, err := name.NewRegistry(address, name.Insecure)
	if err != nil {
		return err
	}
	to, err := inRegistry(registry, known)
	if err != nil {
		return err
	}
	transport := &http.Transport{} // without the proxy that the environment may name
	defer transport.CloseIdleConnections()
	if err := remote.Write(to, image, remote.WithContext(ctx), remote.WithTransport(transport)); err != nil {
		return fmt.Errorf("push image %s: %w", known, err)
	}
	return nil
}

// workloads are the objects in the namespace kube-system of components that are no static Pods.
var workloads = map[string]string{
	"kube-proxy": "daemonset/kube-proxy", "coredns": "deployment/coredns", "metrics-server": "deployment/metrics-server",
	"cloud-controller-manager": "deployment/cloud-controller-manager", "traefik": "deployment/traefik",
}

// putWorkload has a DaemonSet or a Deployment roll out an image with a program.
func (s *State) putWorkload(ctx context.Context, component string, p *Program) error {
	object := workloads[component]
	now, err := s.kubectl(ctx, "-n", "kube-system", "get", object, "-o",
		`jsonpath={.spec.template.spec.containers[?(@.name=="`+component+`")].image}`)
	if err != nil {
		return err
	}
	image, err := s.imageFor(ctx, component, now, p)
	if err != nil {
		return err
	}
	err = s.eachNode(ctx, func(ctx context.Context, n node) error {
		_, err := s.crictl(ctx, n, "pull", image)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "-n", "kube-system", "set", "image", object, component+"="+image); err != nil {
		return err
	}
	var ended error
	err = s.eventually(ctx, func(ctx context.Context) (bool, error) {
		out, err := s.kubectl(ctx, "-n", "kube-system", "get", "pods", "-o",
			`jsonpath={range .items[*].status.containerStatuses[?(@.image=="`+image+`")]}{.restartCount} {end}`)
		again := func(count string) bool { return count != "0" && count != "1" } // once may be the machine's fault
		if err == nil && slices.ContainsFunc(strings.Fields(out), again) {
			ended = fmt.Errorf("%s has ended twice", component)
			return true, nil
		}
		_, err = s.kubectl(ctx, "-n", "kube-system", "rollout", "status", object, "--timeout=1s")
		return err == nil, err
	})
	return errors.Join(ended, err)
}
