package bazel

import (
	"errors"
	"fmt"

	"slipway.build/pkg/tree/module"
)

// check compares what a binary says of itself with what go.mod and go.sum of the components select, and with the pinned Go.
func check(b module.Binary, selected *module.Module, goVersion string) error {
	if b.Go != goVersion {
		return fmt.Errorf("Bazel compiled it with %s, and release.yaml pins %s: run make update, or remove what user.bazelrc sets", b.Go, goVersion)
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
			return fmt.Errorf("Bazel linked %s %s, which cmd/go.mod does not name: run make update", linked.Path, got.Version)
		case want.Folder() != "":
		case got.Version != want.Code().Version:
			return fmt.Errorf("Bazel linked %s %s, and cmd/go.mod selects %s: run make update", linked.Path, got.Version, want.Code().Version)
		case want.Sum == "":
			return fmt.Errorf("cmd/go.sum has no sum of %s %s: go mod tidy in cmd adds it, and then run make update", linked.Path, got.Version)
		case linked.Sum != want.Sum:
			return fmt.Errorf("Bazel linked %s %s with the sum %s, and cmd/go.sum has %s: see which one is right, and then run make update",
				linked.Path, got.Version, linked.Sum, want.Sum)
		}
	}
	return nil
}
