package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResultsOfSeveralRunsMakeOneTable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	results := filepath.Join(dir, "units.jsonl")
	for name, text := range map[string]string{
		"first": `{"Action":"run","Package":"k8s.io/a","Test":"TestA"}
{"Action":"fail","Package":"k8s.io/a","Test":"TestA"}
{"Action":"fail","Package":"k8s.io/a"}
`,
		"second": `{"Action":"run","Package":"k8s.io/b","Test":"TestB"}
{"Action":"run","Package":"k8s.io/b","Test":"TestB/sub"}
{"Action":"pass","Package":"k8s.io/b","Test":"TestB/sub"}
{"Action":"pass","Package":"k8s.io/b","Test":"TestB"}
{"Action":"pass","Package":"k8s.io/b"}
{"Action":"start","Package":"k8s.io/interrupted"}
`,
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := addEvents(results, file); err != nil {
			t.Fatal(err)
		}
	}
	// A killed run leaves half a line.
	data, err := os.ReadFile(results)
	if err == nil {
		err = os.WriteFile(results, append(data, `{"package":"k8s.io/c","outc`...), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	third := filepath.Join(dir, "third")
	if err := os.WriteFile(third, []byte(`{"Action":"skip","Package":"k8s.io/d"}`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := addEvents(results, third); err != nil {
		t.Fatal(err)
	}
	known, err := load(results)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := write(&out, []string{"k8s.io/a", "k8s.io/b", "k8s.io/c", "k8s.io/d", "k8s.io/interrupted"}, known); err != nil {
		t.Fatal(err)
	}
	want := "5 packages have unit tests. 3 were tested (2 tests): 2 pass, 1 do not.\n\n" +
		"| package | tests that fail |\n|---|---|\n| `k8s.io/a` | TestA |\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPackagesAreChosenByPrefix(t *testing.T) {
	t.Parallel()
	all := []string{"k8s.io/api", "k8s.io/client-go/rest", "k8s.io/kubernetes/pkg"}
	if got := chosen(all, []string{"k8s.io/client-go", "k8s.io/api"}); !cmp.Equal(got, all[:2]) {
		t.Errorf("got %v", got)
	}
	if got := chosen(all, nil); !cmp.Equal(got, all) {
		t.Errorf("got %v", got)
	}
}
