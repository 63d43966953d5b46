// Command kubeadm sets up a cluster.
package main

import (
	"k8s.io/kubernetes/cmd/kubeadm/app"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/errors"
)

// HandleError turns kubeadm's error kinds into their exit codes, so app.Run alone would not do.
func main() { errors.HandleError(app.Run()) }
