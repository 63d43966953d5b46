// Command kubelet runs the pods of a node.
package main

import (
	"context"
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	// The kubelet installs its own signal handler. With a context that already has one, it would panic at
	// start (two handlers on one channel), so it gets the plain background context.
	os.Exit(cli.Run(app.NewKubeletCommand(context.Background())))
}
