package verify

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
)

// parts are the components whose work a group of checks is about.
var parts = map[string][]string{
	"api":         {apiServer},
	"controllers": {controllerManager},
	"scheduler":   {scheduler},
	"services":    {kubeProxy, coreDNS},
	storageAddon:  {storageAddon},
	"metrics":     {metricsServer},
	"scale":       {scheduler},
}

// explain returns what the cluster reports about a check that failed: its Pods, events and logs, and the state of the
// cluster's own Pods. A question that is not answered has the reason instead.
func (e *env) explain(ctx context.Context, c Check) string {
	limited, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), 30*time.Second, fmt.Errorf("no answer"))
	defer cancel()
	var b strings.Builder
	show := func(lines int, args ...string) {
		out, err := e.runKubectl(limited, e.Kubeconfig(), "", args...)
		if err != nil {
			out += err.Error()
		}
		out = cmp.Or(strings.TrimSpace(out), "nothing") // a component without a log may be the explanation
		fmt.Fprintf(&b, "kubectl %s\n%s", strings.Join(args, " "), indent(last(lines, out)))
	}
	show(20, "get", "nodes,pods", "-o", "wide", "--request-timeout=5s")
	show(15, "get", "events", "--sort-by=.metadata.creationTimestamp", "--request-timeout=5s")
	about := parts[c.Group]
	if c.Group == components {
		about = []string{c.Name}
	} else {
		pods, _ := e.runKubectl(limited, e.Kubeconfig(), "", "get", "pods", "-o", "name", "--request-timeout=5s")
		names := strings.Fields(pods)
		for _, pod := range names[:min(len(names), 5)] {
			show(8, "logs", pod, "--all-containers", "--prefix", "--tail=8", "--request-timeout=5s")
		}
		show(20, "-n", "kube-system", "get", "pods", "--request-timeout=5s")
	}
	for _, name := range about {
		if label := podLabels[name]; label != "" {
			show(10, "-n", "kube-system", "logs", "-l", label, "--prefix", "--tail=10", "--request-timeout=5s")
		}
	}
	fmt.Fprintf(&b, "logs of the nodes: %s\n", e.NodeFile("NODE", "var-log"))
	return b.String()
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}

// last returns the last lines of a text.
func last(n int, text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
