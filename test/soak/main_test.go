package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// testsOf returns the tests of a package, and those that are longer with make soak, or are run by that alone.
func testsOf(t *testing.T, dir string) (all, longer []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", dir, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		tag, _, _ := strings.Cut(string(text), "\n")
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" {
				continue
			}
			mentions := slices.Contains(strings.Fields(tag), "soak")
			ast.Inspect(f, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				mentions = mentions || ok && (id.Name == "soak" || id.Name == "rare")
				return true
			})
			if all = append(all, f.Name.Name); mentions {
				longer = append(longer, f.Name.Name)
			}
		}
	}
	return all, longer
}

func TestEveryLongTestIsInOnePart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for dir, packages := range map[string]string{"../integration": "", "../../pkg/ship/verify": verifying,
		"../../pkg/make/buildid": identifying} {
		all, longer := testsOf(t, dir)
		for _, p := range parts {
			if p.packages != packages {
				continue
			}
			for _, test := range p.tests {
				if !slices.Contains(all, test) {
					t.Errorf("part %s: %s has no %s", p.name, dir, test)
				}
				if before := seen[test]; before != "" {
					t.Errorf("%s is in %s and in %s", test, before, p.name)
				}
				seen[test] = p.name
			}
		}
		for _, test := range longer {
			if seen[test] == "" {
				t.Errorf("%s is in no part", test)
			}
		}
	}
	for _, p := range parts {
		if p.minutes >= 60 {
			t.Errorf("part %s takes %d minutes", p.name, p.minutes)
		}
	}
}

func TestOnlyWhatHasNotPassedAtThisCommitIsPending(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "_output", "soak.json")
	p := part{name: "some", tests: []string{"TestA", "TestB", "TestC", "TestD"}}
	r, err := readResults(file, "one")
	if err != nil {
		t.Fatal(err)
	}
	const events = `{"Action":"output","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"pass","Test":"TestA/part","Elapsed":1}
{"Action":"pass","Test":"TestA","Elapsed":61}
{"Action":"fail","Test":"TestB","Elapsed":2}
{"Action":"skip","Test":"TestC","Elapsed":0}
a line that is no event
{"Action":"fail","Elapsed":70}
`
	var out strings.Builder
	if err := r.read(strings.NewReader(events), p.tests, &out); err != nil {
		t.Fatal(err)
	}
	if want := "=== RUN   TestA\na line that is no event\n"; out.String() != want {
		t.Errorf("copied %q, want %q", out.String(), want)
	}
	for commit, want := range map[string][]string{
		"one": {"TestB", "TestC", "TestD"}, "two": p.tests, "one" + dirty: p.tests,
	} {
		again, err := readResults(file, commit)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.pending(again); !slices.Equal(got, want) {
			t.Errorf("at %s, %q are pending, want %q", commit, got, want)
		}
	}
	out.Reset()
	if err := r.table(&out, []part{p}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"some ", "1 of 4", " 1  TestB: fail at one, ", "; TestC: skip at one, ", "; TestD never ran\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
}

// A commit with other changes is not resumed, even if it passed.
func TestDirtyTreesPassForNobody(t *testing.T) {
	t.Parallel()
	r, err := readResults(filepath.Join(t.TempDir(), "soak.json"), "one"+dirty)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.read(strings.NewReader(`{"Action":"pass","Test":"TestA"}`+"\n"), []string{"TestA"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if r.passed("TestA") {
		t.Error("it counts")
	}
}

func TestUnknownPartIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := choose([]string{"kills", "kils"}); err == nil || !strings.Contains(err.Error(), `no part "kils"`) {
		t.Errorf("the error is %v", err)
	}
	if all, err := choose(nil); err != nil || len(all) != len(parts) {
		t.Errorf("%d parts, %v", len(all), err)
	}
}
