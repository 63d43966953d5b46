package module

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithReplacesModules(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "cmd")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	const goMod = `module example.com/cmd

go 1.26.0

require (
	example.com/a v1.0.0
	example.com/b v1.0.0
	example.com/c v1.0.0
)

replace example.com/a => example.com/a v1.0.1

replace example.com/b v1.0.0 => ../b

replace example.com/c => ../c
`
	for name, text := range map[string]string{"go.mod": goMod, "go.sum": "example.com/a v1.0.1 h1:a="} { // go.sum has no line break at its end
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Load(root, "cmd")
	if err != nil {
		t.Fatal(err)
	}
	patched := Version{"example.com/a", "v1.0.1-patched.p1"}
	mod, sum, err := m.With([]Replacement{
		{Old: Version{Path: "example.com/a"}, New: patched}, {Old: Version{Path: "example.com/b"}, New: Version{"example.com/fork", "v2.0.0"}},
	}, map[Version]string{patched: "h1:p=", {"example.com/a", "v1.0.1-patched.p1/go.mod"}: "h1:m="})
	if err != nil {
		t.Fatal(err)
	}
	const wantMod = `module example.com/cmd

go 1.26.0

require (
	example.com/a v1.0.0
	example.com/b v1.0.0
	example.com/c v1.0.0
)

replace example.com/c => ../c

replace example.com/a => example.com/a v1.0.1-patched.p1

replace example.com/b => example.com/fork v2.0.0
`
	const wantSum = "example.com/a v1.0.1 h1:a=\nexample.com/a v1.0.1-patched.p1 h1:p=\nexample.com/a v1.0.1-patched.p1/go.mod h1:m=\n"
	if diff := cmp.Diff([]string{wantMod, wantSum}, []string{string(mod), string(sum)}); diff != "" {
		t.Errorf("go.mod and go.sum (-want +got):\n%s", diff)
	}
	if got := m.FolderOutside(); got != "" {
		t.Errorf("folder outside of the tree: %s", got)
	}
	m.Replaces = append(m.Replaces, Replacement{Old: Version{Path: "example.com/d"}, New: Version{Path: "../../d"}})
	if got := m.FolderOutside(); got != "../../d" {
		t.Errorf("folder outside of the tree: %q", got)
	}
}

func TestWithVersionsRequiresModulesThatFoldersReplaced(t *testing.T) {
	t.Parallel()
	const goMod = `module example.com/all

go 1.26.0

require (
	example.com/a v0.0.0
	example.com/b v0.0.0 // why
	example.com/c v1.0.0
	example.com/d v1.0.0 // indirect
)

replace (
	example.com/a => ./a
	example.com/b => ./b
	example.com/c => example.com/fork v1.1.0
)
`
	const want = `module example.com/all

go 1.26.0

require (
	example.com/a v1.2.0
	example.com/b v1.3.0 // why
	example.com/c v1.0.0
	example.com/d v1.4.0 // indirect
)

replace example.com/c => example.com/fork v1.1.0
`
	got, err := WithVersions([]byte(goMod), map[string]string{"example.com/a": "v1.2.0", "example.com/d": "v1.4.0"}, "v1.3.0")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSumsComeAndGo(t *testing.T) {
	t.Parallel()
	const old = "a.example v1.0.0 h1:a\na.example v1.0.0/go.mod h1:b\nz.example v1.0.0/go.mod h1:z\n"
	m := Pinned{Version{"b.example", "v1.2.0"}, "h1:c", "h1:d"}
	newer := Pinned{Version{"b.example", "v1.10.0"}, "h1:e", ""}
	more := string(WithSums([]byte(old), []Pinned{newer, m}))
	want := "a.example v1.0.0 h1:a\na.example v1.0.0/go.mod h1:b\nb.example v1.2.0 h1:c\nb.example v1.2.0/go.mod h1:d\n" +
		"b.example v1.10.0 h1:e\nz.example v1.0.0/go.mod h1:z\n"
	if more != want {
		t.Errorf("with sums:\n%s", more)
	}
	if less := string(WithoutSums([]byte(more), []Pinned{m, newer})); less != old {
		t.Errorf("without them:\n%s", less)
	}
	if none := WithSums(nil, nil); len(none) > 0 {
		t.Errorf("no sums: %q", none)
	}
}
