package verify

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
)

// parts are the labels of what does the work that a group of checks is about.
var parts = map[string][]string{
	"api":         {"component=kube-apiserver"},
	"controllers": {"component=kube-controller-manager"},
	"scheduler":   {"component=kube-scheduler"},
	"services":    {"k8s-app=kube-proxy", "k8s-app=kube-dns"},
	"metrics":     {"k8s-app=metrics-server"},
}

// explain is what the cluster says of a check that failed: its Pods, events and logs, and what of the cluster
// itself is not well. What cannot be had says why.
func (e *env) explain(ctx context.Context, c Check) string {
	limited, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), 30*time.Second, fmt.Errorf("no answer"))
	defer cancel()
	var b strings.Builder
	tell := func(lines int, args ...string) {
		out, err := e.kubectl(limited, args...)
		if err != nil {
			out += err.Error()
		}
		out = cmp.Or(strings.TrimSpace(out), "nothing") // that a part has no log may be what explains it
		fmt.Fprintf(&b, "kubectl %s\n%s", strings.Join(args, " "), indent(last(lines, out)))
	}
	tell(20, "get", "nodes,pods", "-o", "wide", "--request-timeout=5s")
	tell(15, "get", "events", "--sort-by=.metadata.creationTimestamp", "--request-timeout=5s")
	pods, err := e.kubectl(limited, "get", "pods", "-o", "name", "--request-timeout=5s")
	if err == nil {
		for n, pod := range strings.Fields(pods) {
			if n < 5 {
				tell(8, "logs", pod, "--all-containers", "--prefix", "--tail=8", "--request-timeout=5s")
			}
		}
	}
	tell(20, "-n", "kube-system", "get", "pods", "--request-timeout=5s")
	for _, label := range parts[c.Group] {
		tell(10, "-n", "kube-system", "logs", "-l", label, "--prefix", "--tail=10", "--request-timeout=5s")
	}
	fmt.Fprintf(&b, "logs of the nodes: %s\n", e.NodeFile("NODE", "var-log"))
	return b.String()
}

// last are the last lines of a text.
func last(n int, text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
