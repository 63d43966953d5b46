package codegen

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// sameDeclarations reports whether two versions of a Go file declare the same. They may differ in function bodies, and in imports if some
// are only added or only removed. No generator reads function bodies, so code that is generated from the file stays as it is.
func sameDeclarations(old, now []byte) bool {
	textOld, importsOld, ok1 := declarations(old)
	textNow, importsNow, ok2 := declarations(now)
	lacks := func(list []string) func(string) bool {
		return func(spec string) bool { return !slices.Contains(list, spec) }
	}
	removed, added := slices.ContainsFunc(importsOld, lacks(importsNow)), slices.ContainsFunc(importsNow, lacks(importsOld))
	return ok1 && ok2 && textOld == textNow && !(removed && added)
}

// declarations returns a Go file without function bodies and without imports, which are listed apart. It is not ok if the file cannot be
// parsed, or if an import has its names declared in the file ("."), or C's.
func declarations(data []byte) (text string, imports []string, ok bool) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", nil, false
	}
	var b strings.Builder
	at := 0
	skip := func(from, to token.Pos) {
		b.Write(data[at:files.Position(from).Offset])
		at = files.Position(to).Offset
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body != nil {
				skip(d.Body.Pos(), d.Body.End())
			}
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				skip(d.Pos(), d.End())
			}
		}
	}
	b.Write(data[at:])
	for _, spec := range f.Imports {
		name := ""
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." || spec.Path.Value == `"C"` {
			return "", nil, false
		}
		imports = append(imports, name+" "+spec.Path.Value)
	}
	return b.String(), imports, true
}
