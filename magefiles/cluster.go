//go:build mage

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// ClusterUp boots a cluster from the quick release's tarballs, as root; CLUSTER_FLAGS="--nodes 2" are handed on.
func ClusterUp(ctx context.Context) error { return cluster(ctx, "up") }

// ClusterDown removes the cluster and everything of it; CLUSTER_FLAGS="--name NAME" removes another.
func ClusterDown(ctx context.Context) error { return cluster(ctx, "down") }

// ClusterVerify looks whether the cluster works; CLUSTER_FLAGS="--only scheduler" makes some of its checks.
func ClusterVerify(ctx context.Context) error { return cluster(ctx, "verify") }

// Conformance runs upstream's conformance specs against the cluster; CLUSTER_FLAGS="--focus sig-node" runs some of them.
func Conformance(ctx context.Context) error { return cluster(ctx, "conformance") }

// cluster runs a subcommand of slipway cluster.
func cluster(ctx context.Context, command string) error {
	args := append([]string{command}, strings.Fields(os.Getenv("CLUSTER_FLAGS"))...)
	if dryRun() {
		fmt.Println("slipway cluster", strings.Join(args, " "))
		return nil
	}
	return slipway(ctx, "cluster", args...)
}
