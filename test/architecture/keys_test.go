package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	_ "slipway.build/pkg/make/plan" // imports all that makes outputs
	"slipway.build/pkg/mechanism/recipe"
)

// unkeyed lists packages that make outputs by actions whose recipe is not that of their own code, and why.
var unkeyed = map[string]string{
	"make/compile": "what compiles is run with is in the key as data: the flags, the environment and the version of Go, by road.Recipe",
}

// A maker is a package that declares its code, or has actions.
type maker struct {
	declares string   // the name by which it does
	actions  []string // where actions have another recipe than that of the declared code
	makes    bool
}

func TestActionsNameTheirCode(t *testing.T) {
	t.Parallel()
	var excused []string
	for pkg, m := range makers(t) {
		if m.declares != "" && m.declares != pkg {
			t.Errorf("pkg/%s declares its code as that of pkg/%s", pkg, m.declares)
		}
		if unkeyed[pkg] != "" {
			excused = append(excused, pkg)
			continue
		}
		for _, at := range m.actions {
			t.Errorf("%s: the action's recipe is not that of the package's code, see package recipe", at)
		}
		if m.makes && m.declares == "" {
			t.Errorf("pkg/%s has actions, and does not declare its code", pkg)
		}
	}
	if len(excused) != len(unkeyed) {
		t.Errorf("of the packages in unkeyed, only %q have actions", excused)
	}
}

// TestKeysCoverWhatIsLinked compares what codes cover with what the Go command says that they import, on any system.
func TestKeysCoverWhatIsLinked(t *testing.T) {
	t.Parallel()
	all := load(t)
	needed := map[string]bool{}
	for pkg, m := range makers(t) {
		if m.declares == "" {
			continue
		}
		code := recipe.Lookup(pkg)
		if code == nil {
			t.Errorf("pkg/%s declares its code, and nothing that makes outputs imports it", pkg)
			continue
		}
		linked := map[string]bool{}
		for _, packages := range all {
			closure(packages, module+"pkg/"+pkg, map[string]bool{}, linked, needed)
		}
		for name := range linked {
			if _, ok := code.Covers()[name]; !ok {
				t.Errorf("pkg/%s links %s, which is in no key", pkg, name)
			}
		}
		for name := range code.Covers() {
			if !linked[name] {
				t.Errorf("the code of pkg/%s covers %s, which it does not link", pkg, name)
			}
		}
	}
	for name, why := range recipe.Exempt {
		if !needed[name] || why == "" {
			t.Errorf("%s is exempt from keys, and nothing in them imports it, or no reason is given", name)
		}
	}
}

// closure adds what a package links, as [recipe.Code.Covers] names it: packages of this module from pkg/ on, and modules of others. It
// goes no further at what is exempt, which is then needed.
func closure(all map[string]*packages.Package, path string, seen, linked, needed map[string]bool) {
	p := all[path]
	if p == nil || p.Module == nil || seen[path] { // nil: not on this system, or in the standard library
		return
	}
	seen[path] = true
	name, ours := strings.CutPrefix(path, module)
	if !ours {
		name = p.Module.Path
	}
	if exempt := strings.TrimPrefix(name, "pkg/"); recipe.Exempt[exempt] != "" {
		needed[exempt] = true
		return
	}
	linked[name] = true
	for imported := range p.Imports {
		closure(all, imported, seen, linked, needed)
	}
}

// makers finds packages that declare their code or have actions, by the path from pkg/ on.
func makers(t *testing.T) map[string]*maker {
	t.Helper()
	found := map[string]*maker{}
	top := filepath.Join("..", "..", "pkg")
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == "testdata" {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(top, filepath.Dir(name))
		if err != nil {
			return err
		}
		m := found[filepath.ToSlash(pkg)]
		if m == nil {
			m = &maker{}
			found[filepath.ToSlash(pkg)] = m
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if selects(n.Fun, "recipe", "Of") && len(n.Args) == 2 {
					if name, ok := n.Args[0].(*ast.BasicLit); ok {
						m.declares, _ = strconv.Unquote(name.Value) // it was parsed
					}
				}
			case *ast.CompositeLit:
				if selects(n.Type, "action", "Action") && len(n.Elts) > 0 {
					m.makes = true
					if !ownRecipe(n) {
						m.actions = append(m.actions, fmt.Sprint(files.Position(n.Pos())))
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(found, func(_ string, m *maker) bool { return !m.makes && m.declares == "" })
	return found
}

// ownRecipe reports whether an action's Recipe is that of the package's code.
func ownRecipe(action *ast.CompositeLit) bool {
	return slices.ContainsFunc(action.Elts, func(e ast.Expr) bool {
		field, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		key, ok := field.Key.(*ast.Ident)
		call, calls := field.Value.(*ast.CallExpr)
		return ok && key.Name == "Recipe" && calls && (selects(call.Fun, "code", "Recipe") || selects(call.Fun, "Code", "Recipe"))
	})
}

func selects(e ast.Expr, of, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == of && s.Sel.Name == name
}
