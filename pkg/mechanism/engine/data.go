package engine

import (
	"context"
	"errors"
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

// Data makes the owner's data container unless there is one of that image. It never runs; it holds the volumes, so that pruning the
// engine does not remove them. Existing volumes keep their content, except for those that are filled from the image; volumes that
// are no longer listed are removed. Data reports whether it made the container, and whether all volumes are new.
func (e *Engine) Data(ctx context.Context, owner Owner, role, image string, volumes []Volume) (made, empty bool, err error) {
	name := owner.Name(role)
	if info, err := e.Client.ContainerInspect(ctx, name); err == nil {
		if info.Config != nil && info.Config.Image == image && holds(info.Mounts, owner, volumes) {
			return false, false, nil
		}
		if err := e.remove(info.ID); err != nil {
			return false, false, err
		}
	} else if !errdefs.IsNotFound(err) {
		return false, false, fmt.Errorf("look for container %s: %w", name, err)
	}
	// A volume is filled while the container is created. So if there is no container, it may be half full.
	all, err := e.volumes(ctx, owner)
	if err != nil {
		return false, false, err
	}
	kept := 0
	for _, name := range all {
		if slices.ContainsFunc(volumes, func(v Volume) bool { return owner.Name(v.Name) == name && !v.Filled }) {
			kept++
		} else if err := e.removeVolume(ctx, name); err != nil && !errdefs.IsConflict(err) { // a container uses it
			return false, false, err
		}
	}
	host := hostConfig(owner, Spec{})
	for _, v := range volumes {
		if _, err := e.Client.VolumeCreate(ctx, volume.CreateOptions{Name: owner.Name(v.Name), Labels: owner.Labels("")}); err != nil {
			return false, false, fmt.Errorf("create volume %s: %w", owner.Name(v.Name), err)
		}
		host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeVolume, Source: owner.Name(v.Name), Target: v.Path})
	}
	config := &container.Config{Image: image, Entrypoint: []string{"true"}, Labels: owner.Labels(role), User: user}
	if _, err := e.Client.ContainerCreate(ctx, config, host, nil, nil, name); err != nil {
		return false, false, errors.Join(fmt.Errorf("create container %s: %w", name, err), e.remove(name))
	}
	return true, kept == 0, nil
}

func holds(mounts []container.MountPoint, owner Owner, volumes []Volume) bool {
	for _, v := range volumes {
		if !slices.ContainsFunc(mounts, func(m container.MountPoint) bool { return m.Name == owner.Name(v.Name) && m.Destination == v.Path }) {
			return false
		}
	}
	return true
}

// RemoveContainers removes the owner's containers of some roles, or of all if none is named, running or not, and returns their
// names.
func (e *Engine) RemoveContainers(ctx context.Context, owner Owner, roles ...string) (removed []string, err error) {
	return e.removeContainers(ctx, owner, func(c container.Summary) bool {
		return len(roles) == 0 || slices.Contains(roles, c.Labels[RoleLabel])
	})
}

// RemoveEnded removes the owner's containers of a role that do not run, and returns their names.
func (e *Engine) RemoveEnded(ctx context.Context, owner Owner, role string) (removed []string, err error) {
	return e.removeContainers(ctx, owner, func(c container.Summary) bool {
		// One that was just created may be about to start.
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

// RemoveVolumes removes the owner's volumes, and returns their names. No container may use them any more.
func (e *Engine) RemoveVolumes(ctx context.Context, owner Owner) (removed []string, err error) {
	all, err := e.volumes(ctx, owner)
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		if err := e.removeVolume(ctx, name); err != nil {
			return removed, err
		}
		removed = append(removed, name)
	}
	return removed, nil
}

func (e *Engine) removeVolume(ctx context.Context, name string) error {
	if err := e.Client.VolumeRemove(ctx, name, false); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove volume %s: %w", name, err)
	}
	return nil
}

func (e *Engine) volumes(ctx context.Context, owner Owner) (names []string, err error) {
	all, err := e.Client.VolumeList(ctx, volume.ListOptions{Filters: ownedBy(owner)})
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	for _, v := range all.Volumes {
		names = append(names, v.Name)
	}
	return names, nil
}

func ownedBy(owner Owner) filters.Args {
	return filters.NewArgs(filters.Arg("label", TreeLabel+"="+owner.ID))
}
