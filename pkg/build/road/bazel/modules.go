package bazel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// A selection is what a module's go.mod and go.sum pin, by the path of each module.
type selection map[string]pin

// A pin is a module's version and sum, or those of what replaces it. A module that is a folder has neither.
type pin struct{ version, sum string }

// selected reads the selection of the module in a folder: since Go 1.17 a go.mod names every module that packages are compiled
// from.
func selected(dir string) (selection, error) {
	file := filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(file, data, nil)
	if err != nil {
		return nil, err
	}
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return nil, err
	}
	sumOf := map[module.Version]string{}
	for line := range strings.Lines(string(sums)) {
		if f := strings.Fields(line); len(f) == 3 {
			sumOf[module.Version{Path: f[0], Version: f[1]}] = f[2]
		}
	}
	s := selection{mod.Module.Mod.Path: {}}
	for _, r := range mod.Require {
		s[r.Mod.Path] = pin{r.Mod.Version, sumOf[r.Mod]}
	}
	for _, r := range mod.Replace {
		if was, ok := s[r.Old.Path]; ok && (r.Old.Version == "" || r.Old.Version == was.version) {
			s[r.Old.Path] = pin{r.New.Version, sumOf[r.New]}
		}
	}
	return s, nil
}

// check compares what a binary says of itself with the selection, and with the Go.
func (s selection) check(info *debug.BuildInfo, goVersion string) error {
	if info.GoVersion != goVersion {
		return fmt.Errorf("Bazel compiled it with %s, and release.yaml pins %s: run make update, or remove what user.bazelrc sets", info.GoVersion, goVersion)
	}
	if len(info.Deps) == 0 {
		return errors.New("Bazel made a binary that does not say which modules are in it")
	}
	for _, dep := range info.Deps {
		got := dep
		if dep.Replace != nil {
			got = dep.Replace
		}
		want, ok := s[dep.Path]
		switch {
		case !ok:
			return fmt.Errorf("Bazel linked %s %s, which cmd/go.mod does not name: run make update", dep.Path, got.Version)
		case want.version == "":
		case got.Version != want.version:
			return fmt.Errorf("Bazel linked %s %s, and cmd/go.mod selects %s: run make update", dep.Path, got.Version, want.version)
		case want.sum == "":
			return fmt.Errorf("cmd/go.sum has no sum of %s %s: go mod tidy in cmd adds it, and then run make update", dep.Path, got.Version)
		case got.Sum != want.sum:
			return fmt.Errorf("Bazel linked %s %s with the sum %s, and cmd/go.sum has %s: see which one is right, and then run make update",
				dep.Path, got.Version, got.Sum, want.sum)
		}
	}
	return nil
}
