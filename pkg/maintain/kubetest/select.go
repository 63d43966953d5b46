package kubetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
)

// A Group is what one run of go test tests.
type Group struct {
	Packages []string
	Flags    []string // of the compile
}

// A listedPackage is what `go list` says about a package.
type listedPackage struct {
	ImportPath   string
	ForTest      string // for the test of which package this variant is compiled
	Imports      []string
	TestGoFiles  []string
	XTestGoFiles []string
	TestImports  []string
	XTestImports []string
	DepOnly      bool
	Error        *struct{ Err string }
}

func (p listedPackage) tested() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// noTest is the build tag by which releases leave out the functions that fill API types with random values.
const noTest = "notest"

// randfill is the package that calls these functions by reflection. Without them, a test compiles, but fills in values that no API object
// can have.
const randfill = "sigs.k8s.io/randfill"

// pathReaders are packages that read the path of their source, which -trimpath shortens. True: every test that links the package needs
// upstream's flags. False: only the package's own tests do. Test servers read paths, too: see Sources.link.
var pathReaders = map[string]bool{
	"k8s.io/apimachinery/pkg/util/naming":                    false, // compares the path with the package's
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil/testing": true,  // keeps private keys beside it

	// These expect paths in their output.
	"k8s.io/kubernetes/test/e2e/framework":                               false,
	"k8s.io/kubernetes/test/e2e/framework/internal/unittests/bugs":       false,
	"k8s.io/kubernetes/test/e2e/framework/internal/unittests/cleanup":    false,
	"k8s.io/kubernetes/test/e2e/framework/internal/unittests/list-tests": false,
	"k8s.io/kubernetes/test/e2e/framework/pod":                           false,
}

// Select finds the packages that patterns of import paths name, and sorts those that have tests by how they are compiled: with a
// release's flags, or with upstream's if the test fills API types with random values or reads paths of sources.
//
// It is an error if the patterns name no package with tests.
func (s *Sources) Select(ctx context.Context, patterns, tags []string) ([]Group, error) {
	all, err := s.list(ctx, patterns, "-test", "-deps", "-tags="+strings.Join(tags, ","))
	if err != nil {
		return nil, err
	}
	var tested []string          // in go list's order
	special := map[string]bool{} // packages that fill API types or read paths, directly or not
	apart := map[string]bool{}   // packages whose tests need upstream's flags
	var problems []error         // one for each package that go list does not find
	for _, p := range all {
		// Dependencies come before what imports them.
		special[p.ImportPath] = !strings.HasPrefix(p.ImportPath, "k8s.io/kube-openapi/") && slices.Contains(p.Imports, randfill) ||
			pathReaders[p.ImportPath] || slices.ContainsFunc(p.Imports, func(dep string) bool { return dep != randfill && special[dep] })
		switch test, isTest := strings.CutSuffix(p.ImportPath, ".test"); {
		case isTest && special[p.ImportPath]:
			apart[test] = true
		case isTest || p.ForTest != "" || p.DepOnly:
		case p.tested():
			tested = append(tested, p.ImportPath) // go test says what is wrong with it, if anything is
		case p.Error != nil && slices.Contains(patterns, p.ImportPath):
			problems = append(problems, errors.New(strings.TrimSpace(p.Error.Err)))
		}
	}
	if len(problems) > 0 {
		return nil, badrequest.Mark(errors.Join(problems...))
	}
	if len(tested) == 0 {
		return nil, badrequest.Mark(fmt.Errorf("%s: no package there has tests%s", strings.Join(patterns, " "), s.suggestUpstream(patterns)))
	}
	return split(tested, func(pkg string) bool {
		_, reads := pathReaders[pkg]
		return apart[pkg] || reads
	}, tags), nil
}

// suggestUpstream suggests upstream's packages in the folders that patterns name in the tree: the tree's cmd/kubectl has no tests, but
// k8s.io/kubernetes/cmd/kubectl may.
func (s *Sources) suggestUpstream(patterns []string) string {
	var names []string
	for _, pattern := range patterns {
		own, inside := strings.CutPrefix(pattern, "./")
		folder, rest := cutPattern(own)
		folder = path.Join(s.Components, folder)
		if pkg, ok := s.importPath(folder); inside && ok && isFolder(s.Repository, folder) {
			names = append(names, path.Join(pkg, rest))
		}
	}
	return suggest.DidYouMean(names)
}

// list runs go list. A package that is not found has an Error.
func (s *Sources) list(ctx context.Context, patterns []string, flags ...string) ([]listedPackage, error) {
	var stdout, stderr bytes.Buffer
	flags = append(flags, "-e", "-trimpath", "-buildvcs=false",
		"-json=ImportPath,ForTest,Imports,TestGoFiles,XTestGoFiles,TestImports,XTestImports,DepOnly,Error")
	cmd := s.Command(ctx, "", "", "list", append(flags, patterns...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, explain("go list", err, stderr.String())
	}
	var all []listedPackage
	for d := json.NewDecoder(&stdout); ; {
		var p listedPackage
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, explain("go list", err, stderr.String())
		}
		all = append(all, p)
	}
}

// notUnit are packages whose tests are no unit tests. Upstream's make test leaves them out, too, unless they are named. A name that
// ends with a slash includes the packages below it.
var notUnit = []string{
	"k8s.io/kubernetes/third_party/", "k8s.io/kubernetes/cmd/kubeadm/test/", "k8s.io/kubernetes/test/e2e", "k8s.io/kubernetes/test/e2e_dra",
	"k8s.io/kubernetes/test/e2e_node/", "k8s.io/kubernetes/test/e2e_kubeadm/",
}

// isUnit reports whether go test alone can run the tests of a package: they need no cluster, node or etcd.
func isUnit(pkg string) bool {
	return !strings.Contains(pkg+"/", "/test/integration/") && !slices.ContainsFunc(notUnit, func(name string) bool {
		return pkg == strings.TrimSuffix(name, "/") || strings.HasSuffix(name, "/") && strings.HasPrefix(pkg, name)
	})
}

// split groups packages by the flags that their tests need.
func split(packages []string, needsUpstream func(string) bool, tags []string) []Group {
	own := slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { return tag == noTest })
	groups := []Group{
		{Flags: []string{"-buildvcs=false", "-trimpath", "-tags=" + strings.Join(tags, ",")}},
		{Flags: []string{"-buildvcs=false", "-tags=" + strings.Join(own, ",")}},
	}
	for _, pkg := range packages {
		g := &groups[0]
		if needsUpstream(pkg) {
			g = &groups[1]
		}
		g.Packages = append(g.Packages, pkg)
	}
	return slices.DeleteFunc(groups, func(g Group) bool { return len(g.Packages) == 0 })
}

// Units lists the packages of Kubernetes with unit tests, as upstream's make test finds them, sorted.
func (s *Sources) Units(ctx context.Context) ([]string, error) {
	units, err := s.units(ctx)
	var names []string
	for _, p := range units {
		names = append(names, p.ImportPath)
	}
	slices.Sort(names)
	return names, err
}

func (s *Sources) units(ctx context.Context) ([]listedPackage, error) {
	var patterns []string
	for modulePath := range s.Modules {
		patterns = append(patterns, modulePath+"/...")
	}
	slices.Sort(patterns)
	all, err := s.list(ctx, patterns)
	return slices.DeleteFunc(all, func(p listedPackage) bool { return !p.tested() || !isUnit(p.ImportPath) }), err
}
