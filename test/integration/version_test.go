//go:build integration

package integration

import (
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// A stamp is the output of slipway version --json.
type stamp struct {
	GitVersion, GitCommit, GitTreeState, Major, Minor, BuildDate, ImageTag, GoVersion string
}

func (tr tree) stamp(t *testing.T) stamp {
	t.Helper()
	var s stamp
	if err := json.Unmarshal([]byte(tr.slipway(t, "version", "--json").ok(t).stdout), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBinariesPrintTheirVersion(t *testing.T) {
	r := baseline(t)
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet"} {
		got := run(t, r.dir, nil, r.path(hostBin(name)), "--version").ok(t).stdout
		if want := "Kubernetes " + r.version + "\n"; got != want {
			t.Errorf("%s --version prints %q, want %q", name, got, want)
		}
	}
	s := r.stamp(t)
	var want strings.Builder
	fmt.Fprintf(&want, "clientVersion:\n")
	for _, f := range [][2]string{
		{"buildDate", quoted(s.BuildDate)}, {"compiler", "gc"}, {"gitCommit", s.GitCommit}, {"gitTreeState", s.GitTreeState},
		{"gitVersion", s.GitVersion}, {"goVersion", s.GoVersion}, {"major", quoted(s.Major)}, {"minor", quoted(s.Minor)},
		{"platform", "linux/" + runtime.GOARCH},
	} {
		fmt.Fprintf(&want, "  %s: %s\n", f[0], f[1])
	}
	for _, args := range [][]string{{"kubectl", "version", "--client", "-o", "yaml"}, {"kubeadm", "version", "-o", "yaml"}} {
		got := run(t, r.dir, nil, r.path(hostBin(args[0])), args[1:]...).ok(t).stdout
		if !strings.HasPrefix(got, want.String()) {
			t.Errorf("%s prints\n%swant\n%s", strings.Join(args, " "), got, want.String())
		}
	}
}

func quoted(s string) string { return `"` + s + `"` }

func TestBinariesStart(t *testing.T) {
	r := baseline(t)
	for _, name := range serverBinaries {
		got := run(t, r.dir, nil, r.path(hostBin(name)), "--help").ok(t)
		if name != "kubectl" && !strings.Contains(got.stdout+got.stderr, "-v, --v") && name != "kube-log-runner" && name != "kubeadm" {
			t.Errorf("%s --help does not list its flags: %v", name, got)
		}
	}
}

func TestBinariesAreStaticAndCompiledAsUpstreamDoes(t *testing.T) {
	r := baseline(t)
	for _, name := range serverBinaries {
		info, err := buildinfo.ReadFile(r.path(hostBin(name)))
		if err != nil {
			t.Fatal(err)
		}
		if want := r.stamp(t).GoVersion; info.GoVersion != want {
			t.Errorf("%s is compiled by %s, want %s", name, info.GoVersion, want)
		}
		got := buildSettings(t, r.path(hostBin(name)))
		for key, value := range got {
			if strings.HasPrefix(key, "vcs") {
				t.Errorf("%s names its repository: %s=%s", name, key, value)
			}
		}
		want := map[string]string{
			"-trimpath": "true", "-tags": "selinux,notest,grpcnotrace", "CGO_ENABLED": "0", "GOOS": "linux", "GOARCH": runtime.GOARCH,
		}
		if runtime.GOARCH == "amd64" {
			want["GOAMD64"] = "v1"
		}
		for key, value := range want {
			if got[key] != value {
				t.Errorf("%s is compiled with %s=%q, want %q", name, key, got[key], value)
			}
		}
		if why := dynamic(t, r.path(hostBin(name))); why != "" {
			t.Errorf("%s is not static: it has %s", name, why)
		}
		data, err := os.ReadFile(r.path(hostBin(name)))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{r.dir, goEnv(t, "GOMODCACHE"), goEnv(t, "GOCACHE")} {
			if strings.Contains(string(data), path) {
				t.Errorf("%s names the folder %s", name, path)
			}
		}
	}
}

// buildSettings returns the settings that a program was compiled with.
func buildSettings(t *testing.T, program string) map[string]string {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return settings
}

// dynamic returns what in an ELF file needs a loader, or has symbols.
func dynamic(t *testing.T, name string) string {
	t.Helper()
	f, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			return p.Type.String()
		}
	}
	if f.Section(".symtab") != nil {
		return "symbols"
	}
	return ""
}

// A kubelet does a lot before it connects to its container runtime: flags, feature gates, mounts, cgroups, kernel settings. If it
// gets that far, it was built right.
func TestKubeletStartsUpToItsContainerRuntime(t *testing.T) {
	needRoot(t)
	need(t, "unshare", "util-linux")
	clusterLane.join(t) // it changes settings of the kernel, which clusters do, too
	r := baseline(t)
	keepSysctls(t, "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
		"kernel/keys/root_maxbytes")
	const state = "/var/lib/kubelet"
	if _, err := os.Stat(state); os.IsNotExist(err) {
		if err := os.MkdirAll(state, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(state) })
	}
	script := `mount -t tmpfs tmpfs ` + state + ` && exec timeout 60 "$0" "$@"`
	got := run(t, t.TempDir(), nil, "unshare", "--mount", "--net", "sh", "-c", script, r.path(hostBin("kubelet")),
		"--container-runtime-endpoint=unix:///run/no-such-runtime.sock", "--fail-cgroupv1=false", "--fail-swap-on=false")
	if got.code == 0 || !strings.Contains(got.stderr, "validate CRI v1 runtime API") {
		t.Errorf("the kubelet did not get as far as its container runtime: %v", got)
	}
	if !strings.Contains(got.stderr, r.version) {
		t.Errorf("the kubelet does not say that it is %s: %v", r.version, got)
	}
}

// keepSysctls restores kernel settings after a test.
func keepSysctls(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		file := filepath.Join("/proc/sys", name)
		before, err := os.ReadFile(file)
		if err != nil {
			continue // this kernel has no such setting
		}
		t.Cleanup(func() {
			if now, err := os.ReadFile(file); err == nil && !slices.Equal(now, before) {
				if err := os.WriteFile(file, before, 0o644); err != nil {
					t.Errorf("put back %s: %v", file, err)
				}
			}
		})
	}
}

func TestStampMatchesTheCommit(t *testing.T) {
	r := baseline(t)
	s := r.stamp(t)
	if s.GitVersion != r.version || s.ImageTag != strings.ReplaceAll(r.version, "+", "_") {
		t.Errorf("version is %s and image tag %s, want both to be %s", s.GitVersion, s.ImageTag, r.version)
	}
	log := strings.Fields(run(t, r.dir, nil, "git", "log", "-1", "--format=%H %ct").ok(t).stdout)
	built, err := time.Parse(time.RFC3339, s.BuildDate)
	if err != nil {
		t.Fatal(err)
	}
	if s.GitCommit != log[0] || fmt.Sprint(built.Unix()) != log[1] || s.GitTreeState != "clean" {
		t.Errorf("slipway version says %+v, git %q", s, log)
	}
}
