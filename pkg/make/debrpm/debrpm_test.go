package debrpm

import (
	"testing"

	"slipway.build/pkg/mechanism/recipe/recipetest"
)

func TestEveryFieldOfASpecIsInItsRecipe(t *testing.T) {
	t.Parallel()
	recipetest.EachField(t, Spec{})
}

// Some servers read a plus in a URL as a space.
func TestNamesOfFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		spec Spec
		want string
	}{
		{Spec{Format: Deb, Name: "kubelet", Version: "1.37.2+acme.1", GOARCH: "ppc64le"}, "kubelet_1.37.2-acme.1-1_ppc64el.deb"},
		{Spec{Format: RPM, Name: "kubelet", Version: "1.37.0~rc.1", GOARCH: "arm64"}, "kubelet-1.37.0~rc.1-1.aarch64.rpm"},
	} {
		if got, err := tt.spec.File(); got != tt.want || err != nil {
			t.Errorf("%s, %v, want %s", got, err, tt.want)
		}
	}
	if name, err := (Spec{Format: RPM, GOARCH: "wasm"}).File(); err == nil {
		t.Errorf("a name for an architecture that rpm does not have: %s", name)
	}
}
