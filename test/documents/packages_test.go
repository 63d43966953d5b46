package documents

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// suites are the names of test suites in JUnit's XML, which are those of the commands that write them.
var suites = []string{"slipway cluster verify ", "slipway cluster conformance "}

// Which command comes next depends on how the user started the work, which only the command line knows.
func TestPackagesNameNoCommands(t *testing.T) {
	t.Parallel()
	tree := known(t)
	named := regexp.MustCompile(`\b(slipway|make) ([a-z][a-z-]*)`)
	packages(t, func(name string, f *ast.File) {
		if strings.HasPrefix(name, "pkg/cli/") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			l, ok := n.(*ast.BasicLit)
			if !ok || l.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(l.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, suite := range suites {
				text = strings.TrimPrefix(text, suite)
			}
			for _, m := range named.FindAllStringSubmatch(text, -1) {
				if tree.command(strings.Fields(m[0])) == nil {
					t.Errorf("%s: %q names the command %q: say what failed, and add the advice in pkg/cli/advice.go", name, text, m[0])
				}
			}
			return true
		})
	})
}

// A snippet that nothing compiles says one day what was true once.
func TestCommentsHaveNoSnippetsInGo(t *testing.T) {
	t.Parallel()
	packages(t, func(name string, f *ast.File) {
		for _, c := range f.Comments {
			for _, block := range new(comment.Parser).Parse(c.Text()).Content {
				code, ok := block.(*comment.Code)
				if ok && isGo(code.Text) {
					t.Errorf("%s: a snippet in Go, which nothing compiles: make it an Example function\n%s", name, code.Text)
				}
			}
		}
	})
}

func TestGoIsRecognized(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"err := g.Run(ctx)\n":              true,
		"var Recipe = recipe.Of(f)\n":      true,
		"for … {\n\tgo on\n}\n":            true,
		"view.Close() // at the end\n":     true,
		"make test    what must pass\n":    false,
		"go list -deps PACKAGE...\n":       false,
		"lock    the lock, with its PID\n": false,
		"- {name: kubectl, sets: [a]}\n":   false,
	} {
		if got := isGo(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// isGo reports whether a block of a comment has a statement or a declaration in Go.
func isGo(text string) bool {
	return regexp.MustCompile(`(?m):= |^(var|const|func|type|for|if) .*[={]|^\w+\.\w+\(`).MatchString(text)
}

// packages parses all sources of pkg/ but tests.
func packages(t *testing.T, each func(name string, f *ast.File)) {
	t.Helper()
	fset := token.NewFileSet()
	count := 0
	err := filepath.WalkDir(filepath.Join(root, "pkg"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		each(filepath.ToSlash(name), f)
		count++
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 100 {
		t.Errorf("found only %d sources", count)
	}
}
