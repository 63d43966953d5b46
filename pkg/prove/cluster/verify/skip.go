package verify

import (
	"context"
	"slices"
)

// A skip is the error of a check that cannot decide anything here. It says what the check needs.
type skip string

func (s skip) Error() string { return string(s) }

// severalNodes skips a check that one node passes whatever the cluster does.
func (e *env) severalNodes(why string) {
	if len(e.nodes) < 2 {
		noError(skip("needs two nodes: " + why))
	}
}

// nodeless are the checks that a control plane without nodes can decide. They need no Pod that runs.
var nodeless = []string{
	components + "/" + apiServer, components + "/" + controllerManager, components + "/" + scheduler,
	"api/authentication", "api/authorization", "api/admission", "api/validation", "api/storage", "api/conflict", "api/watch",
	"api/selectors", "api/patch", "api/custom-resource", "api/conversion",
	"api/open-api", "api/apply-conflict", "api/bookmarks", "api/admission-policy", "api/webhooks", "api/fips",
	"controllers/garbage-collection", "controllers/namespace-deletion", "controllers/quota", "controllers/certificates",
}

// nodesFor says what the other checks of a group need nodes for.
var nodesFor = map[string]string{
	components:    "it runs in nodes",
	"api":         "it is about Pods that run",
	"scheduler":   "Pods have to be placed",
	"kubelet":     "kubelets run there",
	"services":    "Services lead to Pods that run",
	storageAddon:  "volumes are on their disks",
	"metrics":     "there is nothing to measure without",
	"controllers": "its Pods have to run",
	"scale":       "hollow nodes are Pods",
	own:           "its program may use Pods",
}

// withoutNodes skips the checks that need nodes.
func withoutNodes(checks []Check, try tryFunc) ([]Check, tryFunc) {
	return skipping(checks, try, func(c Check) string {
		if slices.Contains(nodeless, c.String()) {
			return ""
		}
		return "needs nodes: " + nodesFor[c.Group]
	})
}

// withoutAddons skips the checks of addons that the cluster lacks, and those that need one.
func withoutAddons(checks []Check, try tryFunc, missing []string) ([]Check, tryFunc) {
	return skipping(checks, try, func(c Check) string {
		needs := c.Needs
		if c.Group == components {
			needs = append([]string{c.Name}, needs...)
		}
		for _, name := range needs {
			if slices.Contains(missing, name) {
				return "needs " + name + ", which the cluster does not have"
			}
		}
		return ""
	})
}

// skipping skips the checks for which why returns a reason.
func skipping(checks []Check, try tryFunc, why func(Check) string) ([]Check, tryFunc) {
	checks = slices.Clone(checks)
	for i, c := range checks {
		checks[i].Skips = c.Skips || why(c) != ""
	}
	return checks, func(ctx context.Context, c Check) (string, error) {
		if reason := why(c); reason != "" {
			return "", skip(reason)
		}
		return try(ctx, c)
	}
}
