package main

import (
	"context"
	"os/exec"
	"path/filepath"

	"slipway.build/pkg/build/plan"
)

// otherMinor is a version of Kubernetes that the tree can move to.
const otherMinor = "v1.36.4"

// bump measures a move of the tree to another minor of Kubernetes. The first one, which fetches modules, does not count.
func bump(ctx context.Context, b *bench, row *Row) error {
	s, err := b.newSides(ctx, row.Name, false)
	if err != nil {
		return err
	}
	if err := execute(ctx, s.make(ctx, "slipway"), nil); err != nil {
		return err
	}
	for i := range b.n + 1 {
		cmd := exec.CommandContext(ctx, filepath.Join(s.ours, plan.Output, "bin", "slipway"), "bump", otherMinor)
		cmd.Dir, cmd.Env = s.ours, s.env
		sample, err := b.command(ctx, "slipway bump", cmd)
		if err != nil {
			return err
		}
		if i > 0 {
			row.Ours = append(row.Ours, sample)
		}
		reset := exec.CommandContext(ctx, "git", "reset", "-q", "--hard")
		reset.Dir = s.ours
		if err := execute(ctx, reset, nil); err != nil {
			return err
		}
	}
	return nil
}
