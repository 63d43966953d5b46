package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// fieldPatch adds a field to the types of Deployments, as people write it.
const fieldPatch = "test/integration/testdata/generated/change-window.patch"

// generatedNoop measures code generation in a tree with API packages whose code is up to date.
func generatedNoop(ctx context.Context, b *bench, row *Row) error {
	s, err := b.newSides(ctx, row.Name, false)
	if err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(s.ours, "cmd"), os.DirFS(filepath.Join(s.root, "test/integration/testdata/api"))); err != nil {
		return err
	}
	c := contest{ours: func() (Sample, error) { return b.command(ctx, "make generated_files", s.make(ctx, "generated_files")) }}
	return c.warmly(b.n, row) // the first run generates
}

// generatedField measures code generation after a patch adds another field to a type of Kubernetes. It is measured once.
func generatedField(ctx context.Context, b *bench, row *Row) error {
	s, err := b.newSides(ctx, row.Name, false)
	if err != nil {
		return err
	}
	patch, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(fieldPatch)))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.ours, "patches"), 0o755); err != nil {
		return err
	}
	for _, field := range []string{"hangeWindow", "hangeMoment"} { // the first run compiles generators
		text := strings.ReplaceAll(string(patch), "hangeWindow", field)
		if err := os.WriteFile(filepath.Join(s.ours, "patches", "0001-field.patch"), []byte(text), 0o644); err != nil {
			return err
		}
		sample, err := b.command(ctx, "make generated_files", s.make(ctx, "generated_files"))
		if err != nil {
			return err
		}
		row.Ours = []Sample{sample}
	}
	return nil
}
