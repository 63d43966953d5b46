package generate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/maintain/kubetest"
	"slipway.build/pkg/tree/patch"
)

// tests makes the files that Bazel reads for Kubernetes' tests. A tree that requires no Kubernetes, or replaces modules of it by folders,
// has none.
func (t bazelTree) tests(ctx context.Context, made map[string][]byte) error {
	var tested []string
	var only []goModule
	repository, err := patch.KubernetesRepository(t.components)
	if err == nil && !slices.ContainsFunc(repository.Places, t.isFolder) {
		if tested, only, err = t.testModules(ctx); err != nil {
			return err
		}
	}
	takePatched(only, t.patched)
	all := slices.Clone(only)
	for _, r := range t.components.Requires {
		if r.Sum != "" || r.Folder() != "" {
			all = append(all, goModule{path: r.Path})
		}
	}
	for i, m := range only {
		only[i].visitors = visitors(m, all)
	}
	sortModules(all)
	var direct []string // what versions.MODULE.bazel has
	for _, r := range t.components.Requires {
		if r.Direct {
			direct = append(direct, r.Path)
		}
	}
	for name, text := range map[string]string{
		bazelFolder + "/tests.bzl":          testDictionaries(tested, only),
		bazelFolder + "/tests.WORKSPACE":    repositories(all),
		bazelFolder + "/tests.MODULE.bazel": testRepositories(tested, direct),
	} {
		if made[name], err = formatted(name, text); err != nil {
			return err
		}
	}
	return nil
}

// isFolder reports whether a folder replaces a module.
func (t bazelTree) isFolder(p patch.Place) bool {
	required, _ := t.components.Require(p.Module)
	return required.Folder() != ""
}

// testModules returns Kubernetes' modules, and those that only tests may import.
func (t bazelTree) testModules(ctx context.Context) (tested []string, only []goModule, err error) {
	kubernetes, others, err := kubetest.TestModules(ctx, kubetest.Tree{Root: t.root, Components: t.catalog.Module, Go: t.tool})
	if err != nil {
		return nil, nil, err
	}
	for _, m := range kubernetes {
		tested = append(tested, m.Path)
	}
	slices.Sort(tested)
	empty, err := os.MkdirTemp("", "slipway-modules-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(empty)
	if err := os.WriteFile(filepath.Join(empty, "go.mod"), []byte("module slipway.invalid\n"), 0o666); err != nil {
		return nil, nil, err
	}
	var versions []string
	for _, m := range others {
		versions = append(versions, m.Version.String())
	}
	lines, err := goLines(ctx, t.tool, empty, versions)
	for _, m := range others {
		only = append(only, goModule{path: m.Path, version: m.Version.Version, required: m.Version.Version, sum: m.Sum, goLine: lines[m.Path]})
	}
	return tested, only, err
}

// testDictionaries returns the modules that Bazel needs for Kubernetes' tests, besides those of the components.
func testDictionaries(kubernetes []string, only []goModule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\"\"\"What Bazel needs to know for Kubernetes' own tests.\"\"\"\n\n")
	fmt.Fprintf(&b, "# Kubernetes' modules: their packages have targets of tests.\nTESTED = %s\n\n", lines(kubernetes))
	b.WriteString("# The modules that tests may import and no component links.\nTEST_MODULES = {\n")
	for _, m := range only {
		b.WriteString(m.entry())
	}
	b.WriteString("}\n")
	return b.String()
}

// testRepositories returns the part of MODULE.bazel with which users can name the repositories of Kubernetes' modules, but for those that
// it has already.
func testRepositories(kubernetes, has []string) string {
	var names []string
	for _, path := range kubernetes {
		if !slices.Contains(has, path) {
			names = append(names, goModule{path: path}.repository())
		}
	}
	text := "# Repositories of Kubernetes' modules, whose packages have targets of tests.\n" +
		"components = use_extension(\"//build/bazel:extensions.bzl\", \"components\")\n"
	if len(names) > 0 {
		text += "use_repo(components, " + strings.Trim(list(names), "[]") + ")\n"
	}
	return text
}
