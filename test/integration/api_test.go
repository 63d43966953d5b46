//go:build integration

package integration

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The API's files are those that upstream's repository has at this version.
func TestAPIFilesAreUpstreams(t *testing.T) {
	r := baseline(t)
	r.jsonRun(t, "api").did(t, "api") // with the release's programs
	upstream := filepath.Join(strings.TrimSpace(
		run(t, r.path("cmd"), nil, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").ok(t).stdout), "api")
	read := func(dir string) map[string]string {
		files := map[string]string{}
		for _, folder := range []string{"discovery", "openapi-spec"} {
			err := filepath.WalkDir(filepath.Join(dir, folder), func(name string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || filepath.Ext(name) != ".json" {
					return err
				}
				data, err := os.ReadFile(name)
				files[strings.TrimPrefix(name, dir)] = string(data)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return files
	}
	want, got := read(upstream), read(r.path("_output/api"))
	if len(want) < 100 {
		t.Errorf("upstream has only %d files", len(want))
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s differs from upstream's, or is missing", name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files, upstream has %d", len(got), len(want))
	}
	r.jsonRun(t, "api").didNothing(t)
	r.remove(t, "_output/api")
	r.sameFiles(t, r.tree)
}
