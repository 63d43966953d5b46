package module

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree writes files into a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(root, filepath.FromSlash(name)), text)
	}
	return root
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, root, name string) *Module {
	t.Helper()
	m, err := Load(root, name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const goMod = `module slipway.build/cmd

go 1.26.0

require (
	example.com/Upper v1.0.0
	example.com/forked v1.0.0
)

require (
	example.com/folder v0.0.0 // indirect
	example.com/folder/nested v0.1.0 // indirect
	example.com/self v0.0.0 // indirect
	example.com/tools v0.3.0 // indirect
)

tool example.com/tools/cmd/x

replace example.com/folder => ../fake/folder

replace (
	example.com/self => example.com/self v0.36.3
	example.com/forked => example.com/unused v1.0.0
	example.com/forked v1.0.0 => example.com/fork v1.0.1
	example.com/Upper v0.9.0 => example.com/old v0.9.1
)
`

const goSum = `example.com/Upper v1.0.0 h1:upper=
example.com/Upper v1.0.0/go.mod h1:uppermod=
example.com/self v0.36.3 h1:self=
example.com/fork v1.0.1 h1:fork=
example.com/forked v1.0.0 h1:forked=
example.com/graph v0.1.0/go.mod h1:graph=
not a sum
example.com/other v1.0.0 x9:unknown=
`

func TestLoadReadsGoModAndGoSum(t *testing.T) {
	t.Parallel()
	m := load(t, tree(t, map[string]string{"cmd/go.mod": goMod, "cmd/go.sum": goSum}), "cmd")
	if m.Name != "cmd" || m.Path != "slipway.build/cmd" || m.Go != "1.26.0" {
		t.Errorf("it is %s in %s, for Go %s", m.Path, m.Name, m.Go)
	}
	want := []Requirement{
		{Dependency{"example.com/Upper", "v1.0.0", "h1:upper=", Version{}}, true},
		{Dependency{"example.com/forked", "v1.0.0", "h1:fork=", Version{"example.com/fork", "v1.0.1"}}, true},
		{Dependency{"example.com/folder", "v0.0.0", "", Version{"../fake/folder", ""}}, false},
		{Dependency{"example.com/folder/nested", "v0.1.0", "", Version{}}, false},
		{Dependency{"example.com/self", "v0.0.0", "h1:self=", Version{"example.com/self", "v0.36.3"}}, false},
		{Dependency{"example.com/tools", "v0.3.0", "", Version{}}, true},
	}
	if diff := cmp.Diff(want, m.Requires); diff != "" {
		t.Errorf("requirements (-want +got):\n%s", diff)
	}
	if got := m.Replaces[0]; got != (Replacement{Version{"example.com/folder", ""}, Version{"../fake/folder", ""}, 19}) ||
		!slices.Equal(m.Folders(), []string{"../fake/folder"}) {
		t.Errorf("the first replacement is %+v", got)
	}
	pinned := []Pinned{
		{Version{"example.com/Upper", "v1.0.0"}, "h1:upper=", "h1:uppermod="},
		{Version{"example.com/fork", "v1.0.1"}, "h1:fork=", ""},
		{Version{"example.com/forked", "v1.0.0"}, "h1:forked=", ""},
		{Version{"example.com/graph", "v0.1.0"}, "", "h1:graph="},
		{Version{"example.com/self", "v0.36.3"}, "h1:self=", ""},
	}
	if diff := cmp.Diff(pinned, m.Pinned()); diff != "" {
		t.Errorf("modules that go.sum has sums of (-want +got):\n%s", diff)
	}
}

func TestPackagesAreProvidedByTheModuleWithTheLongestPath(t *testing.T) {
	t.Parallel()
	m := load(t, tree(t, map[string]string{"cmd/go.mod": goMod}), "cmd")
	for pkg, want := range map[string]string{
		"example.com/folder":          "v0.0.0",
		"example.com/folder/sub":      "v0.0.0",
		"example.com/folder/nested":   "v0.1.0",
		"example.com/folder/nested/x": "v0.1.0",
		"example.com/folderolder":     "",
		"example.com":                 "",
		"fmt":                         "",
	} {
		if got := m.Version(pkg); got != want {
			t.Errorf("%s is of version %q, want %q", pkg, got, want)
		}
	}
	if r, ok := m.Require("example.com/self"); !ok || r.Version != "v0.0.0" || r.Sum != "" {
		t.Errorf("it requires %+v", r)
	}
	if r, ok := m.Require("example.com/self/sub"); ok {
		t.Errorf("it requires %+v, which is a package", r)
	}
}

func TestPathsInProxiesAndCachesAreEscaped(t *testing.T) {
	t.Parallel()
	v := Version{"github.com/Big/B", "v2.0.0+Incompatible"}
	if got, err := v.ProxyPath(); err != nil || got != "github.com/!big/!b/@v/v2.0.0+!incompatible" {
		t.Errorf("in a proxy: %s, %v", got, err)
	}
	if got, err := v.CachePath(); err != nil || got != "github.com/!big/!b@v2.0.0+!incompatible" {
		t.Errorf("in a cache: %s, %v", got, err)
	}
	for _, v := range []Version{{"not a path", "v1.0.0"}, {"example.com/a", "v1/0"}} {
		if got, err := v.ProxyPath(); err == nil {
			t.Errorf("%s: %s", v, got)
		}
	}
}

func TestModulesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"module\n": "go.mod:1:", "go 1.26\n": "names no module"} {
		if _, err := Load(tree(t, map[string]string{"cmd/go.mod": text}), "cmd"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %s", err, want)
		}
	}
	if _, err := Load(t.TempDir(), "cmd"); !os.IsNotExist(err) {
		t.Errorf("error %v without a go.mod", err)
	}
}

