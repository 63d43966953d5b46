package toolchain

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// The code is in keys: it decides the environment of Go commands, and which modules they get.
var _ = recipe.Of("make/toolchain", sources)

// A Pin names the Go to use.
type Pin struct {
	Version string            // "go1.26.8"
	Sums    map[string]string // h1 sums of golang.org/toolchain@v0.0.1-VERSION.OS-ARCH by "OS-ARCH" of the host

	// Modules is a folder in the layout of a module proxy. If it is set, all modules come from there, and no network is
	// used, whatever the user's settings are. It decides no bytes.
	Modules string

	// Proxy is the URL of a module proxy that is asked before the user's. It decides no bytes, since sums do.
	Proxy string
}

// Go is the pinned Go, ready to run.
type Go struct {
	Version  string
	Root     string // GOROOT
	ModCache string // GOMODCACHE
	env      []string
	plain    *Go // see WithProxies
}

// handedOn lists the user's Go settings that the pinned Go gets unchanged: where modules come from, and where caches are. None
// of them changes an output's bytes. The Makefile and Bazel's repository rules pass on the same ones, by files that are
// generated from this list.
var handedOn = []string{
	"GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GONOPROXY", "GOINSECURE", "GOAUTH", "GOVCS",
	"GOCACHE", "GOCACHEPROG", "GOMODCACHE", "GOPATH",
}

// HandedOn returns the names of the user's Go settings that the pinned Go gets unchanged.
func HandedOn() []string { return slices.Clone(handedOn) }

// asked lists the settings that are read from the installed Go.
var asked = []string{"GOVERSION", "GOROOT"}

// ordinary lists the variables of the user's environment that any process needs: to find programs, credentials and
// certificates, and to reach the network.
var ordinary = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP", // Windows
}

// Find returns the pinned Go. If another Go is installed, Find takes the pinned one from the module cache, or fetches it, and
// reports that and the reason to progress unless it is nil.
func Find(ctx context.Context, pin Pin, progress func(string)) (*Go, error) {
	i, err := findInstalled(ctx, pin)
	if err != nil {
		return nil, err
	}
	defer i.close()
	g := &Go{Version: pin.Version, Root: i.root, ModCache: i.modCache, env: i.env}
	if progress == nil {
		progress = func(string) {}
	}
	want := pin.Sums[host]
	unlike := ""
	switch version := versionOf(g.Root); {
	case version != pin.Version:
		unlike = i.version + " is installed"
	case want == "":
		if err := checkDefaults(g.Root); err != nil {
			return nil, fmt.Errorf("the installed %s cannot be used: %w", pin.Version, err)
		}
		progress(fmt.Sprintf("release.yaml has no sum of %s for %s: %s is used unchecked", pin.Version, host, g.Root))
	default:
		unlike = unreleased(g.Root, pin.Version, host, want)
	}
	if unlike == "" {
		return g, nil
	}
	if want == "" {
		return nil, fmt.Errorf("%s, and release.yaml has no sum of %s for %s: install %s itself, or add the sum under go.sums",
			unlike, pin.Version, host, pin.Version)
	}
	if _, err := os.Stat(filepath.Join(i.modCache, filepath.FromSlash(moduleOf(pin.Version, host)))); err != nil {
		progress(fmt.Sprintf("fetching %s (%s)", pin.Version, unlike))
	}
	g.Root, err = i.fetch(ctx, pin, host)
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, unlike)
	}
	return g, nil
}

// An installed Go is the one on PATH, with its answers.
type installed struct {
	name     string // of its go command
	dir      string // to run it in, see outside
	version  string // `go env GOVERSION`
	root     string
	modCache string
	env      []string // to run any Go with
}

