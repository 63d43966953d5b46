package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClosureFollowsImportsWithinTheModule(t *testing.T) {
	t.Parallel()
	root := tree(t,
		file("cmd/kubelet/main.go", "package main\n\nimport (\n\t_ \"fmt\"\n\t_ \"slipway.build/cmd/a\"\n)\n\nfunc main() {}\n"),
		file("cmd/kubelet/main_windows.go", "package main\n\nimport _ \"slipway.build/cmd/windows\"\n"),
		file("cmd/a/a.go", "package a\n\nimport _ \"slipway.build/cmd\"\n"),
		file("cmd/a/broken.go", "pack"),
		file("cmd/b/b.go", "package b\n\nimport _ \"slipway.build/cmd/c\"\n"),
		file("cmd/c/c.go", "package c\n\nimport _ \"slipway.build/cmd/b\"\n"),
	)
	m, err := loadModule(root, "cmd")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		pkg  string
		want []string
	}{
		{"./kubelet", []string{".", "a", "kubelet", "windows"}}, // of all platforms, and the module's own top
		{"./b", []string{"b", "c"}},                             // a circle ends
		{"k8s.io/kubernetes/test/e2e", nil},                     // of another module
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, m.closure(tt.pkg)); diff != "" {
			t.Errorf("closure of %s (-want +got):\n%s", tt.pkg, diff)
		}
	}
}

func TestModulesReplacedByFoldersAreInputs(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "go.mod"), []byte("module example.com/outside\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	root := tree(t, file("fake/kubernetes/.git/index", ""), file("fake/kubernetes/_output/bin/kubectl", ""), file("cmd/go.mod", `module slipway.build/cmd

require k8s.io/kubernetes v1.36.3

replace (
	example.com/fork => example.com/forked v1.0.0
	example.com/outside => `+filepath.ToSlash(outside)+`
	k8s.io/kubernetes => ../fake/kubernetes
)
`))
	m, err := loadModule(root, "cmd")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		filepath.ToSlash(outside) + "/go.mod", "cmd/go.mod", "cmd/go.sum",
		"fake/kubernetes/LICENSE", "fake/kubernetes/go.mod", "fake/kubernetes/pkg/", "fake/kubernetes/test/",
	}
	if diff := cmp.Diff(want, m.inputs); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
}

func TestReplacementThatIsNoModuleIsNamedByLine(t *testing.T) {
	t.Parallel()
	root := tree(t)
	remove(t, root, "fake/kubernetes/go.mod")
	_, err := loadModule(root, "cmd")
	if err == nil || !strings.Contains(err.Error(), filepath.FromSlash("cmd/go.mod")+":7: k8s.io/kubernetes is replaced by a folder that is no module") {
		t.Errorf("error %v", err)
	}
}
