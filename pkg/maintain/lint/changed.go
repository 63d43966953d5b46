package lint

import (
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// hunk matches the line that begins a hunk of a unified diff.
var hunk = regexp.MustCompile(`^@@ -\S+ \+(\d+)`)

// changedLines returns the numbers, from 1, of the lines of a file that its older content does not have.
func changedLines(old, now []byte) map[int]bool {
	changed := map[int]bool{}
	row := 0
	for line := range strings.Lines(string(diff.Diff("old", old, "now", now))) {
		if m := hunk.FindStringSubmatch(line); m != nil {
			row, _ = strconv.Atoi(m[1])
		} else if row > 0 && line[0] != '-' && line[0] != '\\' {
			changed[row] = line[0] == '+'
			row++
		}
	}
	return changed
}

// changeImports reports whether an edit of a file may change what imports what, or what may.
func changeImports(name string, old, now []byte) bool {
	if path.Ext(name) != ".go" {
		return path.Base(name) == ".import-restrictions" || path.Base(name) == "go.mod"
	}
	return head(old) != head(now)
}

// head returns a Go file up to its last import, with the constraints of its builds: all of it if it cannot be read.
func head(data []byte) string {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", data, parser.ImportsOnly)
	if err != nil {
		return string(data)
	}
	end := f.Name.End()
	if n := len(f.Decls); n > 0 {
		end = f.Decls[n-1].End()
	}
	return string(data[:files.Position(end).Offset])
}
