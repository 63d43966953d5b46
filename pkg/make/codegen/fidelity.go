package codegen

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/make/upstream"
)

// A Fidelity check runs generators over the unpatched Kubernetes of a tree.
type Fidelity struct {
	Root       string // of the tree
	Components string // the folder of the module that requires Kubernetes
	Go         *toolchain.Go
	Progress   func(text string)
	Step       func(group string, took time.Duration)
}

// Compare generates the files of groups, all if none is named, and compares them with those that upstream published.
func (f Fidelity) Compare(ctx context.Context, groups []string) (*Comparison, error) {
	if err := CheckGroups(groups); err != nil {
		return nil, err
	}
	tools, err := NewTools(ctx, f.Root, f.Go, f.Progress)
	if err != nil {
		return nil, err
	}
	f.Progress("putting the repository of Kubernetes together")
	modules, err := upstream.Open(ctx, f.Go, f.Root, f.Components, upstream.Kubernetes)
	if err != nil {
		return nil, err
	}
	// The caller holds the tree's lock. What a killed run leaves there is removed when the next one starts.
	tmp := filepath.Join(f.Root, "_output", ".slipway", "tmp")
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(tmp, "compare-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	dir = filepath.Join(dir, "kubernetes")
	if err := modules.Copy(ctx, dir); err != nil {
		return nil, err
	}
	r := &Repository{Dir: dir, Tools: tools, Progress: f.Progress, Step: f.Step}
	return r.Compare(ctx, groups)
}
