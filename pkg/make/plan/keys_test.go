package plan

import (
	"os"
	"path/filepath"
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

// Two distributions, whose modules have other names and of which one has slipway as a module, make what other projects' programs are of
// under the same keys. What is made of the code in cmd has other bytes: a binary holds the path of its module.
func TestDistributionsShareWhatIsEqual(t *testing.T) {
	t.Parallel()
	keys := func(root string) map[string]string {
		planned, err := New(t.Context(), open(t, root), Request{Tars: true, Images: true, Platforms: []catalog.Platform{linuxARM64}})
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, a := range planned.Graph.Actions {
			lines := slices.Concat(a.Recipe, a.Inputs)
			for _, name := range a.Inputs {
				data, _ := os.ReadFile(filepath.Join(root, name)) // what is made in a run is not there yet
				lines = append(lines, string(data))
			}
			all[a.ID] = strings.Join(lines, "\n")
		}
		return all
	}
	own, acme := tree(t), tree(t, file("go.mod", "module acme.example/kubernetes\n\nrequire slipway.build v0.2.0\n"))
	for _, name := range []string{"cmd/go.mod", "cmd/kube-apiserver/main.go", "cmd/internal/words/words.go"} {
		name = filepath.Join(acme, name)
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(strings.ReplaceAll(string(data), "slipway.build/", "acme.example/")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	theirs := keys(acme)
	shared := map[string]bool{}
	for id, key := range keys(own) {
		shared[id] = theirs[id] == key
	}
	for _, id := range []string{"compile linux/arm64 dns", "compile linux/arm64 dnsctl", "image linux/arm64 dns", "licenses linux/arm64 dns",
		"modules linux/arm64 dns", "packages linux/arm64 dns", "spdx linux/arm64 dns"} {
		if !shared[id] {
			t.Errorf("%s has another key in another distribution", id)
		}
	}
	if shared["compile linux/arm64 kube-apiserver"] {
		t.Error("a component has the same key as one of another module")
	}
}
