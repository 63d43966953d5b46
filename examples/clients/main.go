// Command clients shows the clients of client-go, and what they ask for. It writes two ConfigMaps, reads them in many ways, prints a line
// for each, and removes them.
//
//	clients --kubeconfig FILE    out of the cluster
//	clients                      in a Pod, as its service account: see pod.yaml
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"slipway.build/examples/connect"
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
	config.UserAgent = rest.DefaultKubernetesUserAgent() // "clients/v1.37.2 …" in the audit log
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	e := example{config: config, client: client, namespace: namespace, name: "example-" + rand.String(5)}
	err = e.all(ctx)

	// Also after an interrupt, which ended ctx.
	clean := client.CoreV1().ConfigMaps(namespace).DeleteCollection(context.WithoutCancel(ctx), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: e.selector()})
	if err == nil {
		err = clean
	}
	return err
}

// An example works on the ConfigMaps NAME-first and NAME-second, which have the label example=NAME.
type example struct {
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
	name      string
	versions  [2]string // resource versions of the cluster after each of them was created
}

func (e *example) selector() string { return "example=" + e.name }

func (e *example) all(ctx context.Context) error {
	for _, show := range []func(context.Context) error{e.typed, e.rest, e.discovery, e.dynamic, e.lists, e.fields} {
		if err := show(ctx); err != nil {
			return err
		}
	}
	return nil
}
