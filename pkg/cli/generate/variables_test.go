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
var surroundings = []string{"PATH", "XDG_CACHE_HOME", "MAKEFLAGS", "ACTION_TEST_GRAPH", "NODE", "WORK",
	"TOOLEXEC_IMPORTPATH", "GOOS", "GOARCH", "GO_EXTLINK_ENABLED"}

func TestVariablesAreDocumentedWhereTheyAreRead(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	documented := variables(t, root)
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
	for name, folders := range documented {
		for _, folder := range folders {
			if _, library := strings.CutSuffix(folder, " library"); !library && !strings.Contains(text[folder], `"`+name+`"`) {
				t.Errorf("docs/variables.md says that %s is read in %s, where it does not occur", name, folder)
			}
		}
	}
}

// variables returns the folders that docs/variables.md names in the last column of its tables, by variable.
func variables(t *testing.T, root string) map[string][]string {
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
	documented := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 4 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for name := range strings.SplitSeq(cells[0], ",") {
			for folder := range strings.SplitSeq(cells[len(cells)-1], ",") {
				name = strings.Trim(strings.TrimSpace(name), "`")
				documented[name] = append(documented[name], strings.TrimSpace(folder))
			}
		}
	}
	return documented
}
