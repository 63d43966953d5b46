// Command kube-controller-manager runs the controllers that move a cluster toward its declared state.
package main

import (
	"os"
	_ "time/tzdata" // CronJobs fire in their own time zone, also on hosts without zoneinfo

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() { os.Exit(cli.Run(app.NewControllerManagerCommand())) }
