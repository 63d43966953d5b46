// Package logs finds logs in the folders of a cluster, and reads and follows them.
//
// There are logs of programs, COMPONENT.log, and those of containers, which the kubelet and the container runtime write below pods, with
// a time before each line. A log grows, is rotated, or is cut and written again, and a container that restarts has a new one.
//
// # What must never be in here
//
// What a cluster is, which components it has, and where its folders are.
package logs
