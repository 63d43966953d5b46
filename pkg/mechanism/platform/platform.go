// Package platform names the operating systems and processors that Go builds programs for.
//
// What must never be in here: which platforms a release is made for (package catalog), and how to compile for one.
package platform

import (
	"embed"
	"runtime"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/mechanism/suggest"
)

//go:embed *.go
var sources embed.FS

// The code is in keys: releases name platforms as it writes them.
var _ = recipe.Of("mechanism/platform", sources)

// A Platform is an operating system and a processor, by Go's names.
type Platform struct{ OS, Arch string }

// String returns the platform as Go and Kubernetes write it: "linux/amd64".
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Dash returns the platform as it stands in names of files: "linux-amd64".
func (p Platform) Dash() string { return p.OS + "-" + p.Arch }

// Exe returns the file name of a program on the platform.
func (p Platform) Exe(name string) string {
	if p.OS == "windows" {
		return name + ".exe"
	}
	return name
}

// MarshalText makes a platform "linux/amd64" in JSON, as a value and as a key.
func (p Platform) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (p *Platform) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*p = parsed
	return nil
}

// Host returns the platform that this process runs on.
func Host() Platform { return Platform{runtime.GOOS, runtime.GOARCH} }

// Parse reads "linux/amd64". The error for a platform that Go can't build programs for is a *suggest.UnknownError.
func Parse(s string) (Platform, error) {
	os, arch, _ := strings.Cut(s, "/")
	if slices.Contains(archs[os], arch) {
		return Platform{os, arch}, nil
	}
	var names []string
	for _, p := range All() {
		names = append(names, p.String())
	}
	return Platform{}, suggest.Unknown("platform", s, names)
}

// All returns the platforms that Go can build for, sorted: those of `go tool dist list` on which programs can be linked
// without a C toolchain and run by themselves. That leaves out android, ios and WebAssembly.
func All() []Platform {
	var all []Platform
	for os, archs := range archs {
		for _, arch := range archs {
			all = append(all, Platform{os, arch})
		}
	}
	slices.SortFunc(all, func(a, b Platform) int { return strings.Compare(a.String(), b.String()) })
	return all
}

var archs = map[string][]string{
	"aix":       {"ppc64"},
	"darwin":    {"amd64", "arm64"},
	"dragonfly": {"amd64"},
	"freebsd":   {"386", "amd64", "arm", "arm64"},
	"illumos":   {"amd64"},
	"linux": {"386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le",
		"riscv64", "s390x"},
	"netbsd":  {"386", "amd64", "arm", "arm64"},
	"openbsd": {"386", "amd64", "arm", "arm64", "ppc64", "riscv64"},
	"plan9":   {"386", "amd64", "arm"},
	"solaris": {"amd64"},
	"windows": {"386", "amd64", "arm64"},
}
