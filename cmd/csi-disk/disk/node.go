package disk

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/mount-utils"
)

// NodeGetInfo returns the node, and that volumes on it can be reached from there alone.
func (d *Driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node, AccessibleTopology: d.topology()}, nil
}

// NodeGetCapabilities lists the calls that the driver answers.
func (d *Driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	answer := &csi.NodeGetCapabilitiesResponse{}
	for _, t := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS, csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		answer.Capabilities = append(answer.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: t}},
		})
	}
	return answer, nil
}

// NodeStageVolume mounts a volume for all Pods of the node. Before that, an empty volume gets a file system.
func (d *Driver) NodeStageVolume(_ context.Context, req *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if req.StagingTargetPath == "" {
		return nil, status.Error(codes.InvalidArgument, "the target path is missing")
	}
	if err := checkCapabilities([]*csi.VolumeCapability{req.VolumeCapability}); err != nil {
		return nil, err
	}
	volume, err := d.existing(req.VolumeId)
	if err != nil {
		return nil, err
	}
	done, err := d.busy.take(volume)
	if err != nil {
		return nil, err
	}
	defer done()
	device, err := d.device(volume)
	if err != nil || device != "" {
		return &csi.NodeStageVolumeResponse{}, failure(err)
	}
	if err := d.fit(volume); err != nil {
		return nil, failure(err)
	}
	// Without discard, the space stays reserved.
	err = d.mounter.FormatAndMountSensitiveWithFormatOptions(volume, req.StagingTargetPath, fileSystem,
		append(req.VolumeCapability.GetMount().GetMountFlags(), "loop"), nil, []string{"-E", "nodiscard"})
	return &csi.NodeStageVolumeResponse{}, failure(err)
}

// fileSystem is the type of all volumes' file systems.
const fileSystem = "ext4"

// fit makes a file system, which is not mounted, as large as the volume's file: that of a smaller snapshot, or one that could not grow
// while it was mounted.
func (d *Driver) fit(volume string) error {
	format, err := d.mounter.GetDiskFormat(volume)
	if err != nil || format != fileSystem {
		return err
	}
	if _, err := d.run("resize2fs", volume); err == nil {
		return nil
	}
	_, _ = d.run("e2fsck", "-f", "-p", volume) // which resize2fs requires, and whose status may be that it has mended something
	_, err = d.run("resize2fs", volume)
	return err
}

// NodeUnstageVolume unmounts a volume, with which the kernel frees its loop device.
func (d *Driver) NodeUnstageVolume(_ context.Context, req *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if req.VolumeId == "" || req.StagingTargetPath == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume or the target path is missing")
	}
	return &csi.NodeUnstageVolumeResponse{}, failure(mount.CleanupMountPoint(req.StagingTargetPath, d.mounter, true))
}

// NodePublishVolume shows a mounted volume to a Pod.
func (d *Driver) NodePublishVolume(_ context.Context, req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if req.TargetPath == "" || req.StagingTargetPath == "" {
		return nil, status.Error(codes.InvalidArgument, "a target path is missing")
	}
	if err := checkCapabilities([]*csi.VolumeCapability{req.VolumeCapability}); err != nil {
		return nil, err
	}
	if _, err := d.existing(req.VolumeId); err != nil {
		return nil, err
	}
	mounted, err := mounted(d.mounter, req.TargetPath)
	if err != nil || mounted {
		return &csi.NodePublishVolumeResponse{}, failure(err)
	}
	options := []string{"bind"}
	if req.Readonly {
		options = append(options, "ro")
	}
	return &csi.NodePublishVolumeResponse{}, failure(d.mounter.Mount(req.StagingTargetPath, req.TargetPath, "", options))
}

// mounted reports whether something is mounted at a folder, which it makes.
func mounted(m mount.Interface, folder string) (bool, error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return false, err
	}
	return m.IsMountPoint(folder)
}

// NodeUnpublishVolume hides a volume from a Pod.
func (d *Driver) NodeUnpublishVolume(_ context.Context, req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if req.VolumeId == "" || req.TargetPath == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume or the target path is missing")
	}
	return &csi.NodeUnpublishVolumeResponse{}, failure(mount.CleanupMountPoint(req.TargetPath, d.mounter, true))
}

