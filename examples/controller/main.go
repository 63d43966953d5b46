// Command controller is a controller of ConfigMaps: those with the label examples.slipway.build/digest get an annotation with the digest of
// their data, which follows each change of it. It shows informers, listers, a rate-limited queue, Events and the election of a leader.
//
//	controller --kubeconfig FILE    several may run; one of them works
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"slipway.build/examples/connect"
	"slipway.build/examples/leader"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`file` with the cluster's address and credentials; without it, the program is in a Pod")
	identity := flag.String("identity", leader.Identity(), "`name` of this replica, which no other has")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *identity); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, identity string) error {
	config, namespace, err := connect.Config(kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	recorder, stop, err := newRecorder(ctx, client)
	if err != nil {
		return err
	}
	defer stop()

	// All users of a factory share one cache and one watch for each resource. This one sees what has the label, in one namespace.
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = label }))
	c, err := newController(client, factory, recorder)
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx) // a replica that waits has a full cache when it becomes the leader
	return leader.Run(ctx, client, namespace, "digest-controller", identity, func(ctx context.Context) {
		klog.FromContext(ctx).Info("Working", "identity", identity)
		c.run(ctx)
	})
}
