package machine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moby/sys/mountinfo"
)

func TestVersion2AloneHasTheControllers(t *testing.T) {
	t.Parallel()
	v1, v2 := &mountinfo.Info{FSType: "cgroup", Mountpoint: "/one"}, &mountinfo.Info{FSType: "cgroup2", Mountpoint: "/two"}
	if c := hierarchies([]*mountinfo.Info{v2}); !c.onlyV2() || !slices.Equal(c.v2, []string{"/two"}) {
		t.Errorf("version 2: %+v", c)
	}
	c := hierarchies([]*mountinfo.Info{v1, v2})
	if c.onlyV2() || !slices.Equal(c.v1, []string{"/one"}) || !slices.Equal(c.v2, []string{"/two"}) {
		t.Errorf("version 1, and 2 beside it: %+v", c)
	}
}

func TestControllersAreDelegatedToANodeInVersion2(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	c := Cgroups{v2: []string{top}}
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
	added, err := c.Undelegated()
	if err != nil || !slices.Equal(added, []string{"memory", "rdma"}) {
		t.Errorf("%q will be handed on, %v", added, err)
	}
	if err := c.Add("slipway-x/node"); err != nil {
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
	if err := c.Revoke(added); err != nil || told(".") != "-rdma" {
		t.Errorf("in the end the machine's group was told %q, %v", told("."), err)
	}
}

func TestCgroupsAreRemovedFromEveryHierarchy(t *testing.T) {
	t.Parallel()
	c := Cgroups{v1: []string{t.TempDir(), t.TempDir()}, v2: []string{t.TempDir()}}
	if err := c.Add("slipway-x/node"); err != nil {
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
		if err := c.Remove(t.Context(), "slipway-x"); err != nil {
			t.Fatal(err)
		}
	}
	for _, point := range append(c.v1, c.v2...) {
		if left, _ := filepath.Glob(filepath.Join(point, "*")); len(left) != 1 || filepath.Base(left[0]) != "slipway-y" {
			t.Errorf("what is left is %q", left)
		}
	}
}
