package bazel

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"slipway.build/pkg/tree/module"
)

const machineWithoutInternet = `
-- workspace/MODULE.bazel --
module(name = "slipway")
include("//generated:versions.MODULE.bazel")
bazel_dep(name = "zlib", version = "1.2")
-- workspace/generated/versions.MODULE.bazel --
bazel_dep(name = "rules_go", version = "0.65.0", repo_name = "io_bazel_rules_go")
-- workspace/build/bazel/package_metadata/MODULE.bazel --
module(name = "package_metadata")
-- root/usr/share/bazel/embedded_tools/MODULE.bazel --
bazel_dep(name = "zlib", version = "1.3.1.bcr.3")
bazel_dep(name = "rules_cc", version = "0.0.11")
-- root/usr/share/bazel/rules/cc/MODULE.bazel --
module(
    name = "rules_cc",
    version = "0.0.1",
    compatibility_level = 1,
)

bazel_dep(name = "stardoc", version = "0.7.0", dev_dependency = True)
-- root/usr/share/bazel/tools/features/MODULE.bazel --
module(name = "bazel_features")
-- root/usr/share/bazel/tools/features/features.bzl --
"""Features."""

_rules = struct(
    other = True,
)
-- go/MODULE.bazel --
module(name = "rules_go", version = "")
bazel_dep(name = "bazel_features", version = "1.36.0")
bazel_dep(name = "rules_cc", version = "0.1.5")
-- go/run.sh --
#!/bin/sh
-- go/v.go --
package v
-- more/more.go --
package more
`

// lonely returns that machine, and the Bazel in it.
func lonely(t *testing.T) (dir string, b *Bazel) {
	t.Helper()
	dir = t.TempDir()
	ar, err := txtar.FS(txtar.Parse([]byte(machineWithoutInternet)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, ar); err != nil {
		t.Fatal(err)
	}
	return dir, &Bazel{dir: filepath.Join(dir, "workspace"), system: filepath.Join(dir, "root")}
}

func TestRegistryHasEachVersionThatIsAskedFor(t *testing.T) {
	t.Parallel()
	dir, b := lonely(t)
	asking, err := b.asking()
	if err != nil {
		t.Fatal(err)
	}
	r := &registry{dir: filepath.Join(dir, "new"), final: "/the registry", sources: map[string]source{}}
	packages := filepath.Join(b.system, debianFolder)
	err = errors.Join(r.addEmpty("platforms"), r.addFolder("rules_cc", filepath.Join(packages, "rules/cc"), "/usr/share/bazel/rules/cc"),
		r.addEmpty("zlib"),
		r.addFeatures(filepath.Join(packages, "tools/features")),
		r.addArchive("rules_go", map[string]string{"": filepath.Join(dir, "go"), "v2": filepath.Join(dir, "more")}))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.describe(asking); err != nil {
		t.Fatal(err)
	}
	want := []string{"bazel_features/1.36.0", "platforms/0.0.7", "rules_cc/0.0.11", "rules_cc/0.1.5",
		"rules_go/0.65.0", "zlib/1.2", "zlib/1.3.1.bcr.3"}
	var got []string
	found, err := filepath.Glob(filepath.Join(r.dir, "modules/*/*/source.json"))
	for _, file := range found {
		rel, _ := filepath.Rel(filepath.Join(r.dir, "modules"), filepath.Dir(file))
		got = append(got, rel)
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("versions (-want +got):\n%s%v", diff, err)
	}
	for name, want := range map[string]string{
		"modules/rules_cc/0.1.5/MODULE.bazel": "    version = \"0.1.5\",\n    compatibility_level = 1,",
		"modules/rules_cc/0.1.5/source.json":  `"path": "/usr/share/bazel/rules/cc"`,
		"modules/zlib/1.2/source.json":        `"path": "/the registry/sources/zlib"`,
		"modules/zlib/metadata.json":          "\"1.2\",\n    \"1.3.1.bcr.3\"",
		"modules/rules_go/0.65.0/source.json": `"url": "file:///the%20registry/sources/rules_go.tar"`,
		"sources/bazel_features/features.bzl": "_rules = struct(\n    instrumented_files_info_has_baseline_coverage_files = False,\n",
	} {
		if text, err := os.ReadFile(filepath.Join(r.dir, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s is %v %s, without %s", name, err, text, want)
		}
	}
	checkArchive(t, r)

	err = r.describe([][]byte{[]byte(`bazel_dep(name = "rules_rust", version = "1")`)})
	if err == nil || !strings.Contains(err.Error(), "rules_rust") {
		t.Errorf("a module that there is none of: %v", err)
	}
}

// checkArchive checks that the archive of rules_go is the one that source.json describes, and what is in it.
func checkArchive(t *testing.T, r *registry) {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join(r.dir, "sources/rules_go.tar"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(packed)
	var s struct{ Integrity string }
	text, err := os.ReadFile(filepath.Join(r.dir, "modules/rules_go/0.65.0/source.json"))
	if err := errors.Join(err, json.Unmarshal(text, &s)); err != nil || s.Integrity != "sha256-"+base64.StdEncoding.EncodeToString(sum[:]) {
		t.Errorf("integrity %q, %v", s.Integrity, err)
	}
	var got []string
	for in := tar.NewReader(strings.NewReader(string(packed))); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if !h.FileInfo().IsDir() {
			got = append(got, fmt.Sprintf("%v %s", h.FileInfo().Mode()&fs.ModePerm&0o100 != 0, h.Name))
		}
	}
	if diff := cmp.Diff([]string{"false MODULE.bazel", "true run.sh", "false v.go", "false v2/go.sum", "false v2/more.go"}, got); diff != "" {
		t.Errorf("executable, file (-want +got):\n%s", diff)
	}
}

func TestRegistryIsMadeAgainForOtherModules(t *testing.T) {
	t.Parallel()
	_, b := lonely(t)
	key := func(version, sum, other, include string) string {
		t.Helper()
		for name, text := range map[string]string{
			"go.mod": "module x.test/a\n\nrequire (\n\tgithub.com/bazelbuild/rules_go " + version +
				"\n\tx.test/b " + other + "\n)\n",
			"go.sum":                          "github.com/bazelbuild/rules_go " + version + " " + sum + "\n",
			"generated/versions.MODULE.bazel": include,
		} {
			if err := write(filepath.Join(b.dir, name), text); err != nil {
				t.Fatal(err)
			}
		}
		tools, err := module.Load(b.dir, ".")
		if err != nil {
			t.Fatal(err)
		}
		asking, err := b.asking()
		if err != nil {
			t.Fatal(err)
		}
		return b.registryKey(tools, asking)
	}
	first := key("v0.1.0", "h1:a", "v1.0.0", "")
	if key("v0.1.0", "h1:a", "v1.0.1", "") != first {
		t.Error("the key changes with a module that Bazel does not use")
	}
	for what, other := range map[string]string{
		"version":       key("v0.1.1", "h1:a", "v1.0.0", ""),
		"sum":           key("v0.1.0", "h1:b", "v1.0.0", ""),
		"included file": key("v0.1.0", "h1:a", "v1.0.0", "# more\n"),
	} {
		if other == first {
			t.Errorf("the key stays the same for another %s", what)
		}
	}
}
