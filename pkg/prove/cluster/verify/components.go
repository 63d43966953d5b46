package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// components is the group of checks that find out whether the programs of the cluster run.
const components = "components"

// The names of components, which are those of their checks.
const (
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kubelet           = "kubelet"
	kubeProxy         = "kube-proxy"
	coreDNS           = "coredns"
	metricsServer     = "metrics-server"
	cloudManager      = "cloud-controller-manager"
	ingressController = "traefik"
)

// podLabels select the Pods of components, whose logs explain failures. A kubelet has none.
var podLabels = map[string]string{
	apiServer:         "component=kube-apiserver",
	controllerManager: "component=kube-controller-manager",
	scheduler:         "component=kube-scheduler",
	kubeProxy:         "k8s-app=kube-proxy",
	coreDNS:           "k8s-app=kube-dns",
	metricsServer:     "k8s-app=metrics-server",
	cloudManager:      "k8s-app=cloud-controller-manager",
	ingressController: "k8s-app=traefik",
}

// Each asks the program itself, or for what only the program does: a stopped program's Pod still claims to be ready.
var componentChecks = []Check{
	component(apiServer, apiServerReady),
	component(controllerManager, renewsLease(controllerManager)),
	component(scheduler, renewsLease(scheduler)),
	component(kubelet, kubeletsAnswer),
	component(kubeProxy, proxiesAnswer),
	component(coreDNS, deploymentAvailable(coreDNS)),
	component(metricsServer, podsRun(metricsServer)), // it is ready only once it has measured twice
	component(cloudManager, podsRun(cloudManager)),
	component(ingressController, deploymentAvailable(ingressController)),
}

// component returns the check of a component. It waits for less time than others: it is about what runs already.
func component(name string, run func(context.Context, *env) error) Check {
	c := Check{Group: components, Name: name, Limit: time.Minute, run: run}
	if name != apiServer {
		c.Needs = []string{apiServer}
	}
	return c
}

// withoutAddons returns checks, of which those of addons that the cluster's release lacks are skipped.
func withoutAddons(checks []Check, try maker, lacks []string) ([]Check, maker) {
	lacking := func(c Check) string {
		if c.Group == components && slices.Contains(lacks, c.Name) {
			return c.Name
		}
		for _, name := range c.Needs {
			if slices.Contains(lacks, name) {
				return name
			}
		}
		return ""
	}
	checks = slices.Clone(checks)
	for i, c := range checks {
		checks[i].Skips = c.Skips || lacking(c) != ""
	}
	return checks, func(ctx context.Context, c Check) (string, error) {
		if name := lacking(c); name != "" {
			return "", skip("needs " + name + ", which the cluster's release does not have")
		}
		return try(ctx, c)
	}
}

func apiServerReady(ctx context.Context, e *env) error {
	return until(ctx, func() error {
		_, err := e.kubectl(ctx, "get", "--raw", "/readyz?verbose", "--request-timeout=5s")
		return err
	})
}

// renewsLease requires that a component is elected and renews its lease, which it does every two seconds.
func renewsLease(name string) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		if e.ControlPlaneOnly {
			return healthy(ctx, e, name)
		}
		if _, err := e.leaseField(ctx, name, "holderIdentity", ""); err != nil {
			return err
		}
		before, err := e.leaseField(ctx, name, "renewTime", "")
		if err != nil {
			return err
		}
		_, err = e.leaseField(ctx, name, "renewTime", before)
		return err
	}
}

// leaseField returns a field of a component's lease once it is set and differs from its value before.
func (e *env) leaseField(ctx context.Context, name, field, before string) (now string, err error) {
	err = until(ctx, func() error {
		now, err = e.get(ctx, "lease/"+name, "{.spec."+field+"}", "--namespace=kube-system", "--request-timeout=5s")
		if err == nil && (now == "" || now == before) {
			err = fmt.Errorf("%s of lease/%s is still %q", field, name, now)
		}
		return err
	})
	return now, err
}

func kubeletsAnswer(ctx context.Context, e *env) error {
	for _, n := range e.nodes {
		err := until(ctx, func() error {
			said, err := e.kubectl(ctx, "get", "--raw", "/api/v1/nodes/"+n.Name+"/proxy/healthz", "--request-timeout=5s")
			if err == nil && strings.TrimSpace(said) != "ok" {
				err = fmt.Errorf("its health is %q, want ok", said)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("kubelet of %s: %w", n.Name, err)
		}
	}
	return nil
}

func proxiesAnswer(ctx context.Context, e *env) error {
	for _, n := range e.nodes {
		err := until(ctx, func() error {
			_, err := httpGet(ctx, "http://"+n.Address+":10256/livez")
			return err
		})
		if err != nil {
			return fmt.Errorf("kube-proxy of %s: %w", n.Name, err)
		}
	}
	return nil
}

func deploymentAvailable(name string) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		return until(ctx, func() error {
			available, err := e.get(ctx, "deployment/"+name, "{.status.availableReplicas}", "--namespace=kube-system", "--request-timeout=5s")
			if err == nil && (available == "" || available == "0") {
				err = fmt.Errorf("deployment/%s has no available Pod", name)
			}
			return err
		})
	}
}

func podsRun(name string) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		return until(ctx, func() error {
			started, err := e.get(ctx, "pods", "{.items[*].status.containerStatuses[*].state.running.startedAt}",
				"--namespace=kube-system", "--selector="+podLabels[name], "--request-timeout=5s")
			if err == nil && started == "" {
				err = errors.New("no container of it runs")
			}
			return err
		})
	}
}

// httpGet gets a URL from this machine, without the proxy that its environment may name.
func httpGet(ctx context.Context, url string) (string, error) {
	return get(ctx, &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}, url)
}

// get returns what a client is answered with status 200, without white space around it.
func get(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %s", url, answer.Status, body)
	}
	return strings.TrimSpace(string(body)), err
}
