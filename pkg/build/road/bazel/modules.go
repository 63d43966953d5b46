package bazel

import (
	"errors"
	"fmt"

	"slipway.build/pkg/tree/module"
)

// ErrStale is in the errors about a binary that differs from what go.mod, go.sum and release.yaml select: Bazel's generated files or
// user.bazelrc select something else.
var ErrStale = errors.New("generated files of Bazel are out of date")

// check compares a binary's build information with what go.mod and go.sum of the components select, and with the pinned Go.
func check(b module.Binary, selected *module.Module, goVersion string) error {
	if b.Go != goVersion {
		return fmt.Errorf("Bazel compiled it with %s, but release.yaml pins %s: %w, or user.bazelrc sets another", b.Go, goVersion, ErrStale)
	}
	if len(b.Modules) == 0 {
		return errors.New("the binary from Bazel does not say which modules are in it")
	}
	for _, linked := range b.Modules {
		got := linked.Code()
		want, ok := selected.Require(linked.Path)
		switch {
		case linked.Path == selected.Path:
		case !ok:
			return fmt.Errorf("Bazel linked %s %s, which cmd/go.mod does not name: %w", linked.Path, got.Version, ErrStale)
		case want.Folder() != "":
		case got.Version != want.Code().Version:
			return fmt.Errorf("Bazel linked %s %s, but cmd/go.mod selects %s: %w", linked.Path, got.Version, want.Code().Version, ErrStale)
		case want.Sum == "":
			return fmt.Errorf("cmd/go.sum has no sum of %s %s, which go mod tidy adds: %w", linked.Path, got.Version, ErrStale)
		case linked.Sum != want.Sum:
			return fmt.Errorf("Bazel linked %s %s with the sum %s, but cmd/go.sum has %s: one of them is wrong, or %w",
				linked.Path, got.Version, linked.Sum, want.Sum, ErrStale)
		}
	}
	return nil
}
