package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/mount-utils"
	"k8s.io/utils/exec"
	testingexec "k8s.io/utils/exec/testing"
)

// here returns a driver on a node, in a folder of the test. Programs say nothing: no volume is mounted.
func here(t *testing.T, node string) *Driver {
	t.Helper()
	d := New(t.TempDir(), node)
	silent := func(string, ...string) exec.Cmd {
		return &testingexec.FakeCmd{CombinedOutputScript: []testingexec.FakeAction{func() ([]byte, []byte, error) { return nil, nil, nil }}}
	}
	fake := &testingexec.FakeExec{}
	for range 20 {
		fake.CommandScript = append(fake.CommandScript, silent)
	}
	d.mounter = &mount.SafeFormatAndMount{Interface: mount.NewFakeMounter(nil), Exec: fake}
	if err := d.recover(); err != nil {
		t.Fatal(err)
	}
	return d
}

func capability(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
	}
}

// request asks for a volume of a size in MiB.
func request(name string, size int64, snapshot string) *csi.CreateVolumeRequest {
	r := &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: size << 20},
		VolumeCapabilities: []*csi.VolumeCapability{capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER)},
	}
	if snapshot != "" {
		r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: snapshot},
		}}
	}
	return r
}

func code(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%s: %v, want %v: %v", what, got, want, err)
	}
}

func TestVolumeIsOnItsNodeAlone(t *testing.T) {
	t.Parallel()
	d := here(t, "one")
	for range 2 { // calls are repeated
		made, err := d.CreateVolume(t.Context(), request("data", 3, ""))
		if err != nil {
			t.Fatal(err)
		}
		v := made.Volume
		if v.VolumeId != "one/data" || v.CapacityBytes != 3<<20 || v.AccessibleTopology[0].Segments[topologyKey] != "one" {
			t.Errorf("made %v", v)
		}
	}
	if info, err := os.Stat(d.file("volumes", "data")); err != nil || info.Size() != 3<<20 {
		t.Errorf("the file: %v, %v", info, err)
	}
	_, err := d.CreateVolume(t.Context(), request("data", 4, ""))
	code(t, "another size", err, codes.AlreadyExists)
	elsewhere := request("other", 1, "")
	elsewhere.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: []*csi.Topology{here(t, "two").topology()}}
	_, err = d.CreateVolume(t.Context(), elsewhere)
	code(t, "for another node", err, codes.ResourceExhausted)

	all := here(t, "") // attaches for all nodes
	publish := &csi.ControllerPublishVolumeRequest{
		VolumeId: "one/data", NodeId: "one", VolumeCapability: capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER),
	}
	_, err = all.ControllerPublishVolume(t.Context(), publish)
	code(t, "attach", err, codes.OK)
	publish.NodeId = "two"
	_, err = all.ControllerPublishVolume(t.Context(), publish)
	code(t, "attach to another node", err, codes.FailedPrecondition)

	_, err = d.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "one/data"})
	code(t, "delete", err, codes.OK)
	if _, err := os.Stat(d.file("volumes", "data")); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	_, err = d.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "one/data"})
	code(t, "delete again", err, codes.OK)
}

func TestSnapshotHoldsWhatTheVolumeHeld(t *testing.T) {
	t.Parallel()
	d := here(t, "one")
	if _, err := d.CreateVolume(t.Context(), request("data", 4, "")); err != nil {
		t.Fatal(err)
	}
	content := make([]byte, 4<<20) // with holes before and behind
	copy(content[2<<20:], strings.Repeat("early", 1000))
	overwrite := func(data string) {
		f, err := os.OpenFile(d.file("volumes", "data"), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte(data), 2<<20); err != nil {
			t.Fatal(err)
		}
	}
	overwrite(strings.Repeat("early", 1000))
	taking := &csi.CreateSnapshotRequest{Name: "snap", SourceVolumeId: "one/data"}
	for range 2 {
		taken, err := d.CreateSnapshot(t.Context(), taking)
		if err != nil {
			t.Fatal(err)
		}
		if s := taken.Snapshot; s.SnapshotId != "one/snap" || s.SizeBytes != 4<<20 || !s.ReadyToUse {
			t.Errorf("took %v", s)
		}
		overwrite(strings.Repeat("later", 1000))
	}
	if _, err := d.CreateVolume(t.Context(), request("restored", 6, "one/snap")); err != nil {
		t.Fatal(err)
	}
	restored, err := os.ReadFile(d.file("volumes", "restored"))
	if err != nil || len(restored) != 6<<20 || string(restored[:4<<20]) != string(content) {
		t.Errorf("restored are %d bytes, or others: %v", len(restored), err)
	}
	_, err = d.CreateVolume(t.Context(), request("small", 2, "one/snap"))
	code(t, "restore into a smaller volume", err, codes.OutOfRange)
	_, err = here(t, "two").CreateVolume(t.Context(), request("far", 4, "one/snap"))
	code(t, "restore on another node", err, codes.ResourceExhausted)
	if _, err := d.CreateVolume(t.Context(), request("other", 1, "")); err != nil {
		t.Fatal(err)
	}
	taking.SourceVolumeId = "one/other"
	_, err = d.CreateSnapshot(t.Context(), taking)
	code(t, "the same name for another volume", err, codes.AlreadyExists)
	for range 2 {
		_, err = d.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: "one/snap"})
		code(t, "delete", err, codes.OK)
	}
	_, err = d.CreateVolume(t.Context(), request("late", 4, "one/snap"))
	code(t, "restore from nothing", err, codes.NotFound)
}

func TestWhatNoVolumeCanBeIsRefused(t *testing.T) {
	t.Parallel()
	d := here(t, "one")
	for what, change := range map[string]func(*csi.CreateVolumeRequest){
		"no name":       func(r *csi.CreateVolumeRequest) { r.Name = "" },
		"a path":        func(r *csi.CreateVolumeRequest) { r.Name = "../data" },
		"no capability": func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = nil },
		"many nodes": func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities[0] = capability(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)
		},
		"a block device": func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities[0].AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		},
	} {
		r := request("data", 1, "")
		change(r)
		_, err := d.CreateVolume(t.Context(), r)
		code(t, what, err, codes.InvalidArgument)
	}
	r := request("data", 1, "")
	r.CapacityRange = &csi.CapacityRange{RequiredBytes: 1, LimitBytes: 2}
	_, err := d.CreateVolume(t.Context(), r)
	code(t, "too small a limit", err, codes.OutOfRange)
	_, err = d.CreateVolume(t.Context(), request("huge", 1<<40, ""))
	code(t, "more than the disk has", err, codes.ResourceExhausted)
	if left, _ := filepath.Glob(d.file("volumes", "*")); len(left) > 0 {
		t.Errorf("there are %q", left)
	}
	if left, _ := filepath.Glob(d.file("volumes", ".*")); len(left) > 0 {
		t.Errorf("there are %q", left)
	}
}

func TestWhatWasInTheMakingIsRemoved(t *testing.T) {
	t.Parallel()
	d := here(t, "one")
	for _, name := range []string{d.file("volumes", making+"data"), d.file("snapshots", "snap", making+"data")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, nil, 0o600), d.recover()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(name); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}