// NodeExpandVolume enlarges the file of a mounted volume, and the file system in it. The kernel lets only processes with CAP_SYS_RESOURCE
// do the latter, which the nodes of some machines lack. There, the file system grows before the next Pod uses the volume.
func (d *Driver) NodeExpandVolume(_ context.Context, req *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if req.VolumePath == "" {
		return nil, status.Error(codes.InvalidArgument, "the path is missing")
	}
	volume, err := d.existing(req.VolumeId)
	if err != nil {
		return nil, err
	}
	size, err := sizeOf(req.CapacityRange)
	if err != nil {
		return nil, err
	}
	done, err := d.busy.take(volume)
	if err != nil {
		return nil, err
	}
	defer done()
	file, err := os.OpenFile(volume, os.O_RDWR, 0)
	if err != nil {
		return nil, failure(err)
	}
	defer func() { _ = file.Close() }()
	if err := reserve(file, size); err != nil { // a file that is longer already stays as it is
		return nil, failure(err)
	}
	err = d.grow(volume, req.VolumePath)
	if err != nil && strings.Contains(err.Error(), "Permission denied to resize filesystem") {
		err = status.Errorf(codes.FailedPrecondition, "%v; it grows when the next Pod uses the volume", err)
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: size}, failure(err)
}

// NodeGetVolumeStats says how full a volume is.
func (d *Driver) NodeGetVolumeStats(_ context.Context, req *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if req.VolumePath == "" {
		return nil, status.Error(codes.InvalidArgument, "the path is missing")
	}
	if _, err := d.existing(req.VolumeId); err != nil {
		return nil, err
	}
	var s unix.Statfs_t
	if err := unix.Statfs(req.VolumePath, &s); err != nil {
		return nil, status.Errorf(codes.NotFound, "%s: %v", req.VolumePath, err)
	}
	block := s.Bsize
	usage := func(unit csi.VolumeUsage_Unit, total, free, available int64) *csi.VolumeUsage {
		return &csi.VolumeUsage{Unit: unit, Total: total, Used: total - free, Available: available}
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		usage(csi.VolumeUsage_BYTES, int64(s.Blocks)*block, int64(s.Bfree)*block, int64(s.Bavail)*block),
		usage(csi.VolumeUsage_INODES, int64(s.Files), int64(s.Ffree), int64(s.Ffree)),
	}}, nil
}

// device returns the loop device of a volume, or nothing if it is not mounted.
func (d *Driver) device(volume string) (string, error) {
	out, err := d.run("losetup", "--noheadings", "--output=NAME", "--associated="+volume)
	return strings.TrimSpace(out), err
}

// grow makes the file system of a mounted volume as large as its file.
func (d *Driver) grow(volume, path string) error {
	device, err := d.device(volume)
	if err != nil {
		return err
	}
	if device == "" {
		return status.Errorf(codes.FailedPrecondition, "%s is not mounted", volume)
	}
	if _, err := d.run("losetup", "--set-capacity", device); err != nil {
		return err
	}
	_, err = mount.NewResizeFs(d.mounter.Exec).Resize(device, path)
	return err
}

// freeze holds back writes to a volume, if it is mounted. Thaw ends that.
func (d *Driver) freeze(volume string) error { return d.fsfreeze(volume, "--freeze") }
func (d *Driver) thaw(volume string) error   { return d.fsfreeze(volume, "--unfreeze") }

func (d *Driver) fsfreeze(volume, flag string) error {
	points, err := d.mountPoints(volume)
	if err == nil && len(points) > 0 {
		_, err = d.run("fsfreeze", flag, points[0].Path)
	}
	return err
}

// mountPoints returns where a volume is mounted: for all Pods, and for each.
func (d *Driver) mountPoints(volume string) ([]mount.MountPoint, error) {
	device, err := d.device(volume)
	if err != nil || device == "" {
		return nil, err
	}
	points, err := d.mounter.List()
	return slices.DeleteFunc(points, func(p mount.MountPoint) bool { return p.Device != device }), err
}

// run runs a program, and returns what it prints.
func (d *Driver) run(program string, args ...string) (string, error) {
	out, err := d.mounter.Exec.Command(program, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
