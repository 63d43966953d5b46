package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"
)

// Data makes the owner's data container, if there is none of that image: one that never runs, and holds the volumes, so that
// they are in use, whoever prunes the engine. Volumes that are there keep what is in them.
func (e *Engine) Data(ctx context.Context, owner Owner, role, image string, volumes []Volume) (made bool, err error) {
	name := owner.Name(role)
	if info, err := e.Client.ContainerInspect(ctx, name); err == nil {
		if info.Config != nil && info.Config.Image == image && holds(info.Mounts, owner, volumes) {
			return false, nil
		}
		if err := e.remove(info.ID); err != nil {
			return false, err
		}
	} else if !errdefs.IsNotFound(err) {
		return false, fmt.Errorf("look for container %s: %w", name, err)
	}
	host := hostConfig(owner, Spec{})
	for _, v := range volumes {
		if _, err := e.Client.VolumeCreate(ctx, volume.CreateOptions{Name: owner.Name(v.Name), Labels: owner.Labels("")}); err != nil {
			return false, fmt.Errorf("create volume %s: %w", owner.Name(v.Name), err)
		}
		host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeVolume, Source: owner.Name(v.Name), Target: v.Path})
	}
	config := &container.Config{Image: image, Entrypoint: []string{"true"}, Labels: owner.Labels(role), User: "build"}
	if _, err := e.Client.ContainerCreate(ctx, config, host, nil, nil, name); err != nil {
		return false, fmt.Errorf("create container %s: %w", name, err)
	}
	return true, nil
}

func holds(mounts []container.MountPoint, owner Owner, volumes []Volume) bool {
	for _, v := range volumes {
		if !slices.ContainsFunc(mounts, func(m container.MountPoint) bool { return m.Name == owner.Name(v.Name) && m.Destination == v.Path }) {
			return false
		}
	}
	return true
}

// RemoveContainers removes the owner's containers of some roles, or of all if none is named, running or not, and names them.
func (e *Engine) RemoveContainers(ctx context.Context, owner Owner, roles ...string) (removed []string, err error) {
	return e.removeContainers(ctx, owner, func(c container.Summary) bool {
		return len(roles) == 0 || slices.Contains(roles, c.Labels[RoleLabel])
	})
}

// RemoveEnded removes the owner's containers of a role that do not run, and names them.
func (e *Engine) RemoveEnded(ctx context.Context, owner Owner, role string) (removed []string, err error) {
	return e.removeContainers(ctx, owner, func(c container.Summary) bool {
		// One that was made, and never started, may be about to be.
		never := c.State == container.StateCreated && time.Since(time.Unix(c.Created, 0)) > 10*time.Minute
		return c.Labels[RoleLabel] == role && (never || c.State == container.StateExited || c.State == container.StateDead)
	})
}

func (e *Engine) removeContainers(ctx context.Context, owner Owner, which func(container.Summary) bool) (removed []string, err error) {
	all, err := e.Client.ContainerList(ctx, container.ListOptions{All: true, Filters: ownedBy(owner)})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	for _, c := range all {
		if !which(c) {
			continue
		}
		if err := e.remove(c.ID); err != nil {
			return removed, err
		}
		removed = append(removed, strings.TrimPrefix(strings.Join(c.Names, " "), "/"))
	}
	return removed, nil
}

// RemoveVolumes removes the owner's volumes, and names them. No container must use them any more.
func (e *Engine) RemoveVolumes(ctx context.Context, owner Owner) (removed []string, err error) {
	all, err := e.Client.VolumeList(ctx, volume.ListOptions{Filters: ownedBy(owner)})
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	for _, v := range all.Volumes {
		if err := e.Client.VolumeRemove(ctx, v.Name, false); err != nil && !errdefs.IsNotFound(err) {
			return removed, fmt.Errorf("remove volume %s: %w", v.Name, err)
		}
		removed = append(removed, v.Name)
	}
	return removed, nil
}

func ownedBy(owner Owner) filters.Args {
	return filters.NewArgs(filters.Arg("label", TreeLabel+"="+owner.ID))
}
