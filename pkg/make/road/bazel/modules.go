package bazel

import (
	"errors"
	"fmt"
	"strings"

	"slipway.build/pkg/make/road"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/tree/module"
)

// ErrStale is in the errors about a binary that differs from what go.mod, go.sum and release.yaml select: Bazel's generated files or
// user.bazelrc select something else.
var ErrStale = errors.New("generated files of Bazel are out of date")

// checkBuild returns an error if a binary has other bytes than those of go build because of how it was made. The linker then leaves the
// build ID of rules_go in it, which has fewer parts.
func checkBuild(b module.Binary, id string, tags []string) error {
	what := ""
	for _, level := range toolchain.Levels() {
		if name, value, _ := strings.Cut(level, "="); b.Settings[name] != "" && b.Settings[name] != value {
			what = name + "=" + b.Settings[name]
		}
	}
	switch s := b.Settings; {
	case s["CGO_ENABLED"] != "0":
		what = "cgo"
	case s["-race"] == "true":
		what = "race detection"
	case s["-cover"] == "true":
		what = "coverage"
	case s["-msan"] == "true" || s["-asan"] == "true":
		what = "a sanitizer"
	case what != "":
	case s["-buildmode"] != "exe":
		what = "the build mode " + s["-buildmode"]
	case s["-tags"] != strings.Join(tags, ","):
		what = "the build tags " + s["-tags"]
	case strings.Count(id, "/") != 3:
		what = "a compiler or a linker with other flags"
	default:
		return nil
	}
	return &road.UnsupportedError{Road: Info.Name, What: what, Why: "binaries would not be those of go build; remove it from user.bazelrc, " +
		"or run Bazel itself"}
}

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
			if linked.Replace.Path != want.Replace.Path {
				return fmt.Errorf("Bazel linked %s %s, but cmd/go.mod replaces it with %s: %w", linked.Path, got.Version, want.Replace.Path, ErrStale)
			}
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
