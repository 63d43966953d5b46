package bump

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

func TestProjectsShareTheModulesOfTheComponents(t *testing.T) {
	t.Parallel()
	const before = `module example.com/project
go 1.25.0
require (
	example.com/tool v1.0.0
	k8s.io/older v0.36.0 // indirect
	k8s.io/newer v0.39.0 // indirect
	example.com/own v1.0.0 // indirect
)
`
	const after = `module example.com/project

go 1.26.0

require example.com/tool v1.0.0

require (
	example.com/own v1.0.0 // indirect
	k8s.io/newer v0.39.0 // indirect
	k8s.io/older v0.37.0 // indirect
)

godebug default=go1.25
`
	w := wanted{Go: "1.25.0", Own: []string{"example.com/tool"}, Replace: []requirement{}, Versions: map[string]string{
		"example.com/tool": "v1.0.0", "k8s.io/older": "v0.36.0", "k8s.io/newer": "v0.39.0",
		"example.com/own": "v1.0.0",
	}}
	w.Indirect = slices.Collect(maps.Keys(w.Versions))
	w.share(&wanted{Go: "1.26.0", Versions: map[string]string{
		"example.com/tool": "v9.0.0", "k8s.io/older": "v0.37.0", "k8s.io/newer": "v0.37.0", "k8s.io/unused": "v0.37.0",
	}})
	f, err := modfile.Parse("go.mod", []byte(before), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.rewrite(f); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Format(); err != nil || string(got) != after {
		t.Errorf("got:\n%s\nwant:\n%s", got, strings.TrimSpace(after))
	}
}

// A project with an older Kubernetes' modules does not share those of the components, and a bump leaves it so.
func TestAProjectWithOlderModulesIsApart(t *testing.T) {
	t.Parallel()
	p := &preparation{session: &session{catalog: &catalog.Catalog{Kubernetes: "v1.35.4"}}, was: &wanted{Versions: map[string]string{
		"k8s.io/kubernetes": "v1.35.4", "k8s.io/api": "v0.35.4", "k8s.io/cri-api": "v0.35.4", "golang.org/x/sys": "v0.41.0",
	}}}
	p.catalog.Binaries = []catalog.Binary{{Name: "tool", Module: "images/tool", Sets: []catalog.Set{catalog.Server}}}
	for text, want := range map[string]bool{
		"k8s.io/api v0.34.0":                                true,
		"k8s.io/api v0.35.4":                                false,
		"k8s.io/api v0.36.0":                                false,
		"golang.org/x/sys v0.30.0":                          false, // not of Kubernetes
		"k8s.io/klog/v2 v2.1.0":                             false,
		"k8s.io/api v0.35.4\n\tk8s.io/cri-api v0.34.0-rc.2": true,
	} {
		root := t.TempDir()
		goMod := "module example.com/tool\n\nrequire (\n\t" + text + "\n)\n"
		if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte(goMod), 0o666); err != nil {
			t.Fatal(err)
		}
		m, err := module.Load(root, ".")
		if err != nil {
			t.Fatal(err)
		}
		if got := p.apart(project{goMod: m, folder: "images/tool"}); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
