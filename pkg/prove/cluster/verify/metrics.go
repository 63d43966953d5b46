package verify

import (
	"context"
	"fmt"
	"strings"
)

// What metrics-server measures.
var metricsChecks = group("metrics", []string{kubelet, kubeProxy, metricsServer},
	Check{Name: "nodes", run: metricsOfNodes},
	Check{Name: "pods", Needs: []string{scheduler}, run: metricsOfPods},
	Check{Name: "autoscaling", Long: true, Needs: []string{scheduler}, run: autoscaling},
)

// kubectl top shows how busy each node is.
func metricsOfNodes(ctx context.Context, e *env) error {
	return until(ctx, func() error {
		rows, err := e.top(ctx, "nodes")
		if err != nil {
			return err
		}
		for _, n := range e.nodes {
			row := rows[n.Name]
			if len(row) != 5 || !strings.HasSuffix(row[1], "m") || !strings.HasSuffix(row[3], "Mi") || row[3] == "0Mi" {
				return fmt.Errorf("for node %s it prints %q", n.Name, row)
			}
		}
		return nil
	})
}

// kubectl top shows the memory that a Pod has allocated.
func metricsOfPods(ctx context.Context, e *env) error {
	if err := e.apply(ctx, pod("large", "allocate 100")); err != nil {
		return err
	}
	if err := e.ready(ctx, "large"); err != nil {
		return err
	}
	return until(ctx, func() error {
		rows, err := e.top(ctx, "pods")
		if err != nil {
			return err
		}
		var memory int
		if row := rows["large"]; len(row) == 3 {
			_, err = fmt.Sscanf(row[2], "%dMi", &memory)
		}
		if err != nil || memory < 100 || memory > 200 {
			return fmt.Errorf("for a Pod that uses 100Mi it prints %q", rows["large"])
		}
		return nil
	})
}

// top returns the rows of kubectl top by their first cell.
func (e *env) top(ctx context.Context, what string) (map[string][]string, error) {
	said, err := e.kubectl(ctx, "top", what, "--no-headers")
	rows := map[string][]string{}
	for line := range strings.Lines(said) {
		if cells := strings.Fields(line); len(cells) > 0 {
			rows[cells[0]] = cells
		}
	}
	return rows, err
}
