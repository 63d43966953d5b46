package bazel

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/tree/patch"
)

// testsFile has the modules that only tests need.
const testsFile = "build/bazel/generated/tests.bzl"

// repository matches the lines of generated files that map a module to its repository.
var repository = regexp.MustCompile(`(?m)^    "([^"]+)": struct\(name = "([^"]+)"`)

// Patterns returns Bazel's patterns of packages for words as users of make write them: import paths ("k8s.io/client-go/rest"), folders of
// the tree ("./cmd/..."), and folders of upstream's repository ("pkg/scheduler/...", "staging/src/k8s.io/api"). Bazel's own patterns
// ("//cmd/...", "@io_k8s_api//...") stay as they are. It is an error if a word names no folder of the tree and no module.
func Patterns(root string, words []string) ([]string, error) {
	repositories := map[string]string{} // by module
	for _, name := range []string{configFile, testsFile} {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		for _, match := range repository.FindAllStringSubmatch(string(data), -1) {
			repositories[match[1]] = match[2]
		}
	}
	var patterns []string
	var unknown []error
	for _, word := range words {
		pattern, err := pattern(root, repositories, word)
		patterns, unknown = append(patterns, pattern), append(unknown, err)
	}
	return patterns, errors.Join(unknown...)
}

func pattern(root string, repositories map[string]string, word string) (string, error) {
	if strings.Contains(word, "//") {
		return word, nil
	}
	name, below := strings.CutSuffix(word, "/...")
	targets := ":all" // of one package
	if below {
		targets = "/..."
	}
	if strings.Contains(name, "...") {
		return "", badrequest.Mark(fmt.Errorf("%s: Bazel has ... only for all that is below a folder", word))
	}
	name = path.Clean(name)
	if info, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); filepath.IsLocal(name) && err == nil && info.IsDir() {
		return "//" + strings.TrimPrefix(strings.TrimPrefix(name, ".")+targets, "/"), nil
	}
	pkg := strings.TrimPrefix(strings.TrimPrefix(name, "vendor/"), "staging/src/")
	if first, _, _ := strings.Cut(pkg, "/"); !strings.Contains(first, ".") {
		pkg = path.Join(patch.Kubernetes, pkg)
	}
	for mod := pkg; mod != "."; mod = path.Dir(mod) {
		if repository, ok := repositories[mod]; ok {
			return "@" + repository + "//" + strings.TrimPrefix(strings.TrimPrefix(pkg, mod)+targets, "/"), nil
		}
	}
	return "", suggest.Unknown("module of package", word, slices.Sorted(maps.Keys(repositories)))
}
