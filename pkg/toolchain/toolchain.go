// Package toolchain finds the Go that a release is pinned to, and runs it in an environment in which nothing
// of the user's can change a byte of what it makes.
//
// The pinned version comes from release.yaml. Where the installed Go is that very version it is used; an
// older or newer one only fetches the pinned one, as the module golang.org/toolchain, whose content is
// checked against the sum in release.yaml (go.sum cannot hold it: the go command looks for a toolchain's
// sum in the checksum database alone, which may be switched off).
//
// What the user has set to reach modules (GOPROXY, GOSUMDB, GOPRIVATE, …, by environment or by go/env file)
// is read first and handed on, because it decides where bytes come from and never which they are.
package toolchain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// A Pin names the Go to use.
type Pin struct {
	Version string            // "go1.26.8"
	Sums    map[string]string // h1 sums of golang.org/toolchain@v0.0.1-VERSION.OS-ARCH by "OS-ARCH" of the host
}

// Go is the pinned Go, ready to run.
type Go struct {
	Version  string
	Root     string // GOROOT
	ModCache string // GOMODCACHE
	env      []string
}

// settings are the user's Go settings that are handed on. None of them can change an output's bytes.
var settings = []string{
	"GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GONOPROXY", "GOINSECURE", "GOAUTH", "GOVCS",
	"GOCACHE", "GOMODCACHE", "GOPATH", "GOVERSION", "GOROOT",
}

// ordinary are the variables of the user's environment that processes need to work at all: to find programs,
// credentials and certificates, and to reach the network.
var ordinary = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP", // Windows
}

// Find returns the pinned Go, fetching it if the installed one is another. It says on progress, if not nil,
// when it does that.
func Find(ctx context.Context, pin Pin, progress func(string)) (*Go, error) {
	name, err := exec.LookPath("go")
	if err != nil {
		return nil, fmt.Errorf("go is not on PATH: install Go 1.21 or newer (%s is fetched by it where needed): %w", pin.Version, err)
	}
	user, err := userSettings(ctx, name)
	if err != nil {
		return nil, err
	}
	if oldest := "go1.21"; version.Compare(user["GOVERSION"], oldest) < 0 {
		return nil, fmt.Errorf("the installed Go is %s: install %s or newer (%s is fetched by it where needed)", user["GOVERSION"], oldest, pin.Version)
	}
	g := &Go{Version: pin.Version, Root: user["GOROOT"], ModCache: user["GOMODCACHE"]}
	for _, k := range ordinary {
		if v, ok := os.LookupEnv(k); ok {
			g.env = append(g.env, k+"="+v)
		}
	}
	for _, k := range settings {
		if k != "GOVERSION" && k != "GOROOT" && user[k] != "" {
			g.env = append(g.env, k+"="+user[k])
		}
	}
	g.env = append(g.env, constructed...)
	if released(g.Root) == pin.Version {
		return g, nil
	}
	if progress != nil {
		progress(fmt.Sprintf("fetching %s (%s is installed)", pin.Version, user["GOVERSION"]))
	}
	g.Root, err = fetch(ctx, name, pin, g.env)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// constructed is the part of the environment that is the same for everyone. The architecture levels are
// Go's own defaults, written out: a user's GOAMD64=v3 would change every sum.
var constructed = []string{
	"GOENV=off", "GOWORK=off", "GOTOOLCHAIN=local", "GO111MODULE=on", "GOTELEMETRY=off",
	"CGO_ENABLED=0", "GOEXPERIMENT=", "GODEBUG=", "GOFIPS140=off",
	"GO386=sse2", "GOAMD64=v1", "GOARM=7", "GOARM64=v8.0", "GOPPC64=power8",
	"LC_ALL=C", "TZ=UTC",
}

func userSettings(ctx context.Context, name string) (map[string]string, error) {
	var stderr bytes.Buffer
	c := exec.CommandContext(ctx, name, append([]string{"env", "-json"}, settings...)...)
	c.Dir = os.TempDir() // outside of any module, whose go line could ask for another toolchain
	// An empty GOROOT counts as unset: the installed Go then finds its own, not that of another version.
	c.Env = append(os.Environ(), "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=", "GOROOT=")
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	user := map[string]string{}
	if err := json.Unmarshal(out, &user); err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	return user, nil
}

// released is the version that the Go in a GOROOT says it is: what counts is the tree that compiles.
func released(root string) string {
	data, _ := os.ReadFile(filepath.Join(root, "VERSION")) // what was built from a checkout has none, and is no release
	version, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(version)
}

// fetch downloads the pinned Go with the installed one, and returns its GOROOT.
func fetch(ctx context.Context, name string, pin Pin, env []string) (string, error) {
	host := runtime.GOOS + "-" + runtime.GOARCH
	want := pin.Sums[host]
	if want == "" {
		return "", fmt.Errorf("release.yaml has no sum of %s for %s: install %s itself, or add the sum under go.sums", pin.Version, host, pin.Version)
	}
	module := "golang.org/toolchain@v0.0.1-" + pin.Version + "." + host
	c := exec.CommandContext(ctx, name, "mod", "download", "-json", module)
	c.Dir = os.TempDir()
	c.Env = append(env, "GOSUMDB=off") // checked below, against a sum that is reviewed with the sources
	out, runErr := c.Output()
	var info struct{ Dir, Sum, Error string }
	if err := json.Unmarshal(out, &info); err != nil {
		return "", fmt.Errorf("go mod download %s: %w", module, errors.Join(runErr, err))
	}
	if info.Error != "" {
		return "", fmt.Errorf("go mod download %s: %s: make it reachable, or install %s", module, info.Error, pin.Version)
	}
	if info.Sum != want {
		return "", fmt.Errorf("%s: its sum is %s, release.yaml has %s: it is not used", module, info.Sum, want)
	}
	return info.Dir, nil
}

// Command prepares a run of the go command in dir, for a platform ("" and "": the host) and with more
// environment.
func (g *Go) Command(ctx context.Context, dir, goos, goarch string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(g.Root, "bin", "go"), args...)
	c.Dir = dir
	c.Env = append(c.Env, g.env...)
	c.Env = append(c.Env, "GOROOT="+g.Root)
	if goos != "" {
		c.Env = append(c.Env, "GOOS="+goos, "GOARCH="+goarch)
	}
	return c
}

// Levels are the settings of the constructed environment that decide what a compile makes, for its key.
func Levels() []string {
	var levels []string
	for _, kv := range constructed {
		if strings.HasPrefix(kv, "GO") || strings.HasPrefix(kv, "CGO") {
			levels = append(levels, kv)
		}
	}
	return levels
}
