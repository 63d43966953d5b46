package roads

import (
	"context"
	"errors"
	"slices"
	"testing"

	"slipway.build/pkg/make/road"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/tree/catalog"
)

func TestRoadsAreChosenByName(t *testing.T) {
	t.Parallel()
	tree := &Tree{Root: "/tree", Module: "cmd"}
	if got := Names(); !slices.Equal(got, []string{"local", "container", "bazel"}) {
		t.Errorf("names %q", got)
	}
	for name, output := range map[string]string{
		"": "_output/local/bin", "local": "_output/local/bin", "container": "_output/dockerized/bin", "bazel": "_output/bazel/bin",
	} {
		chosen, err := tree.Choose(name, road.Options{})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if chosen.Info().Output != output || Output(name) != output {
			t.Errorf("%q: output %s and %s, want %s", name, chosen.Info().Output, Output(name), output)
		}
		if isLocal := name == "" || name == "local"; (chosen == tree.Local()) != isLocal {
			t.Errorf("%q: is the local road: %t", name, !isLocal)
		}
	}
	var unknown *suggest.UnknownError
	if _, err := tree.Choose("locl", road.Options{}); !errors.As(err, &unknown) || !slices.Contains(unknown.Near, "local") {
		t.Errorf("an unknown road: %v", err)
	}
	if got := Output("locl"); got != "" {
		t.Errorf("output of an unknown road %q", got)
	}
	var unsupported *road.UnsupportedError
	if _, err := tree.Choose("bazel", road.Options{Debug: true}); !errors.As(err, &unsupported) {
		t.Errorf("options that a road does not support: %v", err)
	}
}

// Roads whose binaries have the same bytes have the same recipes, and no others.
func TestRoadsWithTheSameBytesHaveTheSameRecipes(t *testing.T) {
	t.Parallel()
	tree := &Tree{Root: "/tree", Module: "cmd", Pin: toolchain.Pin{Version: "go1.26.10"}}
	tree.Go = func(context.Context, func(string)) (*toolchain.Go, error) { return &toolchain.Go{Root: "/go"}, nil }
	recipe := func(name string, o road.Options) []string {
		t.Helper()
		r, err := tree.Choose(name, road.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Recipe(road.Spec{Platform: catalog.Platform{OS: "linux", Arch: "amd64"}, Options: o}, road.Binary{Package: "./kubectl"})
	}
	local := recipe("local", road.Options{})
	for _, name := range []string{"container", "bazel"} {
		if got := recipe(name, road.Options{}); !slices.Equal(got, local) {
			t.Errorf("the local and the %s road make the same bytes by %q and %q", name, local, got)
		}
	}
	debug := road.Options{Debug: true} // binaries name the folders in which they were compiled
	if local, container := recipe("local", debug), recipe("container", debug); slices.Equal(local, container) {
		t.Errorf("debug builds have the same recipe %q", local)
	}
	tree.Pin.Version = "go1.99.0" // whose build IDs are not known
	if local, bazel := recipe("local", road.Options{}), recipe("bazel", road.Options{}); slices.Equal(local, bazel) {
		t.Errorf("the Bazel road may make other bytes by the same recipe %q", bazel)
	}
}
