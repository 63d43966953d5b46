package bazel

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/mod/modfile"
)

// versions are those that a go.mod selects, by module path. One that is replaced has the version of its replacement, or none if
// that is a folder.
type versions map[string]string

// selectedVersions reads them: since Go 1.17 a go.mod names every module that packages are compiled from.
func selectedVersions(file string) (versions, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(file, data, nil)
	if err != nil {
		return nil, err
	}
	v := versions{mod.Module.Mod.Path: ""}
	for _, r := range mod.Require {
		v[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range mod.Replace {
		if _, ok := v[r.Old.Path]; ok && (r.Old.Version == "" || r.Old.Version == v[r.Old.Path]) {
			v[r.Old.Path] = r.New.Version
		}
	}
	return v, nil
}

// check compares what a binary says of itself with the versions, and with the Go.
func (v versions) check(info *debug.BuildInfo, goVersion string) error {
	if info.GoVersion != goVersion {
		return fmt.Errorf("Bazel compiled it with %s, and release.yaml pins %s: run make update, or remove what user.bazelrc sets", info.GoVersion, goVersion)
	}
	if len(info.Deps) == 0 {
		return errors.New("Bazel made a binary that does not say which modules are in it")
	}
	for _, dep := range info.Deps {
		got := dep.Version
		if dep.Replace != nil {
			got = dep.Replace.Version
		}
		want, ok := v[dep.Path]
		if !ok {
			return fmt.Errorf("Bazel linked %s %s, which cmd/go.mod does not name: run make update", dep.Path, got)
		}
		if want != "" && got != want {
			return fmt.Errorf("Bazel linked %s %s, and cmd/go.mod selects %s: run make update", dep.Path, got, want)
		}
	}
	return nil
}
