package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
)

// Cgroups are the mounted hierarchies of control groups. Version 1 has about one for each controller, and maybe one of version 2
// without controllers beside them. Version 2 alone has one.
type Cgroups struct {
	v1, v2 []string // mount points
}

// FindCgroups returns this machine's hierarchies.
func FindCgroups() (Cgroups, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err == nil && len(mounts) == 0 {
		err = errors.New("no cgroup file system is mounted: mount one at /sys/fs/cgroup")
	}
	return hierarchies(mounts), err
}

func hierarchies(mounts []*mountinfo.Info) (c Cgroups) {
	for _, m := range mounts {
		if m.FSType == "cgroup" {
			c.v1 = append(c.v1, m.Mountpoint)
		} else {
			c.v2 = append(c.v2, m.Mountpoint)
		}
	}
	return c
}

// onlyV2 reports whether version 2 has the controllers.
func (c Cgroups) onlyV2() bool { return len(c.v1) == 0 }

// Add makes a group, and those above it, in every hierarchy.
func (c Cgroups) Add(group string) error {
	for _, point := range slices.Concat(c.v1, c.v2) {
		if err := os.MkdirAll(filepath.Join(point, group), 0o755); err != nil {
			return err
		}
	}
	if !c.onlyV2() {
		return nil
	}
	// In version 2, a group has only the controllers that its parent delegates.
	at := c.v2[0]
	for _, part := range strings.Split(group, "/") {
		if err := delegate(at); err != nil {
			return err
		}
		at = filepath.Join(at, part)
	}
	return delegate(at)
}

// controllers are those by which the kubelet and runc set limits, if the kernel has them.
var controllers = []string{"cpu", "cpuset", "hugetlb", "io", "memory", "pids"}

// undelegated returns the controllers that a group has and does not delegate to its children.
func undelegated(group string) ([]string, error) {
	has, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return nil, err
	}
	on, err := os.ReadFile(filepath.Join(group, subtreeControl))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Fields(string(has)), func(c string) bool { return slices.Contains(strings.Fields(string(on)), c) }), nil
}

const subtreeControl = "cgroup.subtree_control"

func delegate(group string) error {
	kept, err := undelegated(group)
	if err != nil {
		return err
	}
	for _, controller := range kept {
		if !slices.Contains(controllers, controller) {
			continue
		}
		if err := os.WriteFile(filepath.Join(group, subtreeControl), []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("delegate the cgroup controller %s: %w", controller, err)
		}
	}
	return nil
}

// Undelegated returns the controllers that the machine's own group does not delegate yet, and may once there is a node: runc delegates
// all, beyond those that the node asks for.
func (c Cgroups) Undelegated() ([]string, error) {
	if !c.onlyV2() {
		return nil, nil
	}
	return undelegated(c.v2[0])
}

// Revoke ends the delegation of controllers by the machine's own group, except of those that other groups use by now.
func (c Cgroups) Revoke(controllers []string) error {
	for _, controller := range controllers {
		err := os.WriteFile(filepath.Join(c.v2[0], subtreeControl), []byte("-"+controller), 0o644)
		if err != nil && !errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("revoke the cgroup controller %s: %w", controller, err)
		}
	}
	return nil
}

// Remove removes a group and those below it from every hierarchy, once their processes have ended.
func (c Cgroups) Remove(ctx context.Context, group string) error {
	for _, point := range slices.Concat(c.v1, c.v2) {
		err := Retry(ctx, 50*time.Millisecond, func() error {
			err := removeGroup(filepath.Join(point, group))
			if err != nil && !errors.Is(err, syscall.EBUSY) {
				return Stop(err)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("remove the cgroup %s: %w", group, err)
		}
	}
	return nil
}

// removeGroup removes folders from the bottom up. Their files go with them.
func removeGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeGroup(filepath.Join(dir, e.Name())))
		}
	}
	if err == nil {
		err = os.Remove(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
