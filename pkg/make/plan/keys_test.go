package plan

import (
	"slices"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/tree/catalog"
)

// TestAnEditOfTheToolchainMakesStaleWhatHoldsItsWork edits code and raises modules: package recipe tests that a code's digest, which
// is a line of recipes, changes if something that it covers does.
func TestAnEditOfTheToolchainMakesStaleWhatHoldsItsWork(t *testing.T) {
	t.Parallel()
	planned, err := New(t.Context(), open(t, tree(t)), Request{
		Tars: true, Images: true, Inputs: true, Platforms: []catalog.Platform{linuxARM64},
	})
	if err != nil {
		t.Fatal(err)
	}
	documents := []string{"binaries", "checksums", "description", "provenance", "release.json", "sbom"}
	packed := []string{"image", "inputs", "package", "sources"}
	licenses := []string{"licenses", "modules", "packages", "spdx"}
	for changed, want := range map[string][]string{
		"pkg/release":                            documents, // how a purl is written, a field of release.json
		"pkg/release/sbom":                       documents,
		"github.com/CycloneDX/cyclonedx-go":      documents,
		"github.com/anchore/go-struct-converter": documents,
		"pkg/make/license":                       slices.Concat(documents, licenses, []string{"image"}),
		"github.com/google/licensecheck":         slices.Concat(documents, licenses, []string{"image"}),
		"golang.org/x/crypto/x509roots/fallback": slices.Concat(documents, []string{"image"}),
		"github.com/klauspost/compress":          slices.Concat(documents, packed),
		"pkg/mechanism/archive":                  slices.Concat(documents, packed),
		"pkg/make/relink":                        {"compile"},
		"pkg/cli":                                nil,
		"pkg/mechanism/action":                   nil,
		"github.com/spf13/cobra":                 nil,
		"github.com/docker/docker":               nil,
	} {
		stale := map[string]bool{} // by the first word of an action's ID
		for _, a := range planned.Graph.Actions {
			kind, _, _ := strings.Cut(a.ID, " ")
			stale[kind] = stale[kind] || slices.ContainsFunc(a.Recipe, func(line string) bool {
				name, digest, _ := strings.Cut(line, "=")
				code := recipe.Lookup(strings.TrimPrefix(name, "pkg/"))
				return code != nil && code.Digest() == digest && code.Covers()[changed] != ""
			})
		}
		for kind, is := range stale {
			if is != slices.Contains(want, kind) {
				t.Errorf("%s was changed: %s is stale: %t, want stale only %q", changed, kind, is, want)
			}
		}
	}
}
