package targets

import (
	"context"
	"os"
	"strings"
)

// ClusterUp boots a cluster from the quick release's tarballs, as root, with the flags in CLUSTER_FLAGS="--nodes 2".
func ClusterUp(ctx context.Context) error { return cluster(ctx, "up") }

// ClusterDown removes the cluster without a trace; CLUSTER_FLAGS="--name NAME" removes another.
func ClusterDown(ctx context.Context) error { return cluster(ctx, "down") }

// ClusterVerify checks whether the cluster works; CLUSTER_FLAGS="--only scheduler" runs some of the checks.
func ClusterVerify(ctx context.Context) error { return cluster(ctx, "verify") }

// Conformance runs upstream's conformance specs against the cluster; CLUSTER_FLAGS="--focus sig-node" runs some of them.
func Conformance(ctx context.Context) error { return cluster(ctx, "conformance") }

// TestE2eNode runs upstream's node conformance specs on the quick release's kubelet and container runtime. FOCUS= and SKIP= choose some,
// PARALLELISM= says how many run at once, and NODE_FLAGS= has other flags.
func TestE2eNode(ctx context.Context) error {
	args := append([]string{"test-e2e-node"}, strings.Fields(os.Getenv("NODE_FLAGS"))...)
	for _, v := range []struct{ variable, flag string }{{"FOCUS", "--focus="}, {"SKIP", "--skip="}, {"PARALLELISM", "--procs="}} {
		if value := os.Getenv(v.variable); value != "" {
			args = append(args, v.flag+value)
		}
	}
	return orSay(ctx, args...)
}

func cluster(ctx context.Context, command string) error {
	return orSay(ctx, append([]string{"cluster", command}, strings.Fields(os.Getenv("CLUSTER_FLAGS"))...)...)
}
