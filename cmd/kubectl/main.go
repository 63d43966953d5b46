// Command kubectl talks to the Kubernetes API from a command line.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	// Plugins and .kuberc are handled while the command is constructed, before flags are parsed;
	// -v must take effect there already. The flag's own parser reports a bad level later.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	util.CheckErr(cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()))
}
