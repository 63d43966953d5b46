package generate

import (
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"slipway.build/pkg/cli"
	"slipway.build/pkg/mechanism/suggest"
)

// magefiles is the folder of a tree with targets of its own.
const magefiles = "magefiles"

// A target is a mage target, under the name that make has for it.
type target struct {
	name     string
	comment  string
	argument bool // it takes an argument, so make has other goals for it
}

// synopsis returns the first sentence of the comment, without the function's name.
func (t target) synopsis() string {
	_, after, _ := strings.Cut(new(doc.Package).Synopsis(t.comment), " ")
	return after
}

// underscored maps names of targets to those that Kubernetes spells otherwise.
var underscored = map[string]string{"generated-files": "generated_files"}

// targets reads slipway's targets and those in folders of the tree, in the order of their names.
func (t Tree) targets(folders ...string) ([]target, error) {
	all, err := targetsIn(t.Targets, ".")
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		own, err := targetsIn(os.DirFS(t.Root), folder)
		if err != nil {
			return nil, err
		}
		all = append(all, own...)
	}
	slices.SortFunc(all, func(a, b target) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// targetsIn reads the targets in a folder of Go files: its exported functions, but those of types, that mage can call.
func targetsIn(fsys fs.FS, dir string) ([]target, error) {
	names, err := fs.Glob(fsys, path.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var found []target
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, data, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !f.Name.IsExported() {
				continue
			}
			t := target{name: dashed(f.Name.Name), comment: f.Doc.Text()}
			if name, ok := underscored[t.name]; ok {
				t.name = name
			}
			for _, param := range f.Type.Params.List {
				if selector, ok := param.Type.(*ast.SelectorExpr); !ok || selector.Sel.Name != "Context" {
					t.argument = true
				}
			}
			found = append(found, t)
		}
	}
	return found, nil
}

// dashed returns a name as make spells it: quick-release for QuickRelease.
func dashed(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Help prints every target of make with the first sentence of its comment.
func (t Tree) Help(w io.Writer) error {
	all, err := t.targets(magefiles)
	if err != nil {
		return err
	}
	fmt.Fprint(w, "usage: make [TARGET] [VARIABLE=value ...]      (make -n TARGET prints what would be done)\n\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, t := range all {
		name := t.name
		if t.argument {
			name = strings.ToUpper(name)
		}
		fmt.Fprintf(table, "  %s\t%s\n", name, t.synopsis())
	}
	return table.Flush()
}

// HelpFor prints the whole comment of a target. A name that is no target's is a component's.
func (t Tree) HelpFor(w io.Writer, name string) error {
	all, err := t.targets(magefiles)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(t target) bool { return t.name == name && !t.argument })
	if i < 0 {
		i = slices.IndexFunc(all, func(t target) bool { return t.argument })
	}
	_, err = fmt.Fprintf(w, "make %s\n\n%s\n", name, strings.TrimSpace(all[i].comment))
	return err
}

// Goal explains the error of a goal of make that was built as a component. A goal that is not a component may be a misspelled target,
// or a target that make does not know yet.
func (t Tree) Goal(name string, err error) error {
	unknown, ok := errors.AsType[*suggest.UnknownError](err)
	if !ok || unknown.Kind != "component" {
		return err
	}
	all, failed := t.targets(magefiles)
	if failed != nil {
		return errors.Join(err, failed)
	}
	names := unknown.Near
	for _, t := range all {
		if t.name == name && !t.argument {
			return fmt.Errorf("target %s is not in %s: run make update", name, targetsFile)
		}
		names = append(names, t.name)
	}
	near := "; see make help and slipway catalog"
	if found := suggest.Near(name, names); len(found) > 0 {
		near = suggest.DidYouMean(found)
	}
	return &cli.ExitError{Err: fmt.Errorf("unknown target or component %q%s", name, near), Code: 2}
}
