package bazel

import (
	"archive/tar"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/child/childtest"
)

// machine puts these programs on PATH and no others, and makes a tree that pins Bazel 7.7.1.
func machine(t *testing.T, programs map[string]string) Options {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("programs are shell scripts, and roots are Linux's")
	}
	dir, root := t.TempDir(), t.TempDir()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range programs {
		childtest.Script(t, filepath.Join(dir, name), "#!"+sh+"\n"+script+"\n")
	}
	if err := os.WriteFile(filepath.Join(root, ".bazelversion"), []byte("7.7.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return Options{Root: root, Go: &toolchain.Go{Root: "/usr/local/go"}, Getenv: os.Getenv}
}

const debianVersion = `echo "Version information not available" >&2; echo "bazel "`

func dpkg(version string) string {
	return `case "$1" in --search) echo "bazel-bootstrap: $2";; *) printf %s '` + version + `';; esac`
}

func TestBazelOnPathIsUsedIfItIsThePinnedOne(t *testing.T) {
	for name, test := range map[string]struct {
		programs map[string]string
		want     string
	}{
		"bazel":    {map[string]string{"bazel": "echo bazel 7.7.1"}, "/bazel, by its version 7.7.1"},
		"bazelisk": {map[string]string{"bazelisk": "echo bazel 7.7.1"}, "/bazelisk, by its version 7.7.1"},
		"another, then bazelisk": {map[string]string{"bazel": "echo bazel 8.0.0", "bazelisk": "echo bazel 7.7.1"},
			"/bazelisk, by its version 7.7.1"},
		"Debian's": {map[string]string{"bazel": debianVersion, "dpkg-query": dpkg("7.7.1+ds-8+b1")},
			"/bazel, by its Debian package bazel-bootstrap 7.7.1+ds-8+b1"},
	} {
		t.Run(name, func(t *testing.T) {
			o := machine(t, test.programs)
			if err := Ready(t.Context(), o); err != nil {
				t.Error(err)
			}
			b, err := Find(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(b.How, test.want) || b.deps != Registry || b.system != "" {
				t.Errorf("found %s, dependencies by %s", b.How, b.deps)
			}
		})
	}
}

func TestErrorsWithoutTheRightBazelSayWhatToDo(t *testing.T) {
	for name, test := range map[string]struct {
		programs map[string]string
		want     []string
	}{
		"nothing": {nil, []string{"neither bazel nor bazelisk is on PATH", "install Bazelisk or Bazel 7.7.1",
			"install the package util-linux"}},
		"another":        {map[string]string{"bazel": "echo bazel 8.0.0"}, []string{"is 8.0.0, and .bazelversion pins 7.7.1"}},
		"one that fails": {map[string]string{"bazel": "exit 3"}, []string{"bazel --version: exit status 3"}},
		"Debian's, another": {map[string]string{"bazel": debianVersion, "dpkg-query": dpkg("6.5.0+ds-1")},
			[]string{`--version prints "bazel", and`, "6.5.0+ds-1", "not of 7.7.1"}},
		"nobody's": {map[string]string{"bazel": "echo hello", "dpkg-query": "exit 1"}, []string{`prints "hello"`}},
		"no namespaces": {map[string]string{"unshare": "echo unshare: Operation not permitted >&2; exit 1"},
			[]string{"cannot make a mount namespace", "Operation not permitted"}},
		"no mmdebstrap": {map[string]string{"unshare": "true"}, []string{"mmdebstrap"}},
		"mmdebstrap that fails": {map[string]string{"unshare": "true", "tar": "exec /bin/cat >/dev/null",
			"mmdebstrap": "echo E: no such suite >&2; exit 100"},
			[]string{"mmdebstrap: exit status 100", "E: no such suite"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := machine(t, test.programs)
			if keys := "/usr/share/keyrings/debian-archive-keyring.gpg"; strings.Contains(name, "mmdebstrap") {
				if _, err := os.Stat(keys); err != nil {
					t.Skip("not a Debian:", err)
				}
				o.Mirror = "http://mirror.example.com/debian"
			}
			ready := Ready(t.Context(), o)
			_, err := Find(t.Context(), o)
			if fine := name == "mmdebstrap that fails"; (ready == nil) != fine || !fine && ready.Error() != err.Error() {
				t.Errorf("Ready says %v, and Find %v", ready, err)
			}
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %s", err, want)
				}
			}
			if made, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "slipway/bazel/*-*")); made != nil {
				t.Errorf("leftover files %q", made)
			}
		})
	}
}