// findInstalled finds the Go on PATH and asks it for its settings. The caller closes it.
func findInstalled(ctx context.Context, pin Pin) (*installed, error) {
	name, err := exec.LookPath("go")
	if err != nil {
		return nil, fmt.Errorf("go is not on PATH: install Go 1.21 or newer, which fetches %s where needed: %w", pin.Version, err)
	}
	dir, err := outside()
	if err != nil {
		return nil, err
	}
	i := &installed{name: name, dir: dir}
	user, err := userSettings(ctx, name, dir)
	if err == nil && tooOld(user["GOVERSION"]) {
		err = fmt.Errorf("the installed Go is %s: install %s or newer, which fetches %s where needed", user["GOVERSION"], oldest, pin.Version)
	}
	if err != nil {
		i.close()
		return nil, err
	}
	i.version, i.root, i.modCache = user["GOVERSION"], user["GOROOT"], user["GOMODCACHE"]
	for _, k := range ordinary {
		if v, ok := os.LookupEnv(k); ok {
			i.env = append(i.env, k+"="+v)
		}
	}
	if pin.Modules != "" {
		maps.Copy(user, offline(pin.Modules))
	} else if pin.Proxy != "" {
		user["GOPROXY"] = pin.Proxy + "," + user["GOPROXY"]
	}
	for _, k := range handedOn {
		if user[k] != "" {
			i.env = append(i.env, k+"="+user[k])
		}
	}
	i.env = append(i.env, constructed...)
	return i, nil
}

// offline returns the settings with which all modules come from a folder. No go.sum has the sum of a toolchain, so the go
// command that switches to one asks the checksum database, unless the folder is the only proxy.
func offline(dir string) map[string]string {
	return map[string]string{
		"GOPROXY": proxyURL(dir),
		"GOSUMDB": "off", "GONOSUMDB": "", "GOPRIVATE": "", "GONOPROXY": "none",
	}
}

func (i *installed) close() { _ = os.RemoveAll(i.dir) }

// toolchainModule is the module as which Go is released.
const toolchainModule = "golang.org/toolchain"

// oldest is the first Go that knows the module golang.org/toolchain.
const oldest = "go1.21"

// tooOld reports whether a version from `go env GOVERSION` is known to be too old: "go1.20.8", perhaps with a vendor's or an
// experiment's name after a space. Versions that cannot be compared ("devel", a vendor's own) count as new enough.
func tooOld(installed string) bool {
	v, _, _ := strings.Cut(installed, " ")
	return version.IsValid(v) && version.Compare(v, oldest) < 0
}

const host = runtime.GOOS + "-" + runtime.GOARCH

// Host returns this machine's platform as sums are listed by: linux-amd64.
func Host() string { return host }

// moduleOf returns the module of a Go version for a host.
func moduleOf(version, host string) string {
	return toolchainModule + "@v0.0.1-" + version + "." + host
}

// outside makes a folder with a module of its own: the go line of any go.mod above it, such as a stray one in the folder for
// temporary files, could ask for another toolchain. The caller removes the folder.
func outside() (dir string, err error) {
	dir, err = os.MkdirTemp("", "slipway-go-")
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module slipway.invalid\n"), 0o666)
}

// constructed is the part of the environment that is the same for everyone. The architecture levels are Go's defaults. They
// are set because a user's GOAMD64=v3 would change every sum.
var constructed = []string{
	"GOENV=off", "GOWORK=off", "GOTOOLCHAIN=local", "GO111MODULE=on", "GOTELEMETRY=off",
	"CGO_ENABLED=0", "GOEXPERIMENT=", "GODEBUG=", "GOFIPS140=off",
	"GO386=sse2", "GOAMD64=v1", "GOARM=7", "GOARM64=v8.0", "GOPPC64=power8",
	"LC_ALL=C", "TZ=UTC",
}

