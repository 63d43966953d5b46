package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/release/sbom"
)

// documents measures a quick release of which only the bills of materials and the provenance are gone.
func documents(ctx context.Context, b *bench, row *Row) error {
	s, err := b.warmed(ctx)
	if err != nil {
		return err
	}
	folder := filepath.Join(s.ours, filepath.FromSlash(project.Tars))
	made, err := release.Read(folder)
	if err != nil {
		return err
	}
	gone := []string{sbom.Folder, provenance.File, provenance.Folder}
	for _, a := range made.Artifacts {
		if a.Kind == release.SBOM {
			gone = append(gone, a.Path)
		}
	}
	c := contest{}
	c.before = func() error {
		for _, name := range gone {
			if err := os.RemoveAll(filepath.Join(folder, filepath.FromSlash(name))); err != nil {
				return err
			}
		}
		return nil
	}
	c.ours = func() (Sample, error) {
		return b.command(ctx, "make quick-release without its documents", s.make(ctx, "quick-release"))
	}
	return c.rounds(b.n, row)
}

// verified measures slipway verify of a quick release, and sha256sum of the same files.
func verified(ctx context.Context, b *bench, row *Row) error {
	s, err := b.warmed(ctx)
	if err != nil {
		return err
	}
	program := filepath.Join(b.dir, "slipway")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir, build.Env = s.ours, s.env
	if err := execute(ctx, build, nil); err != nil {
		return err
	}
	run := func(name string, args ...string) func() (Sample, error) {
		return func() (Sample, error) {
			cmd := exec.CommandContext(ctx, args[0], args[1:]...)
			cmd.Dir = filepath.Join(s.ours, filepath.FromSlash(project.Tars))
			return b.command(ctx, name, cmd)
		}
	}
	c := contest{ours: run("slipway verify", program, "verify", "."), theirs: run("sha256sum", "sha256sum", "--check",
		"--quiet", "SHA256SUMS")}
	// Unmeasured first: whoever comes first reads from the disk.
	return c.warmly(b.n, row)
}
