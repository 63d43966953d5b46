// Command kube-aggregator serves the aggregation layer of the Kubernetes API by itself.
package main

import (
	"os"

	"k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	_ "k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	aggregator "k8s.io/kube-aggregator/pkg/cmd/server"
)

func main() {
	ctx := server.SetupSignalContext()
	os.Exit(cli.Run(aggregator.NewCommandStartAggregator(ctx, aggregator.NewDefaultOptions(os.Stdout, os.Stderr))))
}
