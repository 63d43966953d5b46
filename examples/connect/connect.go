// Package connect finds the API server.
package connect

import (
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// namespaceFile is where a Pod finds the name of its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Config returns how to reach the API server, and the namespace to work in: by a kubeconfig, with its current context; without one, as the
// Pod that the program runs in, with the token of its service account.
func Config(kubeconfig string) (config *rest.Config, namespace string, err error) {
	if kubeconfig == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, "", err
		}
		data, err := os.ReadFile(namespaceFile)
		return config, strings.TrimSpace(string(data)), err
	}
	outside := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}, &clientcmd.ConfigOverrides{})
	if config, err = outside.ClientConfig(); err != nil {
		return nil, "", err
	}
	namespace, _, err = outside.Namespace()
	return config, namespace, err
}
