package toolchain

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/needs"
)

// Tests here set the process's environment, which Find reads, so they do not run in parallel.

const pinned = "go1.99.1"

// install puts a shell script named go on PATH. It answers `go env` with a GOROOT whose Go says it is version, and `go mod
// download` with answer. It writes the environment of the latter, and its go.sum, to the file noted.
func install(t *testing.T, version, answer string) (goroot, noted string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the installed Go is a shell script")
	}
	goroot, noted = filepath.Join(t.TempDir(), "installed"), filepath.Join(t.TempDir(), "env")
	settings, err := json.Marshal(map[string]string{
		"GOROOT": goroot, "GOVERSION": version, "GOPROXY": "https://proxy.example.com", "GOMODCACHE": "/modules", "GOSUMDB": "",
	})
	if err != nil {
		t.Fatal(err)
	}
	writeGo(t, goroot, version)
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // where sums are remembered on Linux; elsewhere below HOME
	t.Setenv("HOME", t.TempDir())
	bin := t.TempDir()
	write(t, filepath.Join(bin, "go"), `#!/bin/sh
case "$1" in
env) echo '`+string(settings)+`' ;;
mod) env >'`+noted+`'; cat go.sum >>'`+noted+`'; cat "${0%/*}/answer" ;;
esac
`, 0o755)
	write(t, filepath.Join(bin, "answer"), answer, 0o644)
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return goroot, noted
}

// fetched makes a Go as `go mod download` leaves it, without executable programs, and returns the command's answer.
func fetched(t *testing.T) (goroot, sum, answer string) {
	t.Helper()
	goroot = t.TempDir()
	writeGo(t, goroot, pinned)
	sum = sumOf(t, goroot)
	data, err := json.Marshal(map[string]string{"Dir": goroot, "Sum": sum})
	if err != nil {
		t.Fatal(err)
	}
	return goroot, sum, string(data)
}

// writeGo writes a small Go. As in the module cache, its programs cannot be run.
func writeGo(t *testing.T, goroot, version string) {
	t.Helper()
	write(t, filepath.Join(goroot, "VERSION"), version+"\ntime 2026-11-20T00:00:00Z\n", 0o644)
	write(t, filepath.Join(goroot, "go.env"), "# Defaults.\nGOPROXY=https://modules.example.com,direct\nGOTOOLCHAIN=auto\n", 0o644)
	write(t, filepath.Join(goroot, "src", "fmt", "print.go"), "package fmt\n", 0o644)
	write(t, filepath.Join(goroot, "bin", "go"), "go", 0o444)
	write(t, filepath.Join(goroot, "pkg", "tool", "host", "compile"), "compile", 0o444)
}

// download changes the answer of the installed Go to `go mod download`.
func download(t *testing.T, answer string) {
	t.Helper()
	name, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(filepath.Dir(name), "answer"), answer, 0o644)
}

func write(t *testing.T, name, data string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), mode); err != nil {
		t.Fatal(err)
	}
}

func pin(sum string) Pin {
	return Pin{Version: pinned, Sums: map[string]string{host: sum}}
}

