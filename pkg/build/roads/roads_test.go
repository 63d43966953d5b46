package roads

import (
	"errors"
	"slices"
	"testing"

	"slipway.build/pkg/build/road"
	"slipway.build/pkg/mechanism/suggest"
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