func TestModulesReplacedByFoldersAreInputs(t *testing.T) {
	t.Parallel()
	outside := filepath.ToSlash(tree(t, map[string]string{"go.mod": "module example.com/outside\n"}))
	root := tree(t, map[string]string{
		"fork/go.mod": "", "fork/LICENSE": "", "fork/pkg/a.go": "", "fork/.git/index": "", "fork/_output/bin/kubectl": "",
		"cmd/go.mod": `module slipway.build/cmd

replace (
	example.com/fork => example.com/forked v1.0.0
	example.com/outside => ` + outside + `
	k8s.io/kubernetes => ../fork
)
`})
	want := []string{outside + "/go.mod", "cmd/go.mod", "cmd/go.sum", "fork/LICENSE", "fork/go.mod", "fork/pkg/"}
	if got, err := load(t, root, "cmd").Inputs(); err != nil || !cmp.Equal(want, got) {
		t.Errorf("inputs %q, %v, want %q", got, err, want)
	}
	if err := os.Remove(filepath.Join(root, "fork", "go.mod")); err != nil {
		t.Fatal(err)
	}
	_, err := load(t, root, "cmd").Inputs()
	if err == nil || !strings.Contains(err.Error(), filepath.FromSlash("cmd/go.mod")+":6: k8s.io/kubernetes is replaced by a folder that is "+
		"not a module") {
		t.Errorf("error %v", err)
	}
}

func TestModulesOfARepositoryBeginAlike(t *testing.T) {
	t.Parallel()
	for module, want := range map[string]string{
		"go.etcd.io/etcd/client/v3":        "go.etcd.io/etcd",
		"go.etcd.io/etcd/server/v3":        "go.etcd.io/etcd",
		"k8s.io/api":                       "k8s.io/api",
		"sigs.k8s.io/metrics-server":       "sigs.k8s.io/metrics-server",
		"github.com/coredns/coredns":       "github.com/coredns/coredns",
		"github.com/containerd/errdefs/v2": "github.com/containerd/errdefs",
		"github.com/owner/name/below/v3":   "github.com/owner/name",
		"golang.org/x/tools/gopls":         "golang.org/x/tools",
		"gopkg.in/yaml.v3":                 "gopkg.in/yaml",
		"example":                          "example",
	} {
		if got := Repository(module); got != want {
			t.Errorf("%s is in %s, want %s", module, got, want)
		}
	}
}
