// Package app has the command of cloud-controller-manager, which gives each Service of type LoadBalancer an address of the network that
// its node is in.
//
// The controller is upstream's, of k8s.io/cloud-provider. It is for clusters without a cloud, so it runs none of the controllers that ask a
// cloud about nodes and routes. The flag --addresses names the range of addresses. The node on which it runs answers for those in use, and
// kube-proxy leads from there to the Service's Pods.
package app

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli/flag"
)

// NewCommand returns the command. It ends the process if its flags do not fit the node.
func NewCommand() (*cobra.Command, error) {
	o, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		return nil, err
	}
	o.KubeCloudShared.CloudProvider.Name = providerName
	var (
		pool  addresses
		flags flag.NamedFlagSets
	)
	flags.FlagSet("load balancer").Var(&pool, "addresses",
		"The first and the last address of the range that Services get addresses from, such as 192.0.2.10-192.0.2.99. The node must be in "+
			"their network.")
	const services = names.ServiceLBController
	controllers := map[string]app.ControllerInitFuncConstructor{services: app.DefaultInitFuncConstructors[services]}
	provide := func(*config.CompletedConfig) cloudprovider.Interface {
		p, err := newProvider(pool)
		if err != nil {
			fmt.Fprintf(os.Stderr, "--addresses=%v: %v\n", &pool, err)
			os.Exit(1)
		}
		return p
	}
	return app.NewCloudControllerManagerCommand(o, provide, controllers, names.CCMControllerAliases(), flags, wait.NeverStop), nil
}
