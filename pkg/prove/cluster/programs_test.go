package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A folder with everything that a release compiles has programs of other projects, too, which say their versions in their own ways or not
// at all. This test's program knows no --version either.
func TestOnlyKubernetesProgramsAreAskedForTheirVersion(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := &State{Name: "c", dir: t.TempDir()}
	for _, name := range s.components() {
		put(name, program)
		_, asked := versionArguments[name]
		if _, err := s.store(t.Context(), dir, name); (err != nil) != asked || asked &&
			!strings.Contains(err.Error(), "it cannot say its version") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name := range workloads {
		if _, asked := versionArguments[name]; asked != strings.HasPrefix(name, "kube-") && name != "cloud-controller-manager" {
			t.Errorf("%s is asked for its version: %t", name, asked)
		}
	}
	put("traefik", []byte("#!/bin/sh\nexit 1\n"))
	if p, err := s.store(t.Context(), dir, "traefik"); err != nil || p.Version != "unknown" {
		t.Errorf("a script: %+v, %v", p, err)
	}
	put("traefik", bytes.ReplaceAll(program, []byte("build\tGOARCH="+runtime.GOARCH+"\n"),
		[]byte("build\tGOARCH="+strings.Repeat("x", len(runtime.GOARCH))+"\n")))
	if p, err := s.store(t.Context(), dir, "traefik"); err == nil || !strings.Contains(err.Error(), "it is for "+runtime.GOOS+"/xxx") {
		t.Errorf("another platform: %+v, %v", p, err)
	}
}
