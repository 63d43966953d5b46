package plan

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/build/road"
	"slipway.build/pkg/mechanism/debian"
)

func TestOpenFindsTheTreeFromAFolderInIt(t *testing.T) {
	t.Parallel()
	root := tree(t)
	p := open(t, filepath.Join(root, "cmd", "kubectl"))
	if p.Root != root {
		t.Errorf("root %s, want %s", p.Root, root)
	}
	if p.Stamp.Version != "v1.36.3+acme.1" {
		t.Errorf("version %s", p.Stamp.Version)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	root := tree(t)
	tests := []struct {
		name, dir string
		settings  Settings
		want      string
	}{
		{"a folder outside of a tree", t.TempDir(), Settings{}, "or a folder above it"},
		{"an unknown road", root, Settings{Road: "rail"}, `unknown road "rail"; it can be local, container or bazel`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(t.Context(), tt.dir, tt.settings, environment())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestSettingsFromTheEnvironment(t *testing.T) {
	t.Parallel()
	got := SettingsFrom(environment("ROAD=local", "DBG=1", "GOFLAGS=-tags=x", "GOLDFLAGS=-w", "KUBE_DOCKER_REGISTRY=r", "KUBE_DOCKER_IMAGE_TAG=t",
		"KUBE_CROSS_BASE=b", "SLIPWAY_DEBIAN_MIRROR=m", "SLIPWAY_DEBIAN_SECURITY_MIRROR=f", "SLIPWAY_DEBIAN_SNAPSHOT=s", "SLIPWAY_DEBIAN_KEYRING=k", "SLIPWAY_INPUTS=i"))
	want := Settings{"local", road.Options{Debug: true, GoFlags: "-tags=x", LDFlags: "-w"}, "r", "t", "b", "i",
		debian.Sources{Mirror: "m", Security: "f", Snapshot: "s", Keyring: "k"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if SettingsFrom(environment("DBG=0")).Build.Debug {
		t.Error("DBG=0 makes a debug build; upstream, only DBG=1 does")
	}
}
