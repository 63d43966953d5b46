package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCgroupVersionIsFoundByMounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, mountinfo string
		want            cgroups
		onlyV2          bool
	}{
		{"version 2", "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n25 1 8:1 / / rw - ext4 /dev/sda1 rw\n",
			cgroups{v2: []string{"/sys/fs/cgroup"}}, true},
		{"version 1, and 2 beside it", "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
			"32 30 0:28 / /sys/fs/cgroup/un\\040ified rw shared:5 master:1 - cgroup2 cgroup2 rw\n",
			cgroups{v1: []string{"/sys/fs/cgroup/memory"}, v2: []string{"/sys/fs/cgroup/un ified"}}, false},
	} {
		got, err := findCgroups(strings.NewReader(c.mountinfo))
		if err != nil || !reflect.DeepEqual(got, c.want) || got.onlyV2() != c.onlyV2 {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func TestControllersAreDelegatedToANodeInVersion2(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	c := cgroups{v2: []string{top}}
	// The kernel makes these files. As plain ones they show what is written to them last.
	for _, group := range []string{".", "slipway-x", "slipway-x/node"} {
		dir := filepath.Join(top, group)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"cgroup.controllers": "cpu memory rdma\n", "cgroup.subtree_control": "cpu\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	added, err := c.toDelegate()
	if err != nil || !slices.Equal(added, []string{"memory", "rdma"}) {
		t.Errorf("%q will be handed on, %v", added, err)
	}
	if err := c.add("slipway-x/node"); err != nil {
		t.Fatal(err)
	}
	told := func(group string) string {
		text, _ := os.ReadFile(filepath.Join(top, group, "cgroup.subtree_control"))
		return string(text)
	}
	for _, group := range []string{".", "slipway-x", "slipway-x/node"} {
		if text := told(group); text != "+memory" {
			t.Errorf("%s was told %q", group, text)
		}
	}
	if err := c.revoke(added); err != nil || told(".") != "-rdma" {
		t.Errorf("in the end the machine's group was told %q, %v", told("."), err)
	}
}

func TestCgroupsAreRemovedFromEveryHierarchy(t *testing.T) {
	t.Parallel()
	c := cgroups{v1: []string{t.TempDir(), t.TempDir()}, v2: []string{t.TempDir()}}
	if err := c.add("slipway-x/node"); err != nil {
		t.Fatal(err)
	}
	for _, point := range append(c.v1, c.v2...) {
		for _, group := range []string{"slipway-x/node/kubepods/burstable/pod1", "slipway-y"} {
			if err := os.MkdirAll(filepath.Join(point, group), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 { // it can be repeated
		if err := c.remove(t.Context(), "slipway-x"); err != nil {
			t.Fatal(err)
		}
	}
	for _, point := range append(c.v1, c.v2...) {
		if left, _ := filepath.Glob(filepath.Join(point, "*")); len(left) != 1 || filepath.Base(left[0]) != "slipway-y" {
			t.Errorf("what is left is %q", left)
		}
	}
}

func TestUntilEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := until(ctx, time.Microsecond, func() (bool, error) { return false, nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
