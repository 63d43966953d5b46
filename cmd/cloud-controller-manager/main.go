// Command cloud-controller-manager gives each Service of type LoadBalancer an address of the network that its node is in.
package main

import (
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	"slipway.build/cmd/cloud-controller-manager/app"
)

func main() {
	command, err := app.NewCommand()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(cli.Run(command))
}
