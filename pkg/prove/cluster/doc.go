// Package cluster boots a cluster from the release tarballs, on this machine, and removes it without a trace.
//
// Nothing is taken from the tree: the server tarball is verified against SHA256SUMS and unpacked into the cluster's folder,
// and what runs is what was in it. There are two kinds of cluster:
//
//   - One with nodes, for which root is needed. A node is a set of namespaces on this machine (node.sh is its init) with
//     containerd and runc of the system; kubeadm sets up the cluster as on any other machine. The container runtime of each
//     node is given the images of the tarball, under their upstream names, and no registry is asked for any.
//   - A control plane only: etcd, kube-apiserver, kube-controller-manager and kube-scheduler as plain processes on loopback.
//     No root, no containers.
//
// # What is where
//
// Everything is in one folder for each cluster: state.json says what was made, kubeconfig is the administrator's, release is
// what was unpacked, log has what processes say, and nodes has a folder for each node, with its own logs in var-log. What
// else there is of a cluster is in the kernel: processes, one network interface (slwID), and control groups (slipway-ID).
// Mounts, the rest of the network and firewall rules are in namespaces, and go with the last process of a node. The kubelet
// wants to set what belongs to the machine (sysctls that no namespace holds): a node has files in their place, and so they
// never change.
//
// Each thing that outlives the process is written to state.json before it is made; a process waits for that before it does
// anything. So Down removes everything, whatever has been killed when.
//
// # What must never be in here
//
// How tarballs are made, and a second list of what is in them: kubeadm says which images it wants, and the archives of
// images say what they are called.
package cluster
