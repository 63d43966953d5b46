package toolchain

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"slipway.build/pkg/tree/module"
)

func TestVersionsOfTheCryptographicModuleAreThoseOfTheGo(t *testing.T) {
	t.Parallel()
	g := &Go{Version: "go1.26.10", Root: t.TempDir()}
	if _, err := g.FIPS("v1.0.0"); err == nil || !strings.Contains(err.Error(), "go1.26.10 has no versions of Go's cryptographic module") {
		t.Errorf("a Go without any: error %v", err)
	}
	sums := "# comment\nv1.26.0.zip aa h1:b\nv1.0.0-c2097c7c.zip cc h1:d\nv1.1.0.zip ee h1:f\n"
	if err := os.CopyFS(g.Root, fstest.MapFS{
		"lib/fips140/fips140.sum":         {Data: []byte(sums)},
		"lib/fips140/v1.0.0.txt":          {Data: []byte("v1.0.0-c2097c7c\n")},
		"lib/fips140/v1.0.0-c2097c7c.zip": {}, "lib/fips140/v1.26.0.zip": {},
	}); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]module.Pinned{
		"v1.0.0":          {Version: module.Version{Path: "golang.org/fips140", Version: "v1.0.0-c2097c7c"}, Sum: "h1:d"},
		"v1.0.0-c2097c7c": {Version: module.Version{Path: "golang.org/fips140", Version: "v1.0.0-c2097c7c"}, Sum: "h1:d"},
		"v1.26.0":         {Version: module.Version{Path: "golang.org/fips140", Version: "v1.26.0"}, Sum: "h1:b"},
	} {
		if got, err := g.FIPS(version); got != want || err != nil {
			t.Errorf("%s: %v, %v, want %v", version, got, err, want)
		}
	}
	for _, version := range []string{"v1.1.0", "v1.0", "latest"} { // the first one has no file
		want := "go1.26.10 has no version " + version + " of Go's cryptographic module; it has v1.0.0 and v1.26.0"
		if _, err := g.FIPS(version); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
