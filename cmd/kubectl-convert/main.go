// Command kubectl-convert is the kubectl plugin that converts manifests between API versions.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubernetes/pkg/kubectl/cmd/convert"
)

func main() {
	kubeconfig := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag()
	config := util.NewMatchVersionFlags(kubeconfig)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	command := convert.NewCmdConvert(util.NewFactory(config), streams)
	kubeconfig.AddFlags(command.PersistentFlags())
	config.AddFlags(command.PersistentFlags())
	os.Exit(cli.Run(command))
}
