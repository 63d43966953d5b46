package cluster

import (
	"context"
	"fmt"
	"slices"
)

// Two releases may have different images with the same tag: CoreDNS of the same version, built by another Go. A container runtime
// keeps what it pulled by a tag, so nodes pull these again.

// imagesByTag returns the identifiers of a node's images by their tags.
func (s *State) imagesByTag(ctx context.Context, n node) (map[string]string, error) {
	var list struct {
		Images []struct {
			ID       string
			RepoTags []string
		}
	}
	err := s.crictlInto(ctx, n, &list, "images")
	tags := map[string]string{}
	for _, i := range list.Images {
		for _, tag := range i.RepoTags {
			tags[tag] = i.ID
		}
	}
	return tags, err
}

// superseded returns the containers whose image's tag means another image now.
func superseded(containers []nodeContainer, before, after map[string]string) []string {
	var ids []string
	for _, c := range containers {
		for _, tag := range []string{c.Image.Specified, c.Image.Image} {
			if was, ok := before[tag]; ok && was != after[tag] && !slices.Contains(ids, c.ID) {
				ids = append(ids, c.ID)
			}
		}
	}
	return ids
}

// renewImages pulls the target's images that the node has by the same tags, and stops containers of earlier ones: the kubelet starts them
// again.
func (u *upgrade) renewImages(ctx context.Context, n node) error {
	before, err := u.imagesByTag(ctx, n)
	if err != nil {
		return err
	}
	for _, i := range u.images.all {
		for _, tag := range i.Names {
			if before[tag] == "" {
				continue
			}
			if _, err := u.crictl(ctx, n, "pull", tag); err != nil {
				return fmt.Errorf("pull %s: %w", tag, err)
			}
		}
	}
	after, err := u.imagesByTag(ctx, n)
	if err != nil {
		return err
	}
	containers, err := u.nodeContainers(ctx, n)
	if err != nil {
		return err
	}
	for _, id := range superseded(containers, before, after) {
		if _, err := u.crictl(ctx, n, "stop", "--timeout=30", id); err != nil {
			return fmt.Errorf("stop container %s: %w", id, err)
		}
	}
	return nil
}
