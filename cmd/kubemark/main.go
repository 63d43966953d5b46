// Command kubemark runs a hollow node: a kubelet or kube-proxy without a machine behind it, for scale tests.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kubemark/app"
)

func main() { os.Exit(cli.Run(app.NewHollowNodeCommand())) }
