package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// cgroups are the mounted hierarchies of control groups. Version 1 has about one for each controller, and maybe one of version 2
// without controllers beside them. Version 2 alone has one.
type cgroups struct {
	v1, v2 []string // mount points
}

// findCgroups finds the hierarchies in /proc/self/mountinfo.
func findCgroups(mountinfo io.Reader) (cgroups, error) {
	var c cgroups
	lines := bufio.NewScanner(mountinfo)
	for lines.Scan() {
		// proc_pid_mountinfo(5): the mount point is field 5, and the type comes after a field that is a hyphen.
		before, after, ok := strings.Cut(lines.Text(), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kind) == 0 {
			continue
		}
		switch point := unescapeMount.Replace(fields[4]); kind[0] {
		case "cgroup":
			c.v1 = append(c.v1, point)
		case "cgroup2":
			c.v2 = append(c.v2, point)
		}
	}
	return c, lines.Err()
}

var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func machineCgroups() (cgroups, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return cgroups{}, err
	}
	defer f.Close()
	c, err := findCgroups(f)
	if err == nil && len(c.v1)+len(c.v2) == 0 {
		err = errors.New("no cgroup file system is mounted: mount one at /sys/fs/cgroup")
	}
	return c, err
}

// onlyV2 reports whether version 2 has the controllers.
func (c cgroups) onlyV2() bool { return len(c.v1) == 0 }

// add makes a group, and those above it, in every hierarchy.
func (c cgroups) add(group string) error {
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

// toDelegate returns the controllers that the machine's own group does not delegate yet, and may once there is a node: runc delegates
// all, beyond those that the node asks for.
func (c cgroups) toDelegate() ([]string, error) {
	if !c.onlyV2() {
		return nil, nil
	}
	return undelegated(c.v2[0])
}

// revoke ends the delegation of controllers by the machine's own group, except of those that other groups use by now.
func (c cgroups) revoke(controllers []string) error {
	for _, controller := range controllers {
		err := os.WriteFile(filepath.Join(c.v2[0], subtreeControl), []byte("-"+controller), 0o644)
		if err != nil && !errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("revoke the cgroup controller %s: %w", controller, err)
		}
	}
	return nil
}

// remove removes a group and those below it from every hierarchy, once their processes have ended.
func (c cgroups) remove(ctx context.Context, group string) error {
	for _, point := range slices.Concat(c.v1, c.v2) {
		top := filepath.Join(point, group)
		err := until(ctx, 50*time.Millisecond, func() (bool, error) {
			left, err := removeGroups(top)
			return !left, err
		})
		if err != nil {
			return fmt.Errorf("remove the cgroup %s: %w", top, err)
		}
	}
	return nil
}

// removeGroups removes folders from the bottom up, and reports whether one is still busy. Their files go with them.
func removeGroups(top string) (busy bool, err error) {
	var groups []string
	err = filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() {
			groups = append(groups, name)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	for _, group := range slices.Backward(groups) {
		switch err := os.Remove(group); {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, syscall.EBUSY):
			busy = true
		case err != nil:
			return false, err
		}
	}
	return busy, nil
}
