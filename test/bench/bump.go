package main

import (
	"context"
	"os/exec"
	"path/filepath"

	"slipway.build/pkg/make/project"
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
	c := contest{}
	c.ours = func() (Sample, error) {
		cmd := exec.CommandContext(ctx, filepath.Join(s.ours, project.Output, "bin", "slipway"), "bump", otherMinor)
		cmd.Dir, cmd.Env = s.ours, s.env
		return b.command(ctx, "slipway bump", cmd)
	}
	c.after = func() error {
		reset := exec.CommandContext(ctx, "git", "reset", "-q", "--hard")
		reset.Dir = s.ours
		return execute(ctx, reset, nil)
	}
	return c.warmly(b.n, row)
}