// userSettings asks a go command for the settings in handedOn and asked.
func userSettings(ctx context.Context, name, dir string) (map[string]string, error) {
	var stderr bytes.Buffer
	c := exec.CommandContext(ctx, name, slices.Concat([]string{"env", "-json"}, handedOn, asked)...)
	c.Dir = dir
	// With an empty GOROOT, the installed Go finds its own and not that of another version.
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

// Command prepares a run of the go command in dir. Empty goos and goarch mean the host. The caller may append to the
// command's environment.
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

// Setting returns one of the user's settings that the go command gets, see [HandedOn]. It is the default if the user has set none.
func (g *Go) Setting(name string) string {
	for _, kv := range slices.Backward(g.env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// WithProxies returns a Go that looks for modules in some folders first, which are laid out as a module proxy is. They may be missing.
func (g *Go) WithProxies(folders ...string) *Go {
	if len(folders) == 0 {
		return g
	}
	var first []string
	for _, folder := range folders {
		first = append(first, proxyURL(folder))
	}
	more := *g
	more.env, more.plain = slices.Clone(g.env), g.WithoutProxies()
	const name = "GOPROXY="
	for i, kv := range more.env {
		if rest, ok := strings.CutPrefix(kv, name); ok { // always there: go env prints the default, too
			more.env[i] = name + strings.Join(append(first, rest), ",")
		}
	}
	return &more
}

// WithoutProxies returns the Go that WithProxies was called on.
func (g *Go) WithoutProxies() *Go {
	if g.plain != nil {
		return g.plain
	}
	return g
}

// WithWritableModules returns a Go whose module cache is dir, if nothing can be written to the user's, as in an image for CI.
func (g *Go) WithWritableModules(dir string) *Go {
	if writable(g.ModCache) {
		return g
	}
	return g.withModules(dir)
}

// withModules returns a Go whose module cache is dir. Modules are unpacked from the other cache, whose downloads are laid out as a module
// proxy is.
func (g *Go) withModules(dir string) *Go {
	own := g.WithProxies(filepath.Join(g.ModCache, "cache", "download"))
	own.ModCache, own.plain, own.env = dir, nil, append(own.env, "GOMODCACHE="+dir)
	return own
}

// writable reports whether files can be added to a module cache. The only way to find out is to add one.
func writable(modCache string) bool {
	dir := filepath.Join(modCache, "cache")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return false
	}
	f, err := os.CreateTemp(dir, "slipway-")
	if err != nil {
		return false
	}
	return errors.Join(f.Close(), os.Remove(f.Name())) == nil
}

// proxyURL returns the URL of a module proxy in a folder.
func proxyURL(folder string) string {
	folder = filepath.ToSlash(folder)
	if !strings.HasPrefix(folder, "/") {
		folder = "/" + folder // C:/folder
	}
	address := url.URL{Scheme: "file", Path: folder}
	return strings.ReplaceAll(address.String(), ",", "%2C") // a comma ends an address in GOPROXY
}

// ModuleDir returns the folder of a module that the one in dir requires. It is fetched if it is not in the module cache.
func (g *Go) ModuleDir(ctx context.Context, dir, path, goflags string) (string, error) {
	for _, fetch := range []bool{false, true} {
		if fetch {
			if _, err := g.output(ctx, dir, goflags, "mod", "download", path); err != nil {
				return "", err
			}
		}
		found, err := g.output(ctx, dir, goflags, "list", "-m", "-f", "{{.Dir}}", path)
		if err != nil {
			return "", err
		}
		if found != "" {
			return found, nil
		}
	}
	return "", fmt.Errorf("module %s: not in the module cache after it was fetched", path)
}

// output runs the go command and returns what it prints.
func (g *Go) output(ctx context.Context, dir, goflags string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	c := g.Command(ctx, dir, "", "", args...)
	c.Env = append(c.Env, "GOFLAGS="+goflags)
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// Constructed returns the part of a Go command's environment that is the same for everyone, wherever it runs.
func Constructed() []string { return slices.Clone(constructed) }

// Levels returns the settings of the constructed environment that decide a compile's output, for its key.
func Levels() []string {
	var levels []string
	for _, kv := range constructed {
		if strings.HasPrefix(kv, "GO") || strings.HasPrefix(kv, "CGO") {
			levels = append(levels, kv)
		}
	}
	return levels
}

// harmless lists the settings that slipway sets and that decide no output's bytes.
var harmless = []string{"GOENV", "GOTOOLCHAIN", "GO111MODULE", "GOTELEMETRY"}

// Ignored returns the user's settings, NAME=VALUE, that could decide bytes and that no compile gets, since slipway sets them itself:
// those of the environment, where they differ from slipway's.
func Ignored(getenv func(string) string) []string {
	var ignored []string
	for _, setting := range append(Levels(), "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH) {
		name, own, _ := strings.Cut(setting, "=")
		if value := getenv(name); value != "" && value != own && !slices.Contains(harmless, name) {
			ignored = append(ignored, name+"="+value)
		}
	}
	return ignored
}
