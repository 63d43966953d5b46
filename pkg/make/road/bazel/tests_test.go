package bazel

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// testedTree has two modules of Kubernetes, another module that only tests import, and a component.
func testedTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		configFile: "MODULES = {\n    \"k8s.io/kubernetes\": struct(name = \"io_k8s_kubernetes\", language = \"1.26\"),\n" +
			"    \"k8s.io/client-go\": struct(name = \"io_k8s_client_go\"),\n}\n",
		testsFile:              "TEST_MODULES = {\n    \"k8s.io/code-generator\": struct(name = \"io_k8s_code_generator\"),\n}\n",
		"cmd/kubectl/main.go":  "package main\n",
		"pkg/scheduler/any.go": "package scheduler\n",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestPackagesHavePatternsOfBazel(t *testing.T) {
	t.Parallel()
	root := testedTree(t)
	for word, want := range map[string]string{
		"k8s.io/client-go/rest":                       "@io_k8s_client_go//rest:all",
		"k8s.io/client-go/...":                        "@io_k8s_client_go//...",
		"k8s.io/client-go":                            "@io_k8s_client_go//:all",
		"k8s.io/code-generator/cmd/...":               "@io_k8s_code_generator//cmd/...",
		"k8s.io/kubernetes/pkg/scheduler/...":         "@io_k8s_kubernetes//pkg/scheduler/...",
		"plugin/pkg/...":                              "@io_k8s_kubernetes//plugin/pkg/...",
		"./staging/src/k8s.io/client-go/tools/...":    "@io_k8s_client_go//tools/...",
		"vendor/k8s.io/client-go/rest":                "@io_k8s_client_go//rest:all",
		"./cmd/kubectl":                               "//cmd/kubectl:all",
		"cmd/...":                                     "//cmd/...",
		"./...":                                       "//...",
		"pkg/scheduler":                               "//pkg/scheduler:all", // a folder of the tree comes first
		"//cmd/...":                                   "//cmd/...",
		"@io_k8s_api//core/v1:v1_test":                "@io_k8s_api//core/v1:v1_test",
		"-@io_k8s_kubernetes//pkg/scheduler/util/...": "-@io_k8s_kubernetes//pkg/scheduler/util/...",
	} {
		if got, err := Patterns(root, []string{word}); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %v, %v, not %s", word, got, err, want)
		}
	}
	for word, want := range map[string]string{
		"k8s.io/client-goo/rest":    "k8s.io/client-go",
		"k8s.io/...":                "k8s.io/...",
		"k8s.io/client-go/.../rest": "...",
	} {
		if got, err := Patterns(root, []string{"k8s.io/client-go/rest", word}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", word, got, err)
		}
	}
}