// sumOf returns the sum that a GOROOT has if it is as released.
func sumOf(t *testing.T, goroot string) string {
	t.Helper()
	g, err := newGoroot(goroot, pinned, host)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := g.sum()
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestInstalledGoIsUsedIfItIsThePinnedOne(t *testing.T) {
	goroot, noted := install(t, pinned, "")
	for range 2 { // the second time by the remembered sum
		g, err := Find(t.Context(), pin(sumOf(t, goroot)), func(text string) { t.Errorf("progress %q", text) })
		if err != nil {
			t.Fatal(err)
		}
		if g.Root != goroot || g.Version != pinned || g.ModCache != "/modules" {
			t.Errorf("found %s %s, module cache %s", g.Version, g.Root, g.ModCache)
		}
	}
	if _, err := os.Stat(noted); err == nil {
		t.Error("something was downloaded")
	}
}

func TestGoThatOnlyCallsItselfPinnedIsNotUsed(t *testing.T) {
	for name, edit := range map[string]func(t *testing.T, goroot string){
		"an edited library": func(t *testing.T, goroot string) {
			write(t, filepath.Join(goroot, "src", "fmt", "print.go"), "package fmt // patched\n", 0o644)
		},
		"an edited test": func(t *testing.T, goroot string) {
			write(t, filepath.Join(goroot, "src", "fmt", "testdata", "x_test.go"), "package fmt\n", 0o644)
		},
		"another file": func(t *testing.T, goroot string) {
			write(t, filepath.Join(goroot, "src", "fmt", "more.go"), "package fmt\n", 0o644)
		},
		"other defaults": func(t *testing.T, goroot string) {
			write(t, filepath.Join(goroot, "go.env"), "GOEXPERIMENT=jsonv2\n", 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			goroot, _ := install(t, pinned, "")
			p := pin(sumOf(t, goroot))
			if _, err := Find(t.Context(), p, nil); err != nil { // and remember that it is fine
				t.Fatal(err)
			}
			edit(t, goroot)
			other, _, answer := fetched(t)
			download(t, answer)
			var said string
			g, err := Find(t.Context(), p, func(text string) { said = text })
			if err != nil {
				t.Fatal(err)
			}
			if g.Root != other {
				t.Errorf("GOROOT %s", g.Root)
			}
			if want := "fetching " + pinned + " (the one in " + goroot + " is not as it was released)"; said != want {
				t.Errorf("progress %q, want %q", said, want)
			}
		})
	}
}

func TestGoWithoutSumIsUsedUncheckedWithAWarning(t *testing.T) {
	goroot, _ := install(t, pinned, "")
	var said string
	g, err := Find(t.Context(), Pin{Version: pinned}, func(text string) { said = text })
	if err != nil {
		t.Fatal(err)
	}
	if g.Root != goroot || !strings.HasSuffix(said, "is used unchecked") {
		t.Errorf("found %s; progress %q", g.Root, said)
	}
	write(t, filepath.Join(goroot, "go.env"), "GOFLAGS=-tags=vendor\n", 0o644)
	if _, err := Find(t.Context(), Pin{Version: pinned}, nil); err == nil || !strings.Contains(err.Error(), "go.env sets GOFLAGS") {
		t.Errorf("error %v for a Go with defaults of its own", err)
	}
}

func TestGoIsTooOldOnlyIfItCanBeCompared(t *testing.T) {
	t.Parallel()
	for installed, want := range map[string]bool{
		"go1.20.14": true, "go1.20.14 X:boringcrypto": true, "go1.9": true, "go1.20-acme": true,
		"go1.21": false, "go1.21.0": false, "go1.26.8 X:nodwarf5": false, "go1.26.8-acme": false, "go1.26.8 (Acme 1.26.8-1.el9)": false,
		"devel go1.27-0a1b2c3d Fri Nov 20 00:00:00 2026 +0000": false, "devel": false, "acme-1": false, "": false,
	} {
		if got := tooOld(installed); got != want {
			t.Errorf("too old is %v for %q", got, installed)
		}
	}
}

func TestOtherGoFetchesThePinnedOne(t *testing.T) {
	for _, installed := range []string{"go1.99.0", "go1.100.0", "go1.99.1-acme"} {
		t.Run(installed, func(t *testing.T) {
			goroot, sum, answer := fetched(t)
			_, noted := install(t, installed, answer)
			t.Setenv("GOFLAGS", "-mod=mod")
			var said string
			g, err := Find(t.Context(), pin(sum), func(text string) { said = text })
			if err != nil {
				t.Fatal(err)
			}
			if g.Root != goroot {
				t.Errorf("GOROOT %s", g.Root)
			}
			for _, program := range []string{"bin/go", "pkg/tool/host/compile"} {
				if info, err := os.Stat(filepath.Join(goroot, program)); err != nil || info.Mode()&0o111 != 0o111 {
					t.Errorf("%s cannot be run: %v, %v", program, info, err)
				}
			}
			if want := "fetching " + pinned + " (" + installed + " is installed)"; said != want {
				t.Errorf("progress %q, want %q", said, want)
			}
			env, err := os.ReadFile(noted)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(string(env), "\n")
			for _, want := range []string{"GOENV=off", "GOTOOLCHAIN=local", "GOPROXY=https://proxy.example.com",
				// Without these lines the go command would ask the checksum database.
				"golang.org/toolchain v0.0.1-" + pinned + "." + host + " " + sum,
				"golang.org/toolchain v0.0.1-" + pinned + "." + host + "/go.mod h1:8wlg68NqwW7eMnI1aABk/C2pDYXj8mrMY4TyRfiLeS0=",
			} {
				if !slices.Contains(lines, want) {
					t.Errorf("the download ran without %s:\n%s", want, env)
				}
			}
			if slices.Contains(lines, "GOSUMDB=off") {
				t.Errorf("the database that newer Go commands always ask was switched off:\n%s", env)
			}
			if strings.Contains(string(env), "GOFLAGS=") {
				t.Errorf("the download ran with the user's GOFLAGS:\n%s", env)
			}
		})
	}
}

func TestEditedGoOfTheModuleCacheIsNotUsed(t *testing.T) {
	goroot, sum, answer := fetched(t)
	install(t, "go1.99.0", answer)
	if _, err := Find(t.Context(), pin(sum), nil); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(goroot, "src", "fmt", "print.go"), "package fmt // patched\n", 0o644)
	want := goroot + " has changed since it was downloaded: remove it (go clean -modcache)"
	if _, err := Find(t.Context(), pin(sum), nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestGoThatCannotBeUsed(t *testing.T) {
	module := moduleOf(pinned, host)
	tests := []struct {
		name, download string
		pin            Pin
		want           string
	}{
		{"another sum", `{"Dir": "/modules/toolchain", "Sum": "h1:wrong="}`, pin("h1:right="),
			module + ": its sum is h1:wrong=, and release.yaml has h1:right="},
		{"no sum for this host", "", Pin{Version: pinned}, "release.yaml has no sum of " + pinned + " for " + host},
		{"nothing to fetch it from", `{"Error": "module lookup disabled"}`, pin("h1:right="),
			"module lookup disabled: make it reachable, or install " + pinned},
		{"an answer that makes no sense", "so what", pin("h1:right="), "go mod download " + module},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			install(t, "go1.99.0", tt.download)
			if _, err := Find(t.Context(), tt.pin, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestMissingGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Find(t.Context(), pin(""), nil)
	if err == nil || !strings.Contains(err.Error(), "go is not on PATH: install Go 1.21 or newer") {
		t.Errorf("error %v", err)
	}
}

// real finds the Go that runs this test.
func real(t *testing.T) *Go {
	t.Helper()
	g, err := Find(t.Context(), Pin{Version: runtime.Version()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// goEnv asks what settings a command of g runs with.
func goEnv(t *testing.T, g *Go, goos, goarch string, names ...string) map[string]string {
	t.Helper()
	out, err := g.Command(t.Context(), t.TempDir(), goos, goarch, append([]string{"env", "-json"}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	if err := json.Unmarshal(out, &settings); err != nil {
		t.Fatal(err)
	}
	return settings
}

func TestUsersSettingsDoNotReachACommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	write(t, file, "GOFLAGS=-tags=fromfile\nGOAMD64=v3\nGOARM64=v9.0\nCGO_ENABLED=1\nGOPROXY=https://proxy.example.com\n"+
		"GOPRIVATE=acme.example\n", 0o644)
	t.Setenv("GOENV", file)
	t.Setenv("GOEXPERIMENT", "nodwarf5")
	t.Setenv("GOWORK", "/elsewhere/go.work")
	t.Setenv("GOFLAGS", "-tags=fromenvironment")
	t.Setenv("GOOS", "plan9")
	t.Setenv("GODEBUG", "madvdontneed=1")
	for _, name := range []string{"GOPROXY", "GOPRIVATE"} {
		t.Setenv(name, "") // the file counts where the environment says nothing
	}

	got := goEnv(t, real(t), "linux", "arm64", "GOFLAGS", "GOAMD64", "GOARM64", "CGO_ENABLED", "GOEXPERIMENT", "GOWORK", "GOOS",
		"GOARCH", "GODEBUG", "GOTOOLCHAIN", "GOPROXY", "GOPRIVATE")
	want := map[string]string{
		"GOFLAGS": "", "GOAMD64": "v1", "GOARM64": "v8.0", "CGO_ENABLED": "0", "GOEXPERIMENT": "", "GOWORK": "off",
		"GOOS": "linux", "GOARCH": "arm64", "GODEBUG": "", "GOTOOLCHAIN": "local",
		// These say where modules come from, and are passed on.
		"GOPROXY": "https://proxy.example.com", "GOPRIVATE": "acme.example",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestModulesOfAFolderNeedNoNetwork(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	write(t, file, "GOPROXY=https://proxy.example.com\nGOPRIVATE=acme.example\n", 0o644)
	t.Setenv("GOENV", file)
	for _, name := range []string{"GOPROXY", "GOPRIVATE", "GONOPROXY", "GOSUMDB"} {
		t.Setenv(name, "")
	}
	g, err := Find(t.Context(), Pin{Version: runtime.Version(), Modules: "/a b/50%,/_inputs/go"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"GOPROXY": "file:///a%20b/50%25%2C/_inputs/go", "GOPRIVATE": "", "GONOPROXY": "none", "GOSUMDB": "off"}
	if diff := cmp.Diff(want, goEnv(t, g, "", "", "GOPROXY", "GOPRIVATE", "GONOPROXY", "GOSUMDB")); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestGOROOTOfAnotherGoIsNotUsed(t *testing.T) {
	g := real(t)
	t.Setenv("GOROOT", t.TempDir())
	if got := real(t).Root; got != g.Root {
		t.Errorf("GOROOT %s, want %s", got, g.Root)
	}
}

func TestCommandsRunOnTheHostByDefault(t *testing.T) {
	t.Setenv("GOOS", "plan9")
	got := goEnv(t, real(t), "", "", "GOOS", "GOARCH")
	if diff := cmp.Diff(map[string]string{"GOOS": runtime.GOOS, "GOARCH": runtime.GOARCH}, got); diff != "" {
		t.Errorf("platform (-want +got):\n%s", diff)
	}
}

func TestLevelsAreWhatDecidesBytes(t *testing.T) {
	t.Parallel()
	levels := Levels()
	for _, want := range []string{"CGO_ENABLED=0", "GOAMD64=v1", "GOEXPERIMENT=", "GODEBUG="} {
		if !slices.Contains(levels, want) {
			t.Errorf("%s is not among %q", want, levels)
		}
	}
	if slices.ContainsFunc(levels, func(l string) bool { return strings.HasPrefix(l, "LC_ALL") || strings.HasPrefix(l, "TZ") }) {
		t.Errorf("locale or time zone is among %q", levels)
	}
}

func TestGoThatFailsSaysWhy(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the installed Go is a shell script")
	}
	bin := t.TempDir()
	write(t, filepath.Join(bin, "go"), "#!/bin/sh\necho 'go: cannot find GOROOT directory' >&2\nexit 2\n", 0o755)
	t.Setenv("PATH", bin)
	_, err := Find(t.Context(), pin(""), nil)
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("cannot find GOROOT directory")) {
		t.Errorf("error %v", err)
	}
}

func TestFindNeedsNoModule(t *testing.T) {
	// A go.mod that asks for a newer Go must not keep the installed one from answering, in the working folder or in the
	// folder for temporary files.
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module newer\n\ngo 1.999\n", 0o644)
	t.Chdir(dir)
	t.Setenv("TMPDIR", dir)
	needs.Program(t, "go")
	if _, err := Find(t.Context(), Pin{Version: runtime.Version()}, nil); err != nil {
		t.Error(err)
	}
}

func TestProxiesInFoldersComeFirst(t *testing.T) {
	t.Parallel()
	g := &Go{Root: "/go", env: []string{"HOME=/root", "GOPROXY=https://proxy.example.com,direct"}}
	with := g.WithProxies("/src/a tree/proxy", "/src/other")
	value := func(g *Go) string {
		for _, kv := range g.Command(t.Context(), "", "", "").Env {
			if v, ok := strings.CutPrefix(kv, "GOPROXY="); ok {
				return v
			}
		}
		return ""
	}
	if got, want := value(with), "file:///src/a%20tree/proxy,file:///src/other,https://proxy.example.com,direct"; got != want {
		t.Errorf("GOPROXY=%s, want %s", got, want)
	}
	if got := value(with.WithoutProxies()); got != "https://proxy.example.com,direct" || with.WithoutProxies() != g {
		t.Errorf("without them GOPROXY=%s", got)
	}
	if g.WithProxies() != g || g.WithoutProxies() != g {
		t.Error("a Go without proxies is another one")
	}
}

func TestSettingsOfTheUserThatNoCompileGetsAreKnown(t *testing.T) {
	t.Parallel()
	other := "windows"
	if runtime.GOOS == other {
		other = "linux"
	}
	env := map[string]string{
		"GOFIPS140": "v1.0.0", "GOAMD64": "v3", "GODEBUG": "http2client=0", "CGO_ENABLED": "1", "GOOS": other,
		"GOARM64": "v8.0", "GOARCH": runtime.GOARCH, "GOWORK": "off", "GOEXPERIMENT": "", // as slipway has them
		"GOTOOLCHAIN": "auto", "GOENV": "/home/me/env", "GOTELEMETRY": "on", // which decide nothing
		"GOPROXY": "off", "GOFLAGS": "-tags=x", // which count
	}
	got := strings.Join(Ignored(func(name string) string { return env[name] }), " ")
	if want := "CGO_ENABLED=1 GODEBUG=http2client=0 GOFIPS140=v1.0.0 GOAMD64=v3 GOOS=" + other; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
