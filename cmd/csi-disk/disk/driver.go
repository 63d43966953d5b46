package disk

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/mount-utils"
	"k8s.io/utils/exec"
)

// Name is the name of the driver in the API.
const Name = "disk.csi.slipway.build"

// topologyKey is the label of the node that a volume is on.
const topologyKey = "topology." + Name + "/node"

// A Driver answers calls about volumes.
type Driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer

	folder  string
	node    string // empty in the process without volumes
	mounter *mount.SafeFormatAndMount
	busy    busy
}

// New returns a driver that keeps its volumes in a folder of a node's disk. Without a node, it has none.
func New(folder, node string) *Driver {
	run := exec.New()
	return &Driver{folder: folder, node: node, mounter: mount.NewSafeFormatAndMount(mount.New(""), run)}
}

// Serve answers calls until stop is closed. It has the kubelet of the node, which looks into the folder registry, find the driver.
func (d *Driver) Serve(registry string, stop <-chan struct{}) error {
	s := grpc.NewServer(grpc.UnaryInterceptor(logErrors))
	csi.RegisterIdentityServer(s, d)
	csi.RegisterControllerServer(s, d)
	csi.RegisterNodeServer(s, d) // even without a node, since external-resizer asks what nodes can do
	failed := make(chan error, 2)
	endpoint := filepath.Join(d.folder, "csi.sock")
	if d.node != "" {
		if err := d.recover(); err != nil {
			return err
		}
		r := grpc.NewServer()
		registration.RegisterRegistrationServer(r, &registrar{endpoint: endpoint, failed: failed})
		defer r.Stop()
		defer func() { _ = os.Remove(filepath.Join(registry, Name+"-reg.sock")) }()
		if err := listen(r, filepath.Join(registry, Name+"-reg.sock"), failed); err != nil {
			return err
		}
	}
	defer s.GracefulStop()
	if err := listen(s, endpoint, failed); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	case <-stop:
		return nil
	}
}

// recover makes the driver's folders, and undoes what an earlier process was doing when it was killed.
func (d *Driver) recover() error {
	err := errors.Join(os.MkdirAll(d.file("volumes"), 0o700), os.MkdirAll(d.file("snapshots"), 0o700))
	if err != nil {
		return err
	}
	left, _ := filepath.Glob(d.file("*", making+"*"))           // volumes; the pattern is well-formed
	snapshots, _ := filepath.Glob(d.file("*", "*", making+"*")) // of volumes that are frozen, perhaps
	for _, s := range snapshots {
		_ = d.thaw(d.file("volumes", strings.TrimPrefix(filepath.Base(s), making))) // it fails if the volume is not frozen
	}
	for _, file := range append(left, snapshots...) {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// listen has a server listen on a socket, in the place of one that an earlier process has left.
func listen(s *grpc.Server, socket string, failed chan<- error) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	go func() {
		if err := s.Serve(l); err != nil {
			failed <- err
		}
	}()
	return nil
}

// A registrar introduces the driver to a kubelet.
type registrar struct {
	registration.UnsafeRegistrationServer
	endpoint string
	failed   chan<- error
}

// GetInfo says where the driver listens.
func (r *registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: Name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus ends the driver if the kubelet refuses it, to be tried again.
func (r *registrar) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (
	*registration.RegistrationStatusResponse, error) {
	if !s.PluginRegistered {
		r.failed <- errors.New("the kubelet refuses the driver: " + s.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func logErrors(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	answer, err := handler(ctx, req)
	if err != nil {
		klog.ErrorS(err, info.FullMethod)
	}
	return answer, err
}

// GetPluginInfo returns the driver's name and version.
func (d *Driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: Name, VendorVersion: version.Get().GitVersion}, nil
}

// GetPluginCapabilities says that volumes are on nodes, and can be expanded while Pods use them.
func (d *Driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	service := func(t csi.PluginCapability_Service_Type) *csi.PluginCapability {
		return &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: t}}}
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		service(csi.PluginCapability_Service_CONTROLLER_SERVICE),
		service(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS),
		{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{
			Type: csi.PluginCapability_VolumeExpansion_ONLINE,
		}}},
	}}, nil
}

// Probe says that the driver is ready.
func (d *Driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// file returns the path of a file in the driver's folder.
func (d *Driver) file(parts ...string) string {
	return filepath.Join(append([]string{d.folder}, parts...)...)
}

// id returns the ID of a volume or a snapshot on this node.
func (d *Driver) id(name string) string { return d.node + "/" + name }

// split returns the parts of an ID. Names come from sidecars, and must be those of files.
func split(id string) (node, name string, err error) {
	node, name, ok := strings.Cut(id, "/")
	if !ok || node == "" || !fileName(name) {
		return "", "", status.Errorf(codes.NotFound, "%q is no ID of this driver", id)
	}
	return node, name, nil
}

// here returns the name in an ID of this node.
func (d *Driver) here(id string) (string, error) {
	if id == "" {
		return "", status.Error(codes.InvalidArgument, "the ID is missing")
	}
	node, name, err := split(id)
	if err == nil && node != d.node {
		err = status.Errorf(codes.NotFound, "%s is on another node than %s", id, d.node)
	}
	return name, err
}

// fileName reports whether a name is that of a file, and not that of one in the making.
func fileName(name string) bool {
	return name != "" && !strings.HasPrefix(name, ".") && !strings.ContainsAny(name, "/\x00") && len(name) <= 200
}
