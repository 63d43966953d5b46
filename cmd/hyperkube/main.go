// Command hyperkube has all components in one binary. Run `hyperkube kubelet …`, or hyperkube through a link
// with the component's name.
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // CronJob time zones, also on hosts without zoneinfo

	"github.com/spf13/cobra"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/cmd/server"
	"k8s.io/apiserver/pkg/server"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	_ "k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	aggregator "k8s.io/kube-aggregator/pkg/cmd/server"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/errors"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	cloudmanager "slipway.build/cmd/cloud-controller-manager/app"
	convert "slipway.build/cmd/kubectl-convert/app"
)

// components maps names to functions that run components. They also construct them, since some components
// install a signal handler when constructed, and a process may have only one.
var components = map[string]func(){
	"apiextensions-apiserver": func() {
		run(apiextensions.NewServerCommand(server.SetupSignalContext(), os.Stdout, os.Stderr))
	},
	"cloud-controller-manager": func() {
		command, err := cloudmanager.NewCommand()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		run(command)
	},
	"kube-aggregator": func() {
		run(aggregator.NewCommandStartAggregator(server.SetupSignalContext(), aggregator.NewDefaultOptions(os.Stdout, os.Stderr)))
	},
	"kube-apiserver":          func() { run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { run(controllermanager.NewControllerManagerCommand()) },
	"kube-proxy":              func() { run(proxy.NewProxyCommand()) },
	"kube-scheduler":          func() { run(scheduler.NewSchedulerCommand()) },
	"kubeadm":                 func() { errors.HandleError(kubeadm.Run()) },
	"kubectl": func() {
		_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
		util.CheckErr(cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()))
	},
	"kubectl-convert": func() { run(convert.NewCommand()) },
	"kubelet":         func() { run(kubelet.NewKubeletCommand(context.Background())) },
}

func run(c *cobra.Command) { os.Exit(cli.Run(c)) }

func main() {
	if component, ok := components[strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")]; ok {
		component()
		return
	}
	if len(os.Args) < 2 {
		usage(os.Stderr)
		os.Exit(2)
	}
	switch name := os.Args[1]; name {
	case "help", "-h", "--help":
		usage(os.Stdout)
	default:
		component, ok := components[name]
		if !ok {
			fmt.Fprintf(os.Stderr, "hyperkube: no component %q\n\n", name)
			usage(os.Stderr)
			os.Exit(2)
		}
		os.Args = os.Args[1:]
		component()
	}
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: hyperkube COMPONENT [flags]\n\nComponents:")
	for _, name := range slices.Sorted(maps.Keys(components)) {
		fmt.Fprintln(w, "  "+name)
	}
}
