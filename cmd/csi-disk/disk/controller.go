package disk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Sizes of volumes, in bytes.
const (
	sizeUnit    = 1 << 20
	defaultSize = 1 << 30
)

// ControllerGetCapabilities lists the calls that the driver answers.
func (d *Driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse,
	error) {
	answer := &csi.ControllerGetCapabilitiesResponse{}
	for _, t := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT, csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		answer.Capabilities = append(answer.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}},
		})
	}
	return answer, nil
}

// CreateVolume makes the file of a volume, empty or with what a snapshot holds. The volume's space is reserved on the disk.
func (d *Driver) CreateVolume(_ context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if err := checkCapabilities(req.VolumeCapabilities); err != nil {
		return nil, err
	}
	if !fileName(req.Name) {
		return nil, status.Errorf(codes.InvalidArgument, "%q is no name for a volume", req.Name)
	}
	size, err := sizeOf(req.CapacityRange)
	if err != nil {
		return nil, err
	}
	if !d.allowed(req.AccessibilityRequirements) {
		return nil, status.Errorf(codes.ResourceExhausted, "the volume must be on another node than %s", d.node)
	}
	volume := d.file("volumes", req.Name)
	done, err := d.busy.take(volume)
	if err != nil {
		return nil, err
	}
	defer done()
	info, err := os.Stat(volume)
	if errors.Is(err, os.ErrNotExist) {
		err = d.create(volume, size, req.VolumeContentSource)
	} else if err == nil && info.Size() != size {
		err = status.Errorf(codes.AlreadyExists, "volume %s has %d bytes, not %d", req.Name, info.Size(), size)
	}
	if err != nil {
		return nil, failure(err)
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: d.id(req.Name), CapacityBytes: size, ContentSource: req.VolumeContentSource, AccessibleTopology: []*csi.Topology{d.topology()},
	}}, nil
}

// create makes the file of a volume.
func (d *Driver) create(volume string, size int64, source *csi.VolumeContentSource) error {
	snapshot := ""
	if source != nil {
		id := source.GetSnapshot().GetSnapshotId()
		node, name, err := split(id)
		if err != nil {
			return err
		}
		if node != d.node {
			return status.Errorf(codes.ResourceExhausted, "snapshot %s is on another node than %s", id, d.node)
		}
		file, info, err := d.snapshot(name)
		if err != nil {
			return err
		}
		if info.Size() > size {
			return status.Errorf(codes.OutOfRange, "snapshot %s has %d bytes, more than %d", id, info.Size(), size)
		}
		snapshot = file
	}
	return inPlace(volume, func(file *os.File) error {
		if snapshot != "" {
			if err := copyInto(file, snapshot); err != nil {
				return err
			}
		}
		return reserve(file, size)
	})
}

// DeleteVolume removes the file of a volume.
func (d *Driver) DeleteVolume(_ context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	name, err := d.here(req.VolumeId)
	if status.Code(err) == codes.NotFound {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	volume := d.file("volumes", name)
	done, err := d.busy.take(volume)
	if err != nil {
		return nil, err
	}
	defer done()
	device, err := d.device(volume)
	if err != nil {
		return nil, failure(err)
	}
	if device != "" {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is mounted", req.VolumeId)
	}
	if err := os.Remove(volume); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, failure(err)
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// ControllerPublishVolume attaches a volume to a node. It connects nothing, and refuses other nodes than the volume's own.
func (d *Driver) ControllerPublishVolume(_ context.Context, req *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse,
	error) {
	if req.VolumeId == "" || req.NodeId == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume or the node is missing")
	}
	if err := checkCapabilities([]*csi.VolumeCapability{req.VolumeCapability}); err != nil {
		return nil, err
	}
	node, _, err := split(req.VolumeId)
	if err == nil && node != req.NodeId {
		err = status.Errorf(codes.FailedPrecondition, "volume %s cannot be attached to node %s", req.VolumeId, req.NodeId)
	}
	return &csi.ControllerPublishVolumeResponse{}, err
}

// ControllerUnpublishVolume detaches a volume, for which nothing is to be done.
func (d *Driver) ControllerUnpublishVolume(_ context.Context, req *csi.ControllerUnpublishVolumeRequest) (
	*csi.ControllerUnpublishVolumeResponse, error) {
	if req.VolumeId == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume is missing")
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

// ValidateVolumeCapabilities says whether a volume can be used in some way.
func (d *Driver) ValidateVolumeCapabilities(_ context.Context, req *csi.ValidateVolumeCapabilitiesRequest) (
	*csi.ValidateVolumeCapabilitiesResponse, error) {
	if _, err := d.existing(req.VolumeId); err != nil {
		return nil, err
	}
	if len(req.VolumeCapabilities) == 0 {
		return nil, status.Error(codes.InvalidArgument, "the capabilities are missing")
	}
	if err := checkCapabilities(req.VolumeCapabilities); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{
		Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: req.VolumeCapabilities},
	}, nil
}

// CreateSnapshot copies the file of a volume. Meanwhile, its file system holds back writes.
func (d *Driver) CreateSnapshot(_ context.Context, req *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if !fileName(req.Name) {
		return nil, status.Errorf(codes.InvalidArgument, "%q is no name for a snapshot", req.Name)
	}
	volume, err := d.existing(req.SourceVolumeId)
	if err != nil {
		return nil, err
	}
	done, err := d.busy.take(d.file("snapshots", req.Name))
	if err != nil {
		return nil, err
	}
	defer done()
	file, info, err := d.snapshot(req.Name)
	if status.Code(err) == codes.NotFound {
		file = d.file("snapshots", req.Name, filepath.Base(volume))
		info, err = d.take(volume, file)
	} else if err == nil && filepath.Base(file) != filepath.Base(volume) {
		err = status.Errorf(codes.AlreadyExists, "snapshot %s is of another volume than %s", req.Name, req.SourceVolumeId)
	}
	if err != nil {
		return nil, failure(err)
	}
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{
		SnapshotId: d.id(req.Name), SourceVolumeId: req.SourceVolumeId, SizeBytes: info.Size(), CreationTime: timestamppb.New(info.ModTime()),
		ReadyToUse: true,
	}}, nil
}

