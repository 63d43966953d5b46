package architecture

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"golang.org/x/tools/go/packages"
)

const module = "slipway.build/"

var update = flag.Bool("update", false, "write the tables of docs/architecture.md and pkg/tree/self/linked.sum")

func TestPackagesKnowWhatTheyMay(t *testing.T) {
	t.Parallel()
	found := findings(imports(t))
	for _, f := range found {
		if !slices.Contains(pending, f) {
			t.Error(f)
		}
	}
	for _, p := range pending {
		if !slices.Contains(found, p) {
			t.Errorf("pending, but it holds: remove %q", p)
		}
	}
}

// The package that connects all others must not grow into one that knows all others.
func TestPlanImportsFewPackages(t *testing.T) {
	t.Parallel()
	const most = 12
	ours := slices.DeleteFunc(imports(t)["pkg/make/plan"], func(path string) bool { return !strings.HasPrefix(path, "pkg/") })
	if len(ours) == 0 || len(ours) > most {
		t.Errorf("pkg/make/plan imports %d packages of this module, at most %d may be: %q", len(ours), most, ours)
	}
}

func TestRulesFindWhatIsWrong(t *testing.T) {
	t.Parallel()
	right := map[string][]string{}
	for _, r := range rules {
		right["pkg/"+r.pkg] = nil
	}
	if got := findings(right); len(got) > 0 {
		t.Errorf("without imports: %q", got)
	}
	for _, c := range []struct{ pkg, imports, want string }{
		{"pkg/tree/new", "fmt", "pkg/tree/new has no rule"},
		{"pkg/prove/diff", "pkg/make/license",
			"pkg/prove/diff imports pkg/make/license, but prove may import only tree, release, ship, mechanism"},
		{"pkg/mechanism/archive", "pkg/tree/source",
			"pkg/mechanism/archive imports pkg/tree/source, but mechanism may import nothing else of this module"},
		{"pkg/make/plan", "archive/tar",
			"pkg/make/plan imports archive/tar, but must never know how anything is made, or described in release.json"},
		{"pkg/tree/source", "github.com/magefile/mage/mg",
			"pkg/tree/source imports github.com/magefile/mage/mg, which only pkg/cli/targets, pkg/cli/tests may import"},
		{"pkg/make/bazel", "github.com/docker/docker/client",
			"pkg/make/bazel imports github.com/docker/docker/client, which only pkg/mechanism/engine, pkg/make/kubecross may import"},
		{"pkg/tree/source", "pkg/tree/worktree/gittest", "pkg/tree/source imports pkg/tree/worktree/gittest, which is for tests"},
	} {
		graph := maps.Clone(right)
		graph[c.pkg] = []string{c.imports}
		if got := findings(graph); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s imports %s: found %q, want %q", c.pkg, c.imports, got, c.want)
		}
	}
}