func TestRootOfAnotherBazelIsNotKept(t *testing.T) {
	tarProgram, err := exec.LookPath("tar")
	if err != nil {
		t.Fatal(err)
	}
	for version, kept := range map[string]bool{"7.7.1+ds-8+b1": true, "8.1.0+ds-1": false} {
		t.Run(version, func(t *testing.T) {
			packed := filepath.Join(t.TempDir(), "root.tar")
			if err := os.WriteFile(packed, packedRoot(t, version), 0o644); err != nil {
				t.Fatal(err)
			}
			o := machine(t, map[string]string{
				"unshare": "true", "mmdebstrap": "exec /bin/cat " + packed, "tar": "exec " + tarProgram + ` "$@"`,
			})
			o.Mirror = "http://mirror.example.com/debian"
			if _, err := os.Stat("/usr/share/keyrings/debian-archive-keyring.gpg"); err != nil {
				t.Skip("not a Debian:", err)
			}
			var progress []string
			o.Progress = func(text string) { progress = append(progress, text) }
			b, err := Find(t.Context(), o)
			if kept {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := os.Stat(filepath.Join(b.system, "usr/bin/bazel")); err != nil || b.deps != Offline || len(progress) != 1 {
					t.Errorf("root %s: %v, dependencies by %s, progress %q", b.system, err, b.deps, progress)
				}
				if again, err := Find(t.Context(), o); err != nil || again.system != b.system || len(progress) != 1 {
					t.Errorf("second call: %v, progress %q", err, progress)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), `is "8.1.0+ds-1", and .bazelversion pins 7.7.1`) {
				t.Errorf("error %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "slipway/bazel/*-*")); left != nil {
				t.Errorf("leftover files %q", left)
			}
		})
	}
}

func packedRoot(t *testing.T, version string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range map[string]string{
		"./usr/bin/bazel": "", "./dev/null": "",
		"./var/lib/dpkg/status": "Package: bash\nVersion: 5\n\nPackage: bazel-bootstrap\nStatus: install ok installed\nVersion: " + version +
			"\n\nPackage: zip\nVersion: 3\n",
	} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestConfigFollowsTheCommand(t *testing.T) {
	t.Parallel()
	b := &Bazel{config: []string{"--config=offline"}, options: Options{Go: &toolchain.Go{Root: "/go"}}}
	for args, want := range map[string]string{
		"build //cmd/...":              "build --config=offline --repo_env=SLIPWAY_GOROOT=/go //cmd/...",
		"--batch run //:gazelle -- -x": "--batch run --config=offline --repo_env=SLIPWAY_GOROOT=/go //:gazelle -- -x",
		"version":                      "version",
		"--version":                    "--version",
		"help build":                   "help build",
		"shutdown":                     "shutdown --config=offline --repo_env=SLIPWAY_GOROOT=/go",
	} {
		if diff := cmp.Diff(want, strings.Join(b.withConfig(strings.Fields(args)), " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
}

func TestBazelUnderAnEmbargoSendsNothing(t *testing.T) {
	b := &Bazel{options: Options{Go: &toolchain.Go{Root: "/go"}, Alone: true}}
	got := strings.Join(b.withConfig([]string{"--batch", "build", "--remote_cache=grpc://cache.example", "//cmd/..."}), " ")
	want := "--batch build --repo_env=SLIPWAY_GOROOT=/go --noremote_upload_local_results --remote_executor= --bes_backend= " +
		"--remote_cache=grpc://cache.example //cmd/..."
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if got := strings.Join(b.withConfig([]string{"query", "//..."}), " "); got != "query --repo_env=SLIPWAY_GOROOT=/go //..." {
		t.Errorf("of a query: %s", got)
	}
}

func TestUnknownDeps(t *testing.T) {
	o := machine(t, map[string]string{"bazel": "echo bazel 7.7.1"})
	o.Deps = "debian"
	_, err := Find(t.Context(), o)
	if want := `unknown source of rule sets "debian"; it can be registry, offline or local-registry`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestCleanLeavesATreeWithoutBazelAlone(t *testing.T) {
	t.Parallel()
	if err := Clean(context.Background(), t.TempDir()); err != nil {
		t.Error(err)
	}
}

// A tree that pins no Bazel has a workspace below _output, which pins one.
func TestBazelRunsInTheWorkspace(t *testing.T) {
	o := machine(t, map[string]string{"bazel": `echo bazel 7.7.1; echo "$*" >>log`})
	if got := Workspace(o.Root); got != o.Root {
		t.Errorf("the workspace of a tree that pins Bazel is %s", got)
	}
	if err := os.Remove(filepath.Join(o.Root, pinFile)); err != nil {
		t.Fatal(err)
	}
	if err := Ready(t.Context(), o); err != nil {
		t.Errorf("before there is a workspace: %v", err)
	}
	dir := filepath.Join(o.Root, "_output/.slipway/bazel/workspace")
	if err := write(filepath.Join(dir, pinFile), "7.7.1\n"); err != nil {
		t.Fatal(err)
	}
	b, err := Find(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Command(t.Context(), "info").Dir; got != dir {
		t.Errorf("it runs in %s", got)
	}
	if err := Clean(t.Context(), o.Root); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if want := "--version\nclean --expunge\n"; err != nil || !strings.HasSuffix(string(log), want) {
		t.Errorf("runs in the workspace: %q, %v", log, err)
	}
	if err := write(filepath.Join(dir, pinFile), "8.0.0\n"); err != nil {
		t.Fatal(err)
	}
	if err := Ready(t.Context(), o); err == nil {
		t.Error("a workspace for another Bazel is fine")
	}
}

func TestCleanRunsTheBazelThatWasUsed(t *testing.T) {
	o := machine(t, map[string]string{"bazel": `echo bazel 7.7.1; echo "$*" >>log`})
	if _, err := Find(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/nowhere")
	for range 2 { // the second time, nothing is left to clean
		if err := Clean(t.Context(), o.Root); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.ReadFile(filepath.Join(o.Root, "log"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("--version\nclean --expunge\n", string(log)); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}