// take copies a volume into a snapshot.
func (d *Driver) take(volume, snapshot string) (os.FileInfo, error) {
	if err := os.MkdirAll(filepath.Dir(snapshot), 0o700); err != nil {
		return nil, err
	}
	err := inPlace(snapshot, func(file *os.File) error {
		if err := d.freeze(volume); err != nil {
			return err
		}
		return errors.Join(copyInto(file, volume), d.thaw(volume))
	})
	if err != nil {
		return nil, err
	}
	return os.Stat(snapshot)
}

// snapshot returns the file of a snapshot.
func (d *Driver) snapshot(name string) (string, os.FileInfo, error) {
	files, err := os.ReadDir(d.file("snapshots", name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", nil, err
	}
	files = slices.DeleteFunc(files, func(e os.DirEntry) bool { return !fileName(e.Name()) })
	if len(files) == 0 {
		return "", nil, status.Errorf(codes.NotFound, "there is no snapshot %s on node %s", name, d.node)
	}
	file := d.file("snapshots", name, files[0].Name())
	info, err := os.Stat(file)
	return file, info, err
}

// DeleteSnapshot removes a snapshot.
func (d *Driver) DeleteSnapshot(_ context.Context, req *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	name, err := d.here(req.SnapshotId)
	if status.Code(err) == codes.NotFound {
		return &csi.DeleteSnapshotResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	snapshot := d.file("snapshots", name)
	done, err := d.busy.take(snapshot)
	if err != nil {
		return nil, err
	}
	defer done()
	return &csi.DeleteSnapshotResponse{}, failure(os.RemoveAll(snapshot))
}

// existing returns the file of a volume on this node.
func (d *Driver) existing(id string) (string, error) {
	name, err := d.here(id)
	if err != nil {
		return "", err
	}
	volume := d.file("volumes", name)
	if _, err := os.Stat(volume); errors.Is(err, os.ErrNotExist) {
		return "", status.Errorf(codes.NotFound, "there is no volume %s", id)
	} else if err != nil {
		return "", failure(err)
	}
	return volume, nil
}

// checkCapabilities refuses what a volume cannot be: a block device, or on several nodes.
func checkCapabilities(all []*csi.VolumeCapability) error {
	if len(all) == 0 {
		return status.Error(codes.InvalidArgument, "the capabilities are missing")
	}
	for _, c := range all {
		if c.GetMount() == nil {
			return status.Error(codes.InvalidArgument, "volumes are file systems, and no block devices")
		}
		switch c.GetAccessMode().GetMode() {
		case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY,
			csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
		default:
			return status.Errorf(codes.InvalidArgument, "%v: a volume can only be used on its node", c.GetAccessMode().GetMode())
		}
	}
	return nil
}

// sizeOf returns the size of a volume.
func sizeOf(r *csi.CapacityRange) (int64, error) {
	size := r.GetRequiredBytes()
	if size == 0 {
		size = defaultSize
	}
	size = (size + sizeUnit - 1) / sizeUnit * sizeUnit
	if limit := r.GetLimitBytes(); size < 0 || limit > 0 && size > limit {
		return 0, status.Errorf(codes.OutOfRange, "a volume has a multiple of %d bytes: %d is too large", sizeUnit, size)
	}
	return size, nil
}

// topology returns where the node's volumes can be reached.
func (d *Driver) topology() *csi.Topology {
	return &csi.Topology{Segments: map[string]string{topologyKey: d.node}}
}

// allowed reports whether a volume may be on this node.
func (d *Driver) allowed(r *csi.TopologyRequirement) bool {
	return len(r.GetRequisite()) == 0 ||
		slices.ContainsFunc(r.GetRequisite(), func(t *csi.Topology) bool { return t.Segments[topologyKey] == d.node })
}