func TestDocumentHasTheTables(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- go test ./test/architecture -update -->\n", "<!-- end -->\n"
	name := filepath.Join("..", "..", "docs", "architecture.md")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := bytes.Cut(data, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the tables between %q and %q", name, begin, end)
	}
	want := slices.Concat(before, []byte(begin), []byte(tables()), []byte(end), after)
	if bytes.Equal(data, want) {
		return
	}
	if !*update {
		t.Fatalf("%s has other tables: go test ./test/architecture -update", name)
	}
	if err := os.WriteFile(name, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

// systems are those that slipway runs on.
var systems = []string{"linux", "darwin", "windows"}

// load returns the packages of pkg/ and the command with all that they import, by import path, for each of the systems. They are loaded
// once.
func load(t *testing.T) []map[string]*packages.Package {
	t.Helper()
	all, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var loaded = sync.OnceValues(func() ([]map[string]*packages.Package, error) {
	all := make([]map[string]*packages.Package, len(systems))
	var g errgroup.Group
	for i, goos := range systems {
		g.Go(func() error {
			found, err := packages.Load(&packages.Config{
				Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedModule,
				Dir:  filepath.Join("..", ".."),
				Env:  append(os.Environ(), "GOOS="+goos, "GOFLAGS=-mod=readonly", "GOPACKAGESDRIVER=off"),
			}, "./pkg/...", ".")
			all[i] = map[string]*packages.Package{}
			packages.Visit(found, nil, func(p *packages.Package) {
				all[i][p.PkgPath] = p
				for _, e := range p.Errors {
					err = errors.Join(err, e)
				}
			})
			return err
		})
	}
	return all, g.Wait()
})

// imports lists what each package of pkg/ imports on any of the systems.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	graph := map[string][]string{}
	for _, all := range load(t) {
		for path, p := range all {
			name, ours := strings.CutPrefix(path, module)
			if !ours || name == "build/bazel" { // it has files, and no code
				continue
			}
			for path := range p.Imports {
				graph[name] = append(graph[name], strings.TrimPrefix(path, module))
			}
			slices.Sort(graph[name])
			graph[name] = slices.Compact(graph[name])
		}
	}
	return graph
}

// findings lists what is wrong with a graph of imports, sorted.
func findings(graph map[string][]string) []string {
	var found []string
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, r := range rules {
		if _, ok := graph["pkg/"+r.pkg]; !ok {
			say("pkg/%s has a rule, but does not exist", r.pkg)
		}
	}
	for pkg, imported := range graph {
		name := strings.TrimPrefix(pkg, "pkg/")
		if slices.Contains(tests, name) {
			continue
		}
		i := slices.IndexFunc(rules, func(r rule) bool { return r.pkg == name })
		if i < 0 {
			say("%s has no rule", pkg)
			continue
		}
		of := wingOf(pkg)
		for _, path := range imported {
			if slices.ContainsFunc(rules[i].not, func(pattern string) bool { return matches(pattern, path) }) {
				say("%s imports %s, but must never know %s", pkg, path, rules[i].never)
			}
			for _, o := range only {
				if matches(o.library, path) && !slices.Contains(o.packages, name) {
					say("%s imports %s, which only %s may import", pkg, path, list(o.packages))
				}
			}
			if slices.Contains(tests, strings.TrimPrefix(path, "pkg/")) {
				say("%s imports %s, which is for tests", pkg, path)
			}
			if to := wingOf(path); to.name != "" && to.name != of.name && !slices.Contains(of.imports, to.name) {
				say("%s imports %s, but %s may import %s", pkg, path, of.name, allowed(of))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// matches reports whether an import path is the pattern's, or, for "x/...", x or below it.
func matches(pattern, path string) bool {
	top, below := strings.CutSuffix(pattern, "/...")
	return path == top || below && strings.HasPrefix(path, top+"/")
}

// wingOf returns the wing of a package, or none for one outside of pkg/.
func wingOf(pkg string) wing {
	rest, ok := strings.CutPrefix(pkg, "pkg/")
	first, _, _ := strings.Cut(rest, "/")
	for _, w := range wings {
		if ok && w.name == first {
			return w
		}
	}
	return wing{}
}

func allowed(w wing) string {
	if len(w.imports) == 0 {
		return "nothing else of this module"
	}
	return "only " + strings.Join(w.imports, ", ")
}

// list writes packages with their folder.
func list(packages []string) string {
	if len(packages) == 0 {
		return "tests"
	}
	return "pkg/" + strings.Join(packages, ", pkg/")
}

// tables writes the rules for the document.
func tables() string {
	var b strings.Builder
	for _, w := range wings {
		fmt.Fprintf(&b, "**pkg/%s** %s It imports %s.\n\n| package | is for | must never know |\n|---|---|---|\n", w.name, w.is, allowed(w))
		for _, r := range rules {
			if wingOf("pkg/"+r.pkg).name == w.name {
				fmt.Fprintf(&b, "| `pkg/%s` | %s | %s |\n", r.pkg, r.is, r.never)
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("Some libraries have one door:\n\n| library | imported by |\n|---|---|\n")
	for _, o := range only {
		who := "`" + strings.ReplaceAll(list(o.packages), ", ", "`, `") + "`"
		if len(o.packages) == 0 {
			who = "tests only"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", o.library, who)
	}
	return b.String()
}
