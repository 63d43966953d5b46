//go:build integration

package integration

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"slipway.build/pkg/tree/catalog"
)

// upstream returns the version of k8s.io/kubernetes that cmd/ requires, and its go.mod.
func upstream(t *testing.T, r release) (version string, mod *modfile.File) {
	t.Helper()
	out := run(t, r.path("cmd"), nil, "go", "list", "-m", "-json", "k8s.io/kubernetes").ok(t).stdout
	var info struct{ Version, GoMod string }
	if err := json.Unmarshal([]byte(out), &info); err != nil {
		t.Fatal(err)
	}
	return info.Version, parseMod(t, info.GoMod)
}

func parseMod(t *testing.T, name string) *modfile.File {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse(name, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return mod
}

// selected returns the versions of the modules that upstream is built from, and then the tree's overrides, which go before it. Outside of
// upstream's tree, the modules in it have the version of the release with another major number.
func selected(t *testing.T, r release) map[string]string {
	t.Helper()
	version, mod := upstream(t, r)
	want := map[string]string{"k8s.io/kubernetes": version}
	for _, req := range mod.Require {
		want[req.Mod.Path] = req.Mod.Version
	}
	for _, rep := range mod.Replace {
		if !strings.HasPrefix(rep.New.Path, "./staging/") {
			t.Fatalf("upstream replaces %s by %s: the test does not know what that means outside of its tree", rep.Old.Path, rep.New.Path)
		}
		want[rep.Old.Path] = "v0" + strings.TrimPrefix(version, "v1")
	}
	override(t, r, "cmd", want)
	return want
}

// override raises versions as the tree's overrides in the go.mod of a folder do, with what the overriding modules require, directly or
// through others.
func override(t *testing.T, r release, folder string, want map[string]string) {
	t.Helper()
	c, err := catalog.Load(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range c.Overrides {
		if !o.Covers(folder) {
			continue
		}
		t.Logf("%s: upstream's versions, with the override %s", folder, o)
		if o.With != "" { // of which the version may be upstream's
			want[o.Module] = o.Version
		}
		for next := []string{o.Code().String()}; len(next) > 0; next = next[1:] {
			name, version, _ := strings.Cut(next[0], "@")
			if want[name] != "" && semver.Compare(version, want[name]) <= 0 {
				continue
			}
			want[name] = version
			file := run(t, r.path(folder), nil, "go", "list", "-mod=readonly", "-m", "-f", "{{.GoMod}}", next[0]).ok(t).stdout
			for _, req := range parseMod(t, strings.TrimSpace(file)).Require {
				next = append(next, req.Mod.String())
			}
		}
	}
}

// forks returns what replaces modules of the components by the tree's overrides, as PATH VERSION.
func forks(t *testing.T, r release) map[string]string {
	t.Helper()
	c, err := catalog.Load(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	code := map[string]string{}
	for _, o := range c.Overrides {
		if o.With != "" && o.Covers("cmd") {
			code[o.Module] = o.Code().Path + " " + o.Code().Version
		}
	}
	return code
}

func TestEveryModuleHasTheVersionThatUpstreamSelected(t *testing.T) {
	sameSelection(t, baseline(t))
}

// sameSelection compares the versions in cmd/ with upstream's.
func sameSelection(t *testing.T, r release) {
	t.Helper()
	want, forks := selected(t, r), forks(t, r)
	shared := 0
	list := run(t, r.path("cmd"), nil, "go", "list", "-mod=readonly", "-m", "-f",
		"{{.Path}} {{with .Replace}}{{.Path}} {{.Version}}{{else}}{{.Path}} {{.Version}}{{end}}", "all").ok(t).stdout
	for line := range strings.Lines(list) {
		f := strings.Fields(line)
		if want[f[0]] == "" {
			continue // no dependency of upstream's needs it
		}
		shared++
		if wanted := cmp.Or(forks[f[0]], f[0]+" "+want[f[0]]); strings.Join(f[1:], " ") != wanted {
			t.Errorf("cmd/ selects %q, upstream, with overrides, %s", f, wanted)
		}
	}
	// With fewer, the comparison itself would be broken.
	if shared < 200 {
		t.Errorf("only %d modules are shared with upstream's %d", shared, len(want))
	}
}

func TestBinariesAreLinkedFromTheVersionsThatUpstreamSelected(t *testing.T) {
	r := baseline(t)
	want, forks := selected(t, r), forks(t, r)
	for _, name := range serverBinaries {
		info, err := buildinfo.ReadFile(r.path(hostBin(name)))
		if err != nil {
			t.Fatal(err)
		}
		if len(info.Deps) == 0 {
			t.Errorf("%s names no modules", name)
		}
		for _, dep := range info.Deps {
			got := dep
			if dep.Replace != nil {
				got = dep.Replace
			}
			switch {
			case want[dep.Path] == "":
				t.Errorf("%s is linked with %s, which is no dependency of upstream's", name, dep.Path)
			case got.Path+" "+got.Version != cmp.Or(forks[dep.Path], dep.Path+" "+want[dep.Path]):
				t.Errorf("%s is linked with %s@%s, upstream, with overrides, selected %s", name, got.Path, got.Version, want[dep.Path])
			}
		}
	}
}

func TestGoAndGodebugLinesAreUpstreams(t *testing.T) {
	r := baseline(t)
	_, theirs := upstream(t, r)
	ours := parseMod(t, r.path("cmd/go.mod"))
	if ours.Go == nil || ours.Go.Version != theirs.Go.Version {
		t.Errorf("cmd/go.mod has the go line %+v, upstream %s", ours.Go, theirs.Go.Version)
	}
	if got, want := godebug(ours), godebug(theirs); got != want {
		t.Errorf("cmd/go.mod has the godebug lines %q, upstream %q", got, want)
	}
}

func godebug(mod *modfile.File) string {
	var all []string
	for _, g := range mod.Godebug {
		all = append(all, g.Key+"="+g.Value)
	}
	return strings.Join(all, " ")
}

func TestReleaseLeavesTheSourcesAlone(t *testing.T) {
	r := baseline(t)
	if changed := run(t, r.dir, nil, "git", "status", "--porcelain").ok(t).stdout; changed != "" {
		t.Errorf("a release changed\n%s", changed)
	}
}
