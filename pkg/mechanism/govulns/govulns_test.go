package govulns

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/badrequest"
)

// database writes a database with a vulnerability of a module's package, before v1.2.0, one of the standard library, and one on Windows.
func database(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	osv := func(id, module, pkg, fixed, more string) string {
		return `{"schema_version":"1.3.1","id":"` + id +
			`","modified":"2026-01-01T00:00:00Z","published":"2026-01-01T00:00:00Z","aliases":["CVE-` + id + `"],` +
			`"summary":"Bad","details":"Bad.","affected":[{"package":{"name":"` + module + `","ecosystem":"Go"},` +
			`"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"fixed":"` + fixed + `"}]}],"ecosystem_specific":{"imports":[{"path":"` +
			pkg + `"` + more + `}]}}]}`
	}
	files := map[string]string{
		"index/db.json": `{"modified":"2026-01-01T00:00:00Z"}`,
		"index/modules.json": `[{"path":"example.com/m","vulns":[{"id":"GO-1","modified":"2026-01-01T00:00:00Z","fixed":"1.2.0"},{"id":"GO-3","modified":"2026-01-01T00:00:00Z","fixed":"1.2.0"}]},` +
			`{"path":"stdlib","vulns":[{"id":"GO-2","modified":"2026-01-01T00:00:00Z","fixed":"1.26.9"}]}]`,
		"index/vulns.json": `[{"id":"GO-1","modified":"2026-01-01T00:00:00Z"},{"id":"GO-2","modified":"2026-01-01T00:00:00Z"},{"id":"GO-3","modified":"2026-01-01T00:00:00Z"}]`,
		"ID/GO-1.json":     osv("GO-1", "example.com/m", "example.com/m/bad", "1.2.0", `,"symbols":["F"]`),
		"ID/GO-2.json":     osv("GO-2", "stdlib", "net/http", "1.26.9", ""),
		"ID/GO-3.json":     osv("GO-3", "example.com/m", "example.com/m/bad", "1.2.0", `,"goos":["windows"]`),
	}
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return "file://" + filepath.ToSlash(dir)
}

func TestLinkedPackagesCount(t *testing.T) {
	t.Parallel()
	db := database(t)
	module := func(version string) []Module { return []Module{{Path: "example.com/m", Version: version}} }
	for what, tt := range map[string]struct {
		Binary
		want []string
	}{
		"the package": {Binary{Go: "go1.26.8", OS: "linux", Modules: module("v1.1.0"), Packages: []string{"example.com/m/bad"}},
			[]string{"GO-1 example.com/m v1.1.0 v1.2.0"}},
		"another package": {Binary{Go: "go1.26.8", OS: "linux", Modules: module("v1.1.0"), Packages: []string{"example.com/m/good"}}, nil},
		"the module alone": {Binary{Go: "go1.26.8", OS: "linux", Modules: module("v1.1.0")},
			[]string{"GO-1 example.com/m v1.1.0 v1.2.0", "GO-2 stdlib v1.26.8 v1.26.9"}},
		"a version that is new": {Binary{Go: "go1.26.8", OS: "linux", Modules: module("v1.2.0"), Packages: []string{"example.com/m/bad"}}, nil},
		"the standard library":  {Binary{Go: "go1.26.8", OS: "linux", Packages: []string{"net/http"}}, []string{"GO-2 stdlib v1.26.8 v1.26.9"}},
		"a newer Go":            {Binary{Go: "go1.26.9", OS: "linux", Packages: []string{"net/http"}}, nil},
		"Windows": {Binary{Go: "go1.26.9", OS: "windows", Modules: module("v1.1.0"), Packages: []string{"example.com/m/bad"}},
			[]string{"GO-1 example.com/m v1.1.0 v1.2.0", "GO-3 example.com/m v1.1.0 v1.2.0"}},
		"a fork": {Binary{Go: "go1.26.9", OS: "linux", Modules: []Module{{Path: "example.com/m", Version: "v1.1.0",
			Replace: &Module{Path: "example.com/fork", Version: "v1.1.1"}}},
			Packages: []string{"example.com/m/bad"}}, nil},
	} {
		tt.Arch = "amd64"
		found, known, err := Scan(t.Context(), db, tt.Binary)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			got = append(got, strings.Join([]string{f.ID, f.Module, f.Version, f.Fixed}, " "))
			if known[f.ID].Aliases[0] != "CVE-"+f.ID {
				t.Errorf("%s is not known: %v", f.ID, known)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", what, got, tt.want)
		}
	}
}

func TestDatabasesAreThere(t *testing.T) {
	t.Parallel()
	if err := Check(database(t)); err != nil {
		t.Error(err)
	}
	for _, db := range []string{"/tmp", "ftp://example.com", "::"} {
		if err := Check(db); !badrequest.Is(err) {
			t.Errorf("%s: error %v", db, err)
		}
	}
	if err := Check("file://" + t.TempDir()); err == nil || !strings.Contains(err.Error(), "is no database of Go's vulnerabilities") {
		t.Errorf("error %v", err)
	}
	if _, _, err := Scan(t.Context(), "file://"+t.TempDir(), Binary{Go: "go1.26.8",
		Modules: []Module{{Path: "example.com/m", Version: "v1.0.0"}}}); err == nil {
		t.Error("an empty folder is asked")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"osv":{"id":"GO-1"}}{"finding":{"osv":"GO-1","trace":[{"module":"m","package":"p"}]}}`))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _, _ = parse(bytes.NewReader(data), true) })
}
