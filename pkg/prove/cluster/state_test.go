package cluster

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"testing"

	"slipway.build/pkg/prove/cluster/machine"
)

// created returns the state of a new control plane without nodes.
func created(t *testing.T, dir, name string) *State {
	t.Helper()
	s := &State{Name: name, ControlPlaneOnly: true, ControlPlanes: 1}
	if err := s.create(dir); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLoadReadsWhatWasWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Load(dir, "a"); !errors.Is(err, ErrNone) {
		t.Errorf("before there is one: %v", err)
	}
	s := created(t, dir, "a")
	want := []Process{{Name: "a-1", Process: machine.Process{PID: 4711, Start: 42}, Address: "198.18.0.2"}}
	if err := s.change(func() { s.Processes, s.Subnet = want, "198.18.0.0/24" }); err != nil {
		t.Fatal(err)
	}
	got, err := Load(dir, "a")
	if err != nil || !reflect.DeepEqual(got.Processes, want) || got.Subnet != s.Subnet || got.ID != s.ID || got.dir != s.dir {
		t.Errorf("%+v, %v", got, err)
	}
	created(t, dir, "b")
	if names, err := Names(dir); err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("clusters are %q, %v", names, err)
	}
}

func TestClustersInTwoFoldersHaveDifferentIDs(t *testing.T) {
	t.Parallel()
	if a, b := created(t, t.TempDir(), "a"), created(t, t.TempDir(), "a"); a.ID == b.ID {
		t.Error("both have", a.ID)
	}
}

func TestNamesThatLeadOutOfTheFolderAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/etc", "A", "a_b", "-a", "a-", "0123456789012345678901234567890123"} {
		var bad NameError
		if _, err := Load(dir, name); !errors.As(err, &bad) {
			t.Errorf("%q: %v", name, err)
		}
		if err := Down(t.Context(), dir, name); !errors.As(err, &bad) {
			t.Errorf("down of %q: %v", name, err)
		}
	}
}

func TestDownRemovesAFolderWithoutAState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/a/release", 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Down(t.Context(), dir, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir + "/a"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
}
