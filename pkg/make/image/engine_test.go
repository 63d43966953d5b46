package image

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/needs"
)

// hello compiles testdata/hello and saves its image under a name nobody else has.
func hello(t *testing.T) (path, tag string) {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "hello")
	compile := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", binary, "./testdata/hello")
	compile.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	base, err := Static(bases)
	if err != nil {
		t.Fatal(err)
	}
	img := build(t, Component([]Layer{base}, Program{
		Binaries: []Binary{{Name: "hello", File: binary}, {Name: "kube-log-runner", File: binary}}, Title: "A greeting",
		OS: "linux", Arch: runtime.GOARCH, Version: "v1.2.3", Created: created,
	}))
	name := "slipway.test/hello-" + strings.ToLower(filepath.Base(dir)) + "-" + time.Now().Format("150405.000000000")
	tag = name + ":v1.2.3"
	path = filepath.Join(dir, "hello.tar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, _, err := img.Save(t.Context(), f, []string{tag}); err != nil {
		t.Fatal(err)
	}
	return path, tag
}

func run(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", c, err, out, stderr.Bytes())
	}
	return out
}

func TestDockerLoadsAndRunsAComponent(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), "docker", "info").CombinedOutput(); err != nil {
		needs.Missing(t, "a Docker engine; docker info: %v\n%s", err, out)
	}
	path, tag := hello(t)
	run(t, "docker", "load", "--input", path)
	t.Cleanup(func() {
		if out, err := exec.Command("docker", "image", "rm", tag).CombinedOutput(); err != nil {
			t.Errorf("docker image rm %s: %v\n%s", tag, err, out)
		}
	})

	tests := map[string]struct {
		flags []string
		args0 string
		user  string
	}{
		"entrypoint":            {nil, "/usr/local/bin/hello", "root:0:/root"},
		"by name in PATH":       {[]string{"--entrypoint", "hello"}, "hello", "root:0:/root"},
		"go-runner":             {[]string{"--entrypoint", "/go-runner"}, "/go-runner", "root:0:/root"},
		"as an ordinary person": {[]string{"--user", "nonroot"}, "/usr/local/bin/hello", "nonroot:65532:/home/nonroot"},
	}
	for name, test := range tests {
		args := append([]string{"run", "--rm", "--network", "none"}, test.flags...)
		out := run(t, "docker", append(args, tag, "--flag")...)
		var got map[string]any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		want := map[string]any{
			"args":  []any{test.args0, "--flag"},
			"dir":   "/",
			"user":  test.user,
			"tmp":   "dtrwxrwxrwx",
			"certs": true,
			"path":  "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
