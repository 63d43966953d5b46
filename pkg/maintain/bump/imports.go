package bump

import (
	"bytes"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// notIn marks an import that the module's version does not have, so that it comes back with one that has it.
var notIn = regexp.MustCompile(`^(\s*)// (_ "([^"]+)") // not in v\S+$`)

// adaptImports makes the programs of our own in a folder fit other versions of modules. A package that is imported for its effects
// alone, such as a plugin, is left out while there is no such package. Any other import of a missing package is an error.
func (p *preparation) adaptImports(folder string, modules []fetched) error {
	var missing []error
	err := fs.WalkDir(os.DirFS(copyDir(p.Root)), folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".go" {
			return err
		}
		data, err := os.ReadFile(p.file(name))
		if err != nil {
			return err
		}
		adapted, dropped, err := adapt(name, data, modules)
		if err != nil {
			missing = append(missing, err)
			return nil
		}
		for _, d := range dropped {
			p.note("%s leaves out %s", name, d)
		}
		if bytes.Equal(adapted, data) {
			return nil
		}
		return p.write(name, adapted)
	})
	return errors.Join(append(missing, err)...)
}

// adapt returns a Go file that imports nothing that modules lack, and a text for each import that it no longer has.
func adapt(name string, data []byte, modules []fetched) (adapted []byte, dropped []string, err error) {
	lines := strings.Split(string(data), "\n")
	wasOut := map[string]bool{}
	for i, line := range lines {
		if part := notIn.FindStringSubmatch(line); part != nil {
			if m, _ := provides(modules, part[3]); m.Path != "" {
				lines[i], wasOut[part[3]] = part[1]+part[2], true
			}
		}
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, strings.Join(lines, "\n"), parser.ImportsOnly)
	if err != nil {
		return nil, nil, err
	}
	for _, spec := range f.Imports {
		pkg, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, nil, err
		}
		m, has := provides(modules, pkg)
		if has {
			continue
		}
		n := files.Position(spec.Pos()).Line
		indent, isBlank := strings.CutSuffix(lines[n-1], `_ "`+pkg+`"`)
		if !isBlank || strings.TrimSpace(indent) != "" {
			return nil, nil, fmt.Errorf("%s:%d: it imports %s, which %s does not have", name, n, pkg, m.requirement)
		}
		lines[n-1] = indent + `// _ "` + pkg + `" // not in ` + m.Version
		if !wasOut[pkg] {
			dropped = append(dropped, fmt.Sprintf("%s, which %s does not have", pkg, m.Version))
		}
	}
	return []byte(strings.Join(lines, "\n")), dropped, nil
}

// provides returns the module whose path a package has, and reports whether that module contains the package. It reports true for a package
// of no module in the list.
func provides(modules []fetched, pkg string) (longest fetched, has bool) {
	for _, m := range modules {
		if (pkg == m.Path || strings.HasPrefix(pkg, m.Path+"/")) && len(m.Path) > len(longest.Path) {
			longest = m
		}
	}
	if longest.Path == "" {
		return longest, true
	}
	sources, _ := filepath.Glob(filepath.Join(longest.Dir, filepath.FromSlash(strings.TrimPrefix(pkg, longest.Path)), "*.go"))
	return longest, len(sources) > 0
}
