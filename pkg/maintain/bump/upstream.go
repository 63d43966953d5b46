package bump

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A testImage is an image that upstream's tests use: its name without the registry's host, and its version.
type testImage struct{ Name, Version string }

// Folders of k8s.io/kubernetes whose code names versions of other projects.
const (
	kubeadmConstants = "cmd/kubeadm/app/constants"
	imageManifest    = "test/utils/image"
)

// A checked package is one of another module, parsed and type-checked without the packages that it imports. That is enough for the values
// of constants, however they are written.
type checked struct {
	files []*ast.File
	pkg   *types.Package
	info  *types.Info
}

func check(module, folder string) (*checked, error) {
	dir := filepath.Join(module, filepath.FromSlash(folder))
	linux := build.Default
	linux.GOOS, linux.GOARCH, linux.CgoEnabled = "linux", "amd64", false
	found, err := linux.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	c := &checked{info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
	files := token.NewFileSet()
	for _, name := range found.GoFiles {
		f, err := parser.ParseFile(files, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, f)
	}
	// Without an importer, every import and every use of one is an error. Neither matters for the constants that are looked for.
	conf := types.Config{Error: func(error) {}}
	c.pkg, _ = conf.Check(found.ImportPath, files, c.files, c.info)
	return c, nil
}

// value returns the value of an expression if it is a constant text.
func (c *checked) value(e ast.Expr) (string, bool) {
	v := c.info.Types[e].Value
	if v == nil || v.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(v), true
}

// A named is a version of another project that Kubernetes names.
type named struct{ version, why string }

// namedVersions returns the versions that Kubernetes names, by the names of the projects' folders below images/: in constants of
// kubeadm, and in build/dependencies.yaml, the list by which upstream checks that its files agree.
func namedVersions(kubernetes string) (map[string]named, error) {
	c, err := check(kubernetes, kubeadmConstants)
	if err != nil {
		return nil, err
	}
	versions := map[string]named{}
	for project, name := range map[string]string{"pause": "PauseVersion", "etcd": "DefaultEtcdVersion", "coredns": "CoreDNSVersion"} {
		value, ok := c.pkg.Scope().Lookup(name).(*types.Const)
		if !ok || value.Val().Kind() != constant.String {
			return nil, fmt.Errorf("%s has no constant %s with a text", kubeadmConstants, name)
		}
		versions[project] = named{constant.StringVal(value.Val()), "kubeadm names it"}
	}
	file := filepath.Join(kubernetes, "build", "dependencies.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list struct {
		Dependencies []struct{ Name, Version string }
	}
	if err := yaml.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, d := range list.Dependencies {
		if d.Name == "cni" && d.Version != "" {
			versions["cni-plugins"] = named{"v" + strings.TrimPrefix(d.Version, "v"), "Kubernetes names it"}
		}
	}
	return versions, nil
}

// namedVersions returns the versions that the tree's Kubernetes names.
func (s *session) namedVersions(ctx context.Context) (map[string]named, error) {
	k, err := s.proxy.fetch(ctx, requirement{Path: kubernetes, Version: s.catalog.Kubernetes})
	if err != nil {
		return nil, err
	}
	return namedVersions(k[0].Dir)
}

// testImages returns the images that upstream's tests use, by the names of their IDs in package k8s.io/kubernetes/test/utils/image.
// There, a function fills a map:
//
//	configs[Agnhost] = Config{list.PromoterE2eRegistry, "agnhost", "2.66.1"}
//
// and a variable initRegistry has the names of the registries.
func testImages(kubernetes string) (map[string]testImage, error) {
	c, err := check(kubernetes, imageManifest)
	if err != nil {
		return nil, err
	}
	registries := map[string]string{}
	images := map[string]testImage{}
	visit := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			key, ok := n.Key.(*ast.Ident)
			if text, isText := c.value(n.Value); ok && isText {
				registries[key.Name] = text
			}
		case *ast.AssignStmt:
			if id, image, ok := c.config(n, registries); ok {
				images[id] = image
			}
		}
		return true
	}
	for range 2 { // the registries may be declared after the images
		for _, f := range c.files {
			ast.Inspect(f, visit)
		}
	}
	if len(images) == 0 {
		return nil, fmt.Errorf("%s has no line like configs[Agnhost] = Config{list.PromoterE2eRegistry, \"agnhost\", \"2.66.1\"}", imageManifest)
	}
	return images, nil
}

// config reads an assignment of an image.
func (c *checked) config(n *ast.AssignStmt, registries map[string]string) (id string, image testImage, ok bool) {
	if len(n.Lhs) != 1 || len(n.Rhs) != 1 {
		return "", image, false
	}
	index, isIndex := n.Lhs[0].(*ast.IndexExpr)
	literal, isLiteral := n.Rhs[0].(*ast.CompositeLit)
	if !isIndex || !isLiteral || len(literal.Elts) != 3 {
		return "", image, false
	}
	name, isName := index.Index.(*ast.Ident)
	registry, isField := literal.Elts[0].(*ast.SelectorExpr)
	base, hasBase := c.value(literal.Elts[1])
	version, hasVersion := c.value(literal.Elts[2])
	if !isName || !isField || !hasBase || !hasVersion {
		return "", image, false
	}
	_, folder, _ := strings.Cut(registries[registry.Sel.Name], "/")
	return name.Name, testImage{path.Join(folder, base), version}, true
}

// goVersion returns the Go that a version of Kubernetes is compiled by upstream: go1.26.8. If it names none, that is "".
func goVersion(k *upstream) (string, error) {
	data, err := os.ReadFile(filepath.Join(k.Dir, ".go-version"))
	switch {
	case err == nil:
		return "go" + strings.TrimSpace(string(data)), nil
	case !errors.Is(err, os.ErrNotExist):
		return "", err
	case k.mod.Toolchain != nil:
		return k.mod.Toolchain.Name, nil
	}
	return "", nil
}
