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

// Tidy removes the owner's tags of build images, except keep and the tag of its base; "" keeps none. An image is removed with its
// last tag. Images that containers use stay until a later call. Tidy returns the removed tags, even with an error.
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
	var removed []string
	var errs []error
	for _, repository := range []string{Repository, BaseRepository} {
		found, err := e.Client.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("reference", repository+":"+owner.ID+"-*"))})
		if err != nil {
			return removed, fmt.Errorf("tidy build images: %w", err)
		}
		for _, img := range found {
			for _, name := range img.RepoTags {
				if !tagged(name, repository, owner.ID) || name == keep || name == keepBase {
					continue
				}
				_, err := e.Client.ImageRemove(ctx, name, image.RemoveOptions{PruneChildren: true})
				switch {
				case err == nil:
					removed = append(removed, name)
				case !cerrdefs.IsConflict(err) && !cerrdefs.IsNotFound(err):
					errs = append(errs, fmt.Errorf("remove image %s: %w", name, err))
				}
			}
		}
	}
	return removed, errors.Join(errs...)
}
