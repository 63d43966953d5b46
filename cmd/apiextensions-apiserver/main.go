// Command apiextensions-apiserver serves custom resource definitions by itself.
package main

import (
	"os"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/cmd/server"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
)

func main() {
	ctx := server.SetupSignalContext()
	os.Exit(cli.Run(apiextensions.NewServerCommand(ctx, os.Stdout, os.Stderr)))
}
