// Package disk is a driver of the Container Storage Interface (CSI) for clusters without a storage system. A volume is a file on the disk
// of one node, with a file system of its own, so it has the size that was asked for. It can be expanded, and snapshots can be taken of it.
//
// # One process on each node, and one for all
//
// The process on a node (New with its name) makes and mounts the volumes there, which no other node can reach: a volume is accessible from
// the topology segment of its node alone, so Kubernetes places Pods there. The sidecars beside it, external-provisioner and
// external-snapshotter with --node-deployment, turn claims for the node into calls.
//
// One more process (New without a name) is for the sidecars that work for all nodes, external-attacher and external-resizer. It has no
// volumes. Attaching a volume connects nothing: it is where it is, and the driver refuses to attach it to another node. The file is
// enlarged by the process on the node.
//
// # State
//
// All state is in the names and sizes of files, in the driver's folder: volumes/NAME, snapshots/NAME/NAME-OF-VOLUME. An ID is NODE/NAME.
// Files are made under another name and renamed, and a loop device is freed by the kernel with its last mount, so that no process has to
// clean up after another one.
//
// # Why it exists
//
// Upstream's driver for one node, kubernetes-csi/csi-driver-host-path, and node-driver-registrar, which introduces a driver to kubelets,
// are not published as Go modules that every proxy has. What formats, mounts and resizes is k8s.io/mount-utils, as in upstream's drivers.
package disk
