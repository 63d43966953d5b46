package tests

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/magefile/mage/sh"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/tree/catalog"
)

// GoTest tests the packages that WHAT= names, or else the given ones.
func GoTest(packages string, flags ...string) error {
	chosen, err := session.TestFlags(os.Getenv)
	if err != nil {
		return err
	}
	args := slices.Concat([]string{"test"}, flags, chosen)
	what := strings.Fields(os.Getenv("WHAT"))
	if len(what) == 0 {
		what = strings.Fields(packages)
	}
	args = append(args, what...)
	if DryRun() {
		return Say("go", args...)
	}
	env, err := likeMake()
	if err != nil {
		return err
	}
	return sh.RunWithV(env, "go", args...)
}

// likeMake returns the settings with which make compiles the toolchain, except for those that the environment has, so that tests link what
// it has compiled already.
func likeMake() (map[string]string, error) {
	c, err := catalog.Load(".")
	if err != nil {
		return nil, err
	}
	env := map[string]string{"GOTOOLCHAIN": c.Own().Version, "GOFLAGS": "-trimpath -buildvcs=false", "CGO_ENABLED": "0", "GOWORK": "off"}
	if strings.Contains(os.Getenv("KUBE_RACE"), "-race") {
		delete(env, "CGO_ENABLED") // the race detector needs cgo
	}
	for name := range env {
		if os.Getenv(name) != "" {
			delete(env, name)
		}
	}
	return env, nil
}

// Go runs the Go on PATH, with the user's settings, or, for the target slipway, with those of a release, which make sets.
func Go(args ...string) error {
	if DryRun() {
		return Say("go", args...)
	}
	return sh.RunWithV(map[string]string{"GOWORK": "off"}, "go", args...)
}

// Say prints what a target would do.
func Say(what string, args ...string) error {
	_, err := fmt.Println(what, strings.Join(args, " "))
	return err
}

// DryRun reports whether this is `make -n`: the first word of MAKEFLAGS holds make's single-letter options.
func DryRun() bool {
	letters, _, _ := strings.Cut(os.Getenv("MAKEFLAGS"), " ")
	return !strings.HasPrefix(letters, "-") && !strings.Contains(letters, "=") && strings.Contains(letters, "n")
}
