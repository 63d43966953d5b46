// Package cluster boots a cluster from release tarballs on this machine, and removes it without a trace.
//
// A cluster takes nothing from the tree: the server tarball is compared with release.json and unpacked into the cluster's folder, and
// the programs in it run. There are two kinds of cluster:
//
//   - One with nodes, which needs root. A node is a set of namespaces on this machine (node.sh is its init) with the root file
//     system and the container runtime of the release; kubeadm sets up the cluster as on any other machine. The tarball's images
//     are in a registry of the cluster's own, which the nodes ask for every image.
//   - A control plane only: etcd, kube-apiserver, kube-controller-manager and kube-scheduler as plain processes on loopback,
//     without root and containers.
//
// # Folders
//
// Each cluster has one folder: state.json says what was made, kubeconfig is the administrator's, release holds what was unpacked,
// root is the root file system of nodes, registry holds the images that nodes pull, log holds the output of processes, and nodes has a
// folder for each node, with the node's logs in var-log. The rest of a cluster is in the kernel: processes, one network interface
// (slwID), and control groups (slipway-ID). Mounts, the rest of the network and firewall rules are in namespaces, and go with the
// last process of a node. The kubelet sets sysctls that no namespace holds and that belong to the machine: a node has files in
// their place, so that they never change.
//
// # Removal
//
// Anything that outlives this process is written to state.json before it is made, and a new process waits for that before it does
// anything. So Down can remove everything, whenever any process was killed.
//
// # Packages
//
// This package creates, changes and removes clusters: [Up], [Down], [Upgrade], [State.Replace] and [State.Status]. What does not depend
// on a [State] is in packages below, which import neither this one nor each other: machine (processes, control groups, the network),
// tarball (those of a release), images (and how they are pushed), kubeadm (its configuration), controlplane (one without nodes) and
// logs.
//
// The files of this package build on each other: state, process, kubectl, network, registry, node and programs say what a cluster consists
// of; settings has the programs read what a user sets; nodes and controlplane have the steps that make one; up, upgrade, replace and the
// rest use them.
//
// # What must never be in here
//
// How tarballs are made, where they hold what, and which images there are. Names of files and paths in tarballs come from
// release.json, of which a copy is beside what was unpacked. Kubeadm says which images it wants, and the archives of images have
// their names. The artifacts that a cluster uses are named once, in artifacts.go.
package cluster
