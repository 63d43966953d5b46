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

// cgroups are the hierarchies of control groups that are mounted. Of version 1 there are many, one for each controller or
// so, and maybe one of version 2 without controllers beside them; of version 2 alone there is one.
type cgroups struct {
	v1, v2 []string // mount points
}

// findCgroups reads /proc/self/mountinfo.
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

// onlyV2 tells whether version 2 is the one that has the controllers.
func (c cgroups) onlyV2() bool { return len(c.v1) == 0 }

// add makes the group of a node, below that of its cluster, in every hierarchy.
func (c cgroups) add(group string) error {
	for _, point := range slices.Concat(c.v1, c.v2) {
		if err := os.MkdirAll(filepath.Join(point, group), 0o755); err != nil {
			return err
		}
	}
	if !c.onlyV2() {
		return nil
	}
	// In version 2 a group has the controllers that its parent hands on.
	at := c.v2[0]
	for _, part := range strings.Split(group, "/") {
		if err := handOnControllers(at); err != nil {
			return err
		}
		at = filepath.Join(at, part)
	}
	return handOnControllers(at)
}

// controllers are those that the kubelet and runc set limits by, where the kernel has them.
var controllers = []string{"cpu", "cpuset", "hugetlb", "io", "memory", "pids"}

// keptBack lists the controllers that a group has and does not hand on to those in it.
func keptBack(group string) ([]string, error) {
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

func handOnControllers(group string) error {
	kept, err := keptBack(group)
	if err != nil {
		return err
	}
	for _, controller := range kept {
		if !slices.Contains(controllers, controller) {
			continue
		}
		if err := os.WriteFile(filepath.Join(group, subtreeControl), []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("hand on the cgroup controller %s: %w", controller, err)
		}
	}
	return nil
}

// willHandOn lists the controllers that the machine's own group may hand on once there is a node, and does not yet: what the node does
// not ask for, runc does, which hands on all there are.
func (c cgroups) willHandOn() ([]string, error) {
	if !c.onlyV2() {
		return nil, nil
	}
	return keptBack(c.v2[0])
}

// keepBack has the machine's own group hand on controllers no longer, but for those that others have groups with by now.
func (c cgroups) keepBack(controllers []string) error {
	for _, controller := range controllers {
		err := os.WriteFile(filepath.Join(c.v2[0], subtreeControl), []byte("-"+controller), 0o644)
		if err != nil && !errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("keep back the cgroup controller %s: %w", controller, err)
		}
	}
	return nil
}

// remove removes a group and all below it from every hierarchy. Its processes are dying.
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

// removeGroups removes folders from below, and tells whether one is still busy. The files in them go with them.
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
