package generate

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"slipway.build/pkg/make/toolchain"
)

// surroundings lists variables that need no row, since they are not slipway's: those of the system, of make, of tests, and those that the
// go command has for its linker.
var surroundings = []string{"PATH", "HOME", "XDG_CACHE_HOME", "MAKEFLAGS", "ACTION_TEST_GRAPH", "NODE", "WORK",
	"TOOLEXEC_IMPORTPATH", "GOOS", "GOARCH", "GO_EXTLINK_ENABLED"}

func TestVariablesAreDocumentedWhereTheyAreRead(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	rows := variables(t, root)
	documented := map[string][]string{}
	for _, r := range rows {
		for _, name := range r.names {
			documented[name] = r.folders
		}
	}
	read := regexp.MustCompile(`(?:[Gg]etenv|LookupEnv|\bo\.has)\("([A-Za-z_]+)"\)`)
	text := map[string]string{} // of all Go files, by folder; that of all tests under "tests"
	for _, top := range []string{"pkg", "magefiles", "test", "build"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(file string, d os.DirEntry, err error) error {
			if err != nil || filepath.Ext(file) != ".go" {
				return err
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, filepath.Dir(file))
			folder := filepath.ToSlash(rel)
			if strings.HasSuffix(file, "_test.go") || top == "test" {
				folder = "tests"
			}
			text[folder] += string(data)
			for _, m := range read.FindAllStringSubmatch(string(data), -1) {
				if name := m[1]; !slices.Contains(surroundings, name) && !slices.Contains(documented[name], folder) {
					t.Errorf("%s reads %s, and docs/variables.md says that it is read in %q", file, name, documented[name])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range rows {
		in := func(name, folder string) bool { return strings.Contains(text[folder], `"`+name+`"`) }
		library := func(folder string) bool { return strings.HasSuffix(folder, " library") }
		for _, name := range r.names {
			if !slices.ContainsFunc(r.folders, func(folder string) bool { return library(folder) || in(name, folder) }) {
				t.Errorf("docs/variables.md says that %s is read in %q, where it does not occur", name, r.folders)
			}
		}
		for _, folder := range r.folders {
			if !library(folder) && !slices.ContainsFunc(r.names, func(name string) bool { return in(name, folder) }) {
				t.Errorf("docs/variables.md says that %q are read in %s, where none of them occurs", r.names, folder)
			}
		}
	}
}

// A row is one of a table in docs/variables.md: variables, and the folders in which they are read.
type row struct{ names, folders []string }

// variables returns the rows of the tables in docs/variables.md, whose last column names folders.
func variables(t *testing.T, root string) []row {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "docs", "variables.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range toolchain.HandedOn() {
		if !strings.Contains(string(data), "`"+name+"`") {
			t.Errorf("docs/variables.md does not name %s, which the go command gets", name)
		}
	}
	var rows []row
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 4 || !strings.HasPrefix(line, "| `") {
			continue
		}
		var r row
		for name := range strings.SplitSeq(cells[0], ",") {
			r.names = append(r.names, strings.Trim(strings.TrimSpace(name), "`"))
		}
		for folder := range strings.SplitSeq(cells[len(cells)-1], ",") {
			r.folders = append(r.folders, strings.TrimSpace(folder))
		}
		rows = append(rows, r)
	}
	return rows
}
