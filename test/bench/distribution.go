package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"slipway.build/pkg/make/project"
)

// A distributor lays out distributions by slipway's clone.
type distributor struct {
	*sides
	into string // the folder for distributions
	n    int    // of them
}

func newDistributor(ctx context.Context, b *bench, row *Row) (*distributor, error) {
	s, err := b.warmed(ctx)
	if err != nil {
		return nil, err
	}
	d := &distributor{sides: s, into: filepath.Join(b.dir, row.Name)}
	return d, errors.Join(os.MkdirAll(d.into, 0o777), execute(ctx, s.make(ctx, "slipway"), nil))
}

// init prepares a run of slipway init for a new folder.
func (d *distributor) init(ctx context.Context) (cmd *exec.Cmd, dir string) {
	d.n++
	dir = filepath.Join(d.into, strconv.Itoa(d.n))
	cmd = exec.CommandContext(ctx, filepath.Join(d.ours, project.Output, "bin", "slipway"),
		"init", dir, "--module", "bench.example/kubernetes")
	cmd.Env = append(d.env, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.example", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b.example")
	return cmd, dir
}

// in prepares a run of make in a distribution.
func (d *distributor) in(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := d.make(ctx, args...)
	cmd.Dir = dir
	return cmd
}

// inited measures slipway init.
func inited(ctx context.Context, b *bench, row *Row) error {
	d, err := newDistributor(ctx, b, row)
	if err != nil {
		return err
	}
	c := contest{}
	c.ours = func() (Sample, error) {
		cmd, _ := d.init(ctx)
		return b.command(ctx, "slipway init", cmd)
	}
	return c.warmly(b.n, row)
}

// firstMake measures the first run of make in another distribution, which needs the toolchain.
func firstMake(ctx context.Context, b *bench, row *Row) error {
	d, err := newDistributor(ctx, b, row)
	if err != nil {
		return err
	}
	var dir string
	c := contest{}
	c.before = func() error {
		var cmd *exec.Cmd
		cmd, dir = d.init(ctx)
		return execute(ctx, cmd, nil)
	}
	c.ours = func() (Sample, error) {
		return b.command(ctx, "make slipway in a new distribution", d.in(ctx, dir, "slipway"))
	}
	return c.warmly(b.n, row)
}

// distributionNoop measures a quick release with nothing to do in a distribution, and in slipway's own repository.
func distributionNoop(ctx context.Context, b *bench, row *Row) error {
	d, err := newDistributor(ctx, b, row)
	if err != nil {
		return err
	}
	cmd, dir := d.init(ctx)
	if err := execute(ctx, cmd, nil); err != nil {
		return err
	}
	if err := execute(ctx, d.in(ctx, dir, "quick-release"), nil); err != nil {
		return err
	}
	c := contest{}
	c.ours = func() (Sample, error) {
		return b.command(ctx, "make quick-release in a distribution, nothing to do", d.in(ctx, dir, "quick-release"))
	}
	c.theirs = func() (Sample, error) {
		return b.command(ctx, "make quick-release, nothing to do", d.make(ctx, "quick-release"))
	}
	return c.warmly(b.n, row)
}
