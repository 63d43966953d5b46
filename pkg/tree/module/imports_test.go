package module

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var imports = map[string]string{
	"cmd/go.mod": "module slipway.build/cmd\n",
	"cmd/kubelet/main.go": "package main\n\nimport (\n\t_ \"fmt\"\n\t_ \"slipway.build/cmd/a\"\n\t_ \"slipway.build/cmdline\"\n)\n\n" +
		"func main() {}\n",
	"cmd/kubelet/main_windows.go": "package main\n\nimport _ \"slipway.build/cmd/windows\"\n",
	"cmd/a/a.go":                  "package a\n\nimport _ \"slipway.build/cmd\"\n",
	"cmd/a/broken.go":             "pack",
	"cmd/b/b.go":                  "package b\n\nimport _ \"slipway.build/cmd/c\"\n",
	"cmd/c/c.go":                  "package c\n\nimport _ \"slipway.build/cmd/b\"\n",
}

func TestClosureFollowsImportsWithinTheModule(t *testing.T) {
	t.Parallel()
	m := load(t, tree(t, imports), "cmd")
	for pkg, want := range map[string][]string{
		"./kubelet":                  {".", "a", "kubelet", "windows"}, // of all platforms, and the module's own root
		"./b":                        {"b", "c"},                       // a cycle ends
		"k8s.io/kubernetes/test/e2e": nil,                              // of another module
	} {
		if diff := cmp.Diff(want, m.Closure(pkg)); diff != "" {
			t.Errorf("closure of %s (-want +got):\n%s", pkg, diff)
		}
	}
}

func TestHeadsChangeWithImportsAlone(t *testing.T) {
	t.Parallel()
	root := tree(t, imports)
	before := load(t, root, "cmd").Heads("./kubelet")
	for _, test := range []struct {
		file, text string
		changed    bool
	}{
		{"cmd/kubelet/main.go", imports["cmd/kubelet/main.go"] + "\nvar more int\n", false},
		{"cmd/b/more.go", "package b\n", false}, // not in the closure
		{"cmd/a/a.go", "//go:build linux\n\n" + imports["cmd/a/a.go"], true},
		{"cmd/a/more.go", "package a\n", true},
		{"cmd/a/more.go", "package a\n\nimport _ \"fmt\"\n", true},
	} {
		write(t, filepath.Join(root, filepath.FromSlash(test.file)), test.text)
		after := load(t, root, "cmd").Heads("./kubelet")
		if (after != before) != test.changed {
			t.Errorf("%s: %q: changed is %v", test.file, test.text, after != before)
		}
		before = after
	}
}
