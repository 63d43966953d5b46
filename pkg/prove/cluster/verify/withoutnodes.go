package verify

import (
	"context"
	"fmt"
	"slices"

	"slipway.build/pkg/prove/cluster"
)

// nodeless are the checks that a control plane without nodes can decide. They need no Pod that runs.
var nodeless = []string{
	components + "/" + apiServer, components + "/" + controllerManager, components + "/" + scheduler,
	"api/authentication", "api/authorization", "api/admission", "api/validation", "api/storage", "api/conflict", "api/watch",
	"api/selectors", "api/patch", "api/custom-resource", "api/conversion",
	"api/open-api", "api/apply-conflict", "api/bookmarks", "api/admission-policy", "api/webhooks",
	"controllers/garbage-collection", "controllers/namespace-deletion", "controllers/quota", "controllers/certificates",
}

// nodesFor says what the other checks of a group need nodes for.
var nodesFor = map[string]string{
	components:  "it runs in nodes",
	"api":       "it is about Pods that run",
	"scheduler": "Pods have to be placed",
	"kubelet":   "kubelets run there",
	"services":  "Services lead to Pods that run",
	"metrics":   "there is nothing to measure without",
}

// openWithoutNodes returns a control plane without nodes.
func openWithoutNodes(s *cluster.State) (*target, error) {
	if !s.Ready {
		return nil, fmt.Errorf("cluster %s %w", s.Name, cluster.ErrUnfinished)
	}
	kubectl, err := s.Kubectl()
	return &target{State: s, kubectl: kubectl, image: "example.invalid/never-pulled"}, err
}

// withoutNodes returns checks, of which those that need nodes are skipped.
func withoutNodes(checks []Check, try maker) ([]Check, maker) {
	checks = slices.Clone(checks)
	for i, c := range checks {
		if !slices.Contains(nodeless, c.Group+"/"+c.Name) {
			checks[i].Skips = true
		}
	}
	return checks, func(ctx context.Context, c Check) (string, error) {
		if slices.Contains(nodeless, c.Group+"/"+c.Name) {
			return try(ctx, c)
		}
		why := nodesFor[c.Group]
		if why == "" {
			why = "its Pods have to run"
		}
		return "", skip("needs nodes: " + why)
	}
}

// healthy waits until a program of a control plane without nodes says that it is. It holds no lease.
func (e *env) healthy(name string) {
	i := slices.IndexFunc(e.Processes, func(p cluster.Process) bool { return p.Name == name })
	if i < 0 {
		fail("the cluster has no %s", name)
	}
	e.until(func() {
		// The program made its certificate itself.
		e.kubectl("get", "--raw=/healthz", "--server="+e.Processes[i].Address, "--insecure-skip-tls-verify",
			"--request-timeout=5s")
	})
}
