// Package controlplane prepares a control plane without nodes: certificates, kubeconfigs and the command lines of programs that listen on
// free ports of loopback.
//
// # What must never be in here
//
// Processes: where the programs are, and how they are started.
package controlplane
