package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// Two releases may have different images with the same tag: CoreDNS of the same version, built by another Go. A container runtime
// keeps what it pulled by a tag, so nodes pull these again.

// A nodeImageList has what crictl prints of a node's images.
type nodeImageList struct {
	Images []struct {
		ID       string   `json:"id"`
		RepoTags []string `json:"repoTags"`
	} `json:"images"`
}

// byTag returns the images' identifiers by their tags.
func (l nodeImageList) byTag() map[string]string {
	tags := map[string]string{}
	for _, i := range l.Images {
		for _, tag := range i.RepoTags {
			tags[tag] = i.ID
		}
	}
	return tags
}

// A containerList has what crictl prints of a node's containers.
type containerList struct {
	Containers []struct {
		ID    string `json:"id"`
		Image struct {
			Image     string `json:"image"`
			Specified string `json:"userSpecifiedImage"`
		} `json:"image"`
	} `json:"containers"`
}

// superseded returns the containers whose image's tag means another image now.
func (l containerList) superseded(before, after map[string]string) []string {
	var ids []string
	for _, c := range l.Containers {
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
	var images nodeImageList
	if err := u.crictlInto(ctx, n, &images, "images"); err != nil {
		return err
	}
	before := images.byTag()
	for _, i := range u.images {
		for _, tag := range i.names {
			if before[tag] == "" {
				continue
			}
			if _, err := u.crictl(ctx, n, "pull", tag); err != nil {
				return fmt.Errorf("pull %s: %w", tag, err)
			}
		}
	}
	var renewed nodeImageList
	if err := u.crictlInto(ctx, n, &renewed, "images"); err != nil {
		return err
	}
	var containers containerList
	if err := u.crictlInto(ctx, n, &containers, "ps"); err != nil {
		return err
	}
	for _, id := range containers.superseded(before, renewed.byTag()) {
		if _, err := u.crictl(ctx, n, "stop", "--timeout=30", id); err != nil {
			return fmt.Errorf("stop container %s: %w", id, err)
		}
	}
	return nil
}

// crictl runs a command of crictl in a node.
func (s *State) crictl(ctx context.Context, n node, command ...string) (string, error) {
	return s.inNode(ctx, n, append([]string{"crictl", "--runtime-endpoint=" + RuntimeEndpoint}, command...)...)
}

// crictlInto runs a command of crictl in a node and decodes what it prints.
func (s *State) crictlInto(ctx context.Context, n node, into any, command string) error {
	text, err := s.crictl(ctx, n, command, "--output=json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("crictl %s in node %s: %w", command, n.name, err)
	}
	return nil
}
