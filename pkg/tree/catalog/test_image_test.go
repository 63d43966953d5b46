package catalog

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// testImages are images for tests in the tree of another project, which has a test set then.
const testImages = `- {name: e2e/shell, set: test, base: static, version: 1.0-1, created: 2026-02-13T18:39:11Z, arguments: [sh, -c], title: Shell}
- {name: e2e/shell, set: test, base: static, binary: dns, setuid: true, entrypoint: [/dns], version: "1.1", created: 2026-02-13T18:39:11+01:00, title: Shell}
registry: a.b
`

func withTestImages(t *testing.T, edits ...edit) (root string) {
	t.Helper()
	images := testImages
	for _, e := range edits {
		if strings.Count(images, e.old) != 1 {
			t.Fatalf("%q occurs %d times, want once", e.old, strings.Count(images, e.old))
		}
		images = strings.Replace(images, e.old, e.new, 1)
	}
	return addons(t, edit{"node: [linux/amd64]}", "node: [linux/amd64], test: [linux/arm64, darwin/arm64]}"}, edit{"registry: a.b\n", images})
}

func TestImagesForTests(t *testing.T) {
	t.Parallel()
	c, err := Load(withTestImages(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []Image{
		{Name: "e2e/shell", Set: Test, Base: "static", Version: "1.0-1", Created: time.Date(2026, 2, 13, 18, 39, 11, 0, time.UTC),
			Arguments: []string{"sh", "-c"}, Title: "Shell"},
		{Name: "e2e/shell", Set: Test, Base: "static", Binary: "dns", SetUID: true, Entrypoint: []string{"/dns"}, Version: "1.1",
			Created: time.Date(2026, 2, 13, 17, 39, 11, 0, time.UTC), Title: "Shell"},
	}
	arm := Platform{OS: "linux", Arch: "arm64"}
	if diff := cmp.Diff(want, c.ImagesFor(Test, arm)); diff != "" {
		t.Error(diff)
	}
	if got := want[0].File() + " " + want[1].File(); got != "shell-1.0-1 shell-1.1" {
		t.Errorf("archives %s", got)
	}
	if got := len(want[0].Binaries()); got != 0 {
		t.Errorf("%d binaries in an image that has none", got)
	}
	if got := len(c.ImagesFor(Server, arm)); got != 2 {
		t.Errorf("%d images for servers", got)
	}
	for _, p := range []Platform{{OS: "linux", Arch: "amd64"}, {OS: "darwin", Arch: "arm64"}} {
		if got := c.ImagesFor(Test, p); got != nil {
			t.Errorf("images for tests on %v: %v", p, got)
		}
	}
}

// An image of a component that only the test set has is made with the release's version.
func TestComponentsImageForTestsNeedsNoVersion(t *testing.T) {
	t.Parallel()
	const image = "- {name: hollow, set: test, base: static, binary: e2e.test, title: Hollow}\nregistry: a.b\n"
	root := addons(t, edit{"node: [linux/amd64]}", "node: [linux/amd64], test: [linux/amd64, linux/arm64]}"},
		edit{"images:\n", "- {name: e2e.test, test: k8s.io/kubernetes/test/e2e, sets: [test]}\nimages:\n"}, edit{"registry: a.b\n", image})
	c, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	all := c.ImagesFor(Test, Platform{OS: "linux", Arch: "arm64"})
	if len(all) != 1 || all[0].File() != "hollow" || all[0].Versioned() {
		t.Errorf("images for tests are %+v", all)
	}
}

func TestProblemsWithImagesForTests(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		edit edit
		want string
	}{
		"no version": {edit{" version: 1.0-1, created: 2026-02-13T18:39:11Z,", ""},
			`12: image e2e/shell: it needs a version: the one that tests use`},
		"odd version":    {edit{"1.0-1", "1.0+1"}, `12: "1.0+1" is not a version for an image: letters, digits, and _ . -`},
		"one twice":      {edit{"1.0-1", `"1.1"`}, `13: duplicate image "e2e/shell:1.1", first on line 12`},
		"nothing to run": {edit{" arguments: [sh, -c],", ""}, `12: image e2e/shell has neither a binary nor a base with something to start`},
		"unknown set": {edit{"set: test, base: static, version", "set: tests, base: static, version"},
			`12: unknown set "tests"; did you mean test?`},
		"set of nodes": {edit{"set: test, base: static, version", "set: node, base: static, version"},
			`12: image e2e/shell: set node has no images; server, test and addons have`},
		"odd flag": {edit{"setuid: true", "setuid: maybe"}, `13: setuid must be true or false, not maybe`},
		"root of nothing": {edit{"1.0-1,", "1.0-1, setuid: true,"},
			`12: image e2e/shell has no binary that others could go with, or that could run as root`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := withTestImages(t, tt.edit)
			_, err := Load(root)
			if !errors.As(err, new(*InvalidError)) {
				t.Fatalf("got %v, want an InvalidError", err)
			}
			got := strings.ReplaceAll(err.Error(), filepath.Join(root, "release", "release.yaml")+":", "")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
