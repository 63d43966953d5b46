package bazel

import (
	"errors"
	"fmt"

	"slipway.build/pkg/tree/module"
)

// ErrStale is in the errors about a binary that is not what go.mod, go.sum and release.yaml select: Bazel's generated files, or
// user.bazelrc, say something else.
var ErrStale = errors.New("Bazel's generated files are out of date")

// check compares what a binary says of itself with what go.mod and go.sum of the components select, and with the pinned Go.
func check(b module.Binary, selected *module.Module, goVersion string) error {
	if b.Go != goVersion {
		return fmt.Errorf("Bazel compiled it with %s, and release.yaml pins %s: %w, or user.bazelrc sets another", b.Go, goVersion, ErrStale)
	}
	if len(b.Modules) == 0 {
		return errors.New("Bazel made a binary that does not say which modules are in it")
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
			return fmt.Errorf("Bazel linked %s %s, and cmd/go.mod selects %s: %w", linked.Path, got.Version, want.Code().Version, ErrStale)
		case want.Sum == "":
			return fmt.Errorf("cmd/go.sum has no sum of %s %s, which go mod tidy adds: %w", linked.Path, got.Version, ErrStale)
		case linked.Sum != want.Sum:
			return fmt.Errorf("Bazel linked %s %s with the sum %s, and cmd/go.sum has %s: one of them is wrong, or %w",
				linked.Path, got.Version, linked.Sum, want.Sum, ErrStale)
		}
	}
	return nil
}
