package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// drainCommand returns kubectl's command that drains a node.
func (u *upgrade) drainCommand(n node, more ...string) []string {
	command := append([]string{"drain", n.name, "--ignore-daemonsets", "--delete-emptydir-data"}, more...)
	if u.force {
		command = append(command, "--force")
	}
	return command
}

// checkDrain returns an error if a drain would be refused, before anything has changed.
func (u *upgrade) checkDrain(ctx context.Context) error {
	if len(u.nodes) < 2 {
		return nil
	}
	for _, n := range u.nodes {
		_, err := u.kubectl(ctx, u.drainCommand(n, "--dry-run=client")...)
		if err != nil && strings.Contains(err.Error(), "declare no controller") { // k8s.io/kubectl/pkg/drain says it of such Pods
			return fmt.Errorf("%w: %w", ErrBarePods, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// drain moves the Pods of a node to other nodes, as far as their disruption budgets allow. Before that, it waits for everything that must
// notice: kubeadm replaces kube-proxy on all nodes without waiting for it, and the controllers have just started.
func (u *upgrade) drain(ctx context.Context, n node) error {
	for _, workload := range []string{"daemonset/kube-proxy", "deployment/coredns"} {
		if err := u.retryUnreachable(ctx, func() error { return u.rolledOut(ctx, workload) }); err != nil {
			return err
		}
	}
	if err := u.awaitProxies(ctx); err != nil {
		return err
	}
	return u.kubectlRetry(ctx, u.drainCommand(n, "--timeout="+(5*u.patience).String())...)
}

// probe is a Service that shows whether changes arrive.
const probe = "slipway-upgrade"

// awaitProxies creates a Service and waits until the kube-proxy of every node has written rules since. It cannot see whether they are
// that Service's. Controllers do nothing for a while when another process of theirs begins to lead, and a kube-proxy whose API server was
// away may wait before it asks again. Meanwhile nodes would go on sending requests to Pods that a drain has ended.
func (u *upgrade) awaitProxies(ctx context.Context) error {
	endpoints := func(there bool) error {
		return u.eventually(ctx, longPause, func(ctx context.Context) error {
			names, err := u.get(ctx, "{.items[*].metadata.name}", "endpointslices", "--selector=kubernetes.io/service-name="+probe)
			if err == nil && (names != "") != there {
				err = errors.New("the endpoints of a Service do not follow it: kube-controller-manager does not work")
			}
			return err
		})
	}
	remove := func() error {
		return u.kubectlRetry(ctx, "--namespace=kube-system", "delete", "service", probe, "--ignore-not-found")
	}
	if err := remove(); err != nil { // an upgrade that was killed may have left one
		return err
	}
	if err := endpoints(false); err != nil {
		return err
	}
	start := time.Now()
	err := u.retryUnreachable(ctx, func() error {
		return u.apply(ctx, object{
			"apiVersion": "v1", "kind": "Service", "metadata": object{"name": probe, "namespace": "kube-system"},
			"spec": object{"selector": object{"k8s-app": "kube-dns"}, "ports": []object{{"port": 53}}},
		})
	})
	if err != nil {
		return err
	}
	if err := endpoints(true); err != nil {
		return err
	}
	for _, n := range u.nodes {
		err := u.eventually(ctx, longPause, func(ctx context.Context) error { return u.proxyHasRules(ctx, n, start) })
		if err != nil {
			return fmt.Errorf("kube-proxy of %s: %w", n.name, err)
		}
	}
	return remove()
}

// proxyPort is where kube-proxy reports its health.
const proxyPort = "10256"

// proxyHasRules returns an error unless the kube-proxy of a node has written its rules since a time.
func (u *upgrade) proxyHasRules(ctx context.Context, n node, since time.Time) error {
	address := "http://" + net.JoinHostPort(u.address(n), proxyPort) + "/healthz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}} // no proxy
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return hasRules(answer, since)
}

// hasRules reads kube-proxy's answer. Being healthy is not enough: kube-proxy is so before it has written any rules. The answer has an
// entry for each IP family whose rules were written. Earlier versions of Kubernetes have none. They are trusted.
func hasRules(answer *http.Response, since time.Time) error {
	var health struct {
		Status *map[string]struct{ LastUpdated time.Time }
	}
	if err := json.NewDecoder(answer.Body).Decode(&health); err != nil {
		return err
	}
	switch {
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("its health is %s", answer.Status)
	case health.Status == nil:
		return nil
	}
	for _, family := range *health.Status {
		if family.LastUpdated.After(since) {
			return nil
		}
	}
	return fmt.Errorf("it has written no rules since %s", since.Format(time.TimeOnly))
}
