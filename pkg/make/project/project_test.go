package project

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/make/road"
	"slipway.build/pkg/mechanism/badrequest"
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
	got, err := SettingsFrom(environment("ROAD=local", "DBG=1", "GOFLAGS=-tags=x", "GOLDFLAGS=-w", "KUBE_DOCKER_REGISTRY=r",
		"KUBE_DOCKER_IMAGE_TAG=t",
		"KUBE_CROSS_BASE=b", "SLIPWAY_DEBIAN_MIRROR=http://m", "SLIPWAY_DEBIAN_SECURITY_MIRROR=off", "SLIPWAY_DEBIAN_SNAPSHOT=off",
		"SLIPWAY_DEBIAN_KEYRING=k",
		"SLIPWAY_INPUTS=i"))
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{"local", road.Options{Debug: true, GoFlags: "-tags=x", LDFlags: "-w"}, "r", "t", "b", "i",
		debian.Sources{Mirror: "http://m", Security: "off", Snapshot: "off", Keyring: "k"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if s, err := SettingsFrom(environment("DBG=0")); s.Build.Debug || err != nil {
		t.Errorf("DBG=0 makes a debug build, %v; upstream, only DBG=1 does", err)
	}
}

// What an engine would refuse after everything was compiled, or what would have no effect, is refused at once, and all of it.
func TestSettingsThatMeanNothingAreRefused(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{
		"DBG=true", "DBG=2", "GOLDFLAGS=s", "GOGCFLAGS=l", "KUBE_CROSS_BASE=https://registry.acme.example/debian",
		"KUBE_DOCKER_REGISTRY=https://registry.acme.example", "KUBE_DOCKER_REGISTRY=registry.acme.example/", "KUBE_DOCKER_REGISTRY=:5000",
		"KUBE_DOCKER_IMAGE_TAG=-x", "KUBE_DOCKER_IMAGE_TAG=v1.37.1+acme.1", "KUBE_DOCKER_IMAGE_TAG=a/b",
	} {
		_, err := SettingsFrom(environment(setting))
		name, value, _ := strings.Cut(setting, "=")
		if err == nil || !badrequest.Is(err) || !strings.Contains(err.Error(), fmt.Sprintf("%s=%q: want ", name, value)) {
			t.Errorf("%s: error %v", setting, err)
		}
	}
	if _, err := SettingsFrom(environment("GOLDFLAGS='-X=a.B=c d' -w", "KUBE_DOCKER_REGISTRY=acme", "KUBE_CROSS_BASE=debian")); err != nil {
		t.Error(err)
	}
}

func TestSourcesAreKnownAfterLoad(t *testing.T) {
	t.Parallel()
	settings, err := SettingsFrom(environment())
	if err != nil {
		t.Fatal(err)
	}
	p, err := Load(tree(t), settings, environment())
	if err != nil {
		t.Fatal(err)
	}
	names, err := p.Roads.Sources(t.Context())
	if err != nil || !slices.Contains(names, "release/release.yaml") {
		t.Errorf("sources %q, %v", names, err)
	}
	if _, err := p.Modules(t.Context()); err != nil {
		t.Error(err)
	}
}
