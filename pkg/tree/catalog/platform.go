package catalog

import (
	"runtime"
	"strings"
)

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
	parsed, err := ParsePlatform(string(text))
	if err != nil {
		return err
	}
	*p = parsed
	return nil
}

// Host returns the platform this process runs on.
func Host() Platform { return Platform{runtime.GOOS, runtime.GOARCH} }

// ParsePlatform reads "linux/amd64". The error for a platform that Go can't build programs for is an *UnknownError.
func ParsePlatform(s string) (Platform, error) {
	os, arch, _ := strings.Cut(s, "/")
	for _, known := range goArchs[os] {
		if arch == known {
			return Platform{os, arch}, nil
		}
	}
	return Platform{}, &UnknownError{Kind: "platform", Name: s, Near: near(s, goPlatforms())}
}

// goArchs holds the platforms of `go tool dist list` on which programs can be linked without a C toolchain and run
// by themselves; that leaves out android, ios and WebAssembly.
var goArchs = map[string][]string{
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

func goPlatforms() []string {
	var names []string
	for os, archs := range goArchs {
		for _, arch := range archs {
			names = append(names, os+"/"+arch)
		}
	}
	return names
}
