// Package app has the command of kubectl-convert.
package app

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubernetes/pkg/kubectl/cmd/convert"
)

// NewCommand returns the command, which reads and writes the streams of the process.
func NewCommand() *cobra.Command {
	kubeconfig := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag()
	config := util.NewMatchVersionFlags(kubeconfig)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	command := convert.NewCmdConvert(util.NewFactory(config), streams)
	kubeconfig.AddFlags(command.PersistentFlags())
	config.AddFlags(command.PersistentFlags())
	return command
}
