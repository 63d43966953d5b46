// Command kubeadm sets up a cluster.
package main

import (
	"k8s.io/kubernetes/cmd/kubeadm/app"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/errors"
)

// HandleError turns kubeadm's kinds of errors into exit codes, which app.Run does not do.
func main() { errors.HandleError(app.Run()) }
