//go:build mage

package main

import (
	"context"
	"os"
	"strings"

	"github.com/magefile/mage/mg"
)

// Cluster has the targets for a cluster of the quick release.
type Cluster mg.Namespace

// Up boots a cluster from the quick release's tarballs, as root, with the flags in CLUSTER_FLAGS="--nodes 2".
func (Cluster) Up(ctx context.Context) error { return cluster(ctx, "up") }

// Down removes the cluster without a trace; CLUSTER_FLAGS="--name NAME" removes another.
func (Cluster) Down(ctx context.Context) error { return cluster(ctx, "down") }

// Verify checks whether the cluster works; CLUSTER_FLAGS="--only scheduler" runs some of the checks.
func (Cluster) Verify(ctx context.Context) error { return cluster(ctx, "verify") }

// Conformance runs upstream's conformance specs against the cluster; CLUSTER_FLAGS="--focus sig-node" runs some of them.
func Conformance(ctx context.Context) error { return cluster(ctx, "conformance") }

// TestE2eNode runs upstream's node conformance specs on the quick release's kubelet and container runtime; NODE_FLAGS="--focus Probing"
// runs some.
func TestE2eNode(ctx context.Context) error {
	return orSay(ctx, append([]string{"test-e2e-node"}, strings.Fields(os.Getenv("NODE_FLAGS"))...)...)
}

func cluster(ctx context.Context, command string) error {
	return orSay(ctx, append([]string{"cluster", command}, strings.Fields(os.Getenv("CLUSTER_FLAGS"))...)...)
}
