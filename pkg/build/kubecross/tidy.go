package kubecross

import (
	"context"
	"errors"
	"fmt"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"slipway.build/pkg/mechanism/engine"
)

// Tidy takes the owner's names off all build images but keep and the base of that; "" keeps none. An image goes with its last
// name. One that a container is made of stays for another time. The names that are gone are returned, also with an error.
func Tidy(ctx context.Context, e *engine.Engine, owner engine.Owner, keep string) ([]string, error) {
	keepBase := ""
	if keep != "" {
		img, err := e.Client.ImageInspect(ctx, keep)
		if err != nil && !cerrdefs.IsNotFound(err) {
			return nil, fmt.Errorf("tidy build images: %w", err)
		}
		if err == nil && img.Config != nil && len(img.Config.Labels[baseLabel]) > 12 {
			keepBase = ref(BaseRepository, owner, img.Config.Labels[baseLabel])
		}
	}
	var gone []string
	var errs []error
	for _, repository := range []string{Repository, BaseRepository} {
		found, err := e.Client.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("reference", repository+":"+owner.ID+"-*"))})
		if err != nil {
			return gone, fmt.Errorf("tidy build images: %w", err)
		}
		for _, img := range found {
			for _, name := range img.RepoTags {
				if !tagged(name, repository, owner.ID) || name == keep || name == keepBase {
					continue
				}
				_, err := e.Client.ImageRemove(ctx, name, image.RemoveOptions{PruneChildren: true})
				switch {
				case err == nil:
					gone = append(gone, name)
				case !cerrdefs.IsConflict(err) && !cerrdefs.IsNotFound(err):
					errs = append(errs, fmt.Errorf("remove image %s: %w", name, err))
				}
			}
		}
	}
	return gone, errors.Join(errs...)
}
