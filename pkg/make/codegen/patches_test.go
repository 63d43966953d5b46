package codegen

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/make/patched"
	"slipway.build/pkg/mechanism/child/childtest"
	"slipway.build/pkg/tree/patch"
)

func TestPatchedTypesAreGeneratedAnew(t *testing.T) {
	t.Parallel()
	r, _ := repository(t, "--unknown")
	original, _ := repository(t, "--unknown")
	script := "#!/bin/sh\n[ \"$1\" = --help ] && { echo none; exit; }\n" +
		"for p in \"$@\"; do case $p in ./*) grep -h '^// field' $p/types.go >$p/zz_generated.deepcopy.go;; esac; done\n"
	childtest.Script(t, filepath.Join(r.Tools.Dir, "bin", "deepcopy-gen"), script)
	for _, none := range []string{"swagger", "openapi-gen", "applyconfiguration-gen", "informer-gen"} {
		childtest.Script(t, filepath.Join(r.Tools.Dir, "bin", none), "#!/bin/sh\nexit 1\n")
	}
	const internal = "pkg/apis/apps/doc.go"
	tree := patched.Tree{Overlay: patch.NewOverlay(nil, patch.Dir(original.Dir))}
	tree.Set("pkg/apis/apps/types.go", patch.Change{Data: []byte("package apps\n\n// field added\n")})
	tree.Set(internal, patch.Change{Data: []byte("// +k8s:deepcopy-gen=package\n\npackage apps // patched\n")})
	if err := r.regenerate(t.Context(), map[string]bool{"pkg/apis/apps": true}, tree); err != nil {
		t.Fatal(err)
	}
	changes := tree.Changes()
	if diff := cmp.Diff([]string{internal, "pkg/apis/apps/types.go", "pkg/apis/apps/zz_generated.deepcopy.go"},
		slices.Sorted(maps.Keys(changes))); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if got := string(changes["pkg/apis/apps/zz_generated.deepcopy.go"].Data); got != "// field added\n" {
		t.Errorf("the generated file is %q", got)
	}
}

func TestPatchesOfOtherFilesGenerateNothing(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"docs/README.md":                                   nil,
		"pkg/apis/apps/types_test.go":                      nil,
		"pkg/apis/apps/types.go":                           {"pkg/apis/apps"},
		"staging/src/k8s.io/cri-api/pkg/apis/v1/api.proto": {"staging/src/k8s.io/cri-api/pkg/apis/v1"},
	}
	for name, want := range tests {
		if diff := cmp.Diff(want, touched(map[string]patch.Change{name: {}})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if (ForPatches{Root: t.TempDir()}).Affects(map[string]patch.Change{"pkg/apis/apps/types.go": {}}) {
		t.Error("a tree without generators is to generate code")
	}
}

func TestGeneratorsThatWereNotUsedForLongAreRemoved(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	for name, age := range map[string]time.Duration{"old": kept + time.Hour, "new": time.Hour, unused + "half": time.Minute} {
		if err := os.MkdirAll(filepath.Join(dir, name, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, name), now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	sweep(dir, now)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "new" {
		t.Errorf("error %v, left %v", err, left)
	}
}
