// Package kubeadm writes the files that configure kubeadm, kubelets and API servers, with the [Settings] of a user merged over them.
//
// Paths in them are those of a node: a node's folder is [Folder] there.
//
// # What must never be in here
//
// Processes and the machine: when kubeadm runs, and where nodes have their files on this machine.
package kubeadm
