// Command kubeadm sets up a cluster. What it does by default, defaults/kubeadm.yaml says.
package main

import (
	"k8s.io/component-base/version"
	"k8s.io/kubernetes/cmd/kubeadm/app"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/errors"

	"slipway.build/cmd/kubeadm/defaults"
)

// HandleError turns kubeadm's kinds of errors into exit codes, which app.Run does not do.
func main() {
	if err := defaults.Use(version.Get().GitVersion); err != nil {
		errors.HandleError(err)
	}
	errors.HandleError(app.Run())
}
