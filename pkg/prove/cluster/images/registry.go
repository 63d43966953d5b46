package images

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sync/errgroup"
)

// direct connects without the proxy that the environment may name.
var direct = &http.Transport{IdleConnTimeout: 10 * time.Second}

// A Registry is the address of a registry, host and port, that is reached without TLS.
type Registry string

// Ping returns an error unless the registry answers.
func (r Registry) Ping(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	registry, err := name.NewRegistry(string(r), name.Insecure)
	if err != nil {
		return err
	}
	_, err = transport.Ping(limit, registry, direct)
	return err
}

// Push pushes images under all of their names.
func (r Registry) Push(ctx context.Context, all []Image) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for _, i := range all {
		g.Go(func() error {
			image, err := i.uncompressed()
			if err != nil {
				return fmt.Errorf("image %s: %w", i.Archive, err)
			}
			for _, name := range i.Names {
				if err := r.push(ctx, name, image); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// PushWith pushes an image, under another name, with a file in the place of its entry point.
func (r Registry) PushWith(ctx context.Context, i Image, name, program string) error {
	image, err := i.withProgram(program)
	if err != nil {
		return err
	}
	return r.push(ctx, name, image)
}

func (r Registry) push(ctx context.Context, name string, image v1.Image) error {
	to, err := r.tag(name)
	if err == nil {
		err = remote.Write(to, image, remote.WithContext(ctx), remote.WithTransport(direct), remote.WithJobs(1))
	}
	if err != nil {
		return fmt.Errorf("push image %s: %w", name, err)
	}
	return nil
}

// tag returns the name by which a container runtime asks the registry for an image of another registry.
func (r Registry) tag(image string) (name.Tag, error) {
	tag, err := name.NewTag(image)
	if err != nil {
		return tag, err
	}
	registry, err := name.NewRegistry(string(r), name.Insecure)
	if err != nil {
		return tag, err
	}
	return registry.Repo(strings.Split(tag.RepositoryStr(), "/")...).Tag(tag.TagStr()), nil
}
