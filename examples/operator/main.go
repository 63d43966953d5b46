// Command site-operator is an operator: a controller of a resource that Kubernetes does not have. For each Site, a web server in several
// replicas, it keeps a Deployment.
//
//	kubectl apply -f manifests    in the cluster: the resource, and the operator as a Deployment
//	operator --kubeconfig FILE    out of it
//
// The types in apis are all that people write of the API. `slipway generate` makes deep copies, clients, listers and informers of them;
// go generate makes the CustomResourceDefinition.
package main

//go:generate go tool -modfile=../tools.mod controller-gen crd paths=./apis/... output:crd:dir=manifests

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"slipway.build/examples/connect"
	"slipway.build/examples/leader"
	"slipway.build/examples/operator/generated/clientset/versioned"
	"slipway.build/examples/operator/generated/informers/externalversions"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`file` with the cluster's address and credentials; without it, the program is in a Pod")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	config, namespace, err := connect.Config(kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	sites, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	siteFactory, factory := externalversions.NewSharedInformerFactory(sites, 0), kubeinformers.NewSharedInformerFactory(client, 0)
	o, err := newOperator(client, sites, siteFactory.Examples().V1alpha1().Sites(), factory.Apps().V1().Deployments())
	if err != nil {
		return err
	}
	siteFactory.StartWithContext(ctx)
	factory.StartWithContext(ctx)
	if err := o.sync(ctx); err != nil {
		return err
	}
	return leader.Run(ctx, client, namespace, name, leader.Identity(), func(ctx context.Context) {
		klog.FromContext(ctx).Info("Working")
		o.run(ctx)
	})
}
