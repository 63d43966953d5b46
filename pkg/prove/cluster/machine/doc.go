// Package machine has what a cluster uses of the machine that it runs on: processes, namespaces, control groups and the network.
//
// Commands run with an environment of their own, and either end with this process ([Output]) or outlive it ([Start]). A process that
// outlives it is identified by its ID and its start time, so a later process that gets the same ID is never taken for it.
//
// # What must never be in here
//
// Clusters, releases and Kubernetes: what the processes are, and where it is written down what was made.
package machine
