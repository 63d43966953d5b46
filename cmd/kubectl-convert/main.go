// Command kubectl-convert is the kubectl plugin that converts manifests between API versions.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"slipway.build/cmd/kubectl-convert/app"
)

func main() { os.Exit(cli.Run(app.NewCommand())) }
