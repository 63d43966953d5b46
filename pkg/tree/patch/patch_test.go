package patch

import (
	"bytes"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway.build/pkg/tree/module"
)

// What somebody believes to be applied must not be left out without a word.
func TestWhatLooksLikeAPatchIsNotOverlooked(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		tree files
		want string // "" if there is no error
	}{
		{"a diff", files{"patches/2.diff": change("pkg/a.go")}, "patch patches/2.diff: it would not be applied: the names of patches end " +
			"with .patch"},
		{"capitals", files{"patches/2.PATCH": change("pkg/a.go")}, "patches/2.PATCH: it would not be applied"},
		{"a folder", files{"patches/more/2.patch": change("pkg/a.go")}, "patches/more/2.patch: it would not be applied: patches are in patches"},
		{"another order", files{"patches/2.patch": change("pkg/b.go"), "patches/series": "2.patch\n1.patch\n"},
			`patches/series: it lists ["2.patch" "1.patch"], but`},
		{"a list of others", files{"patches/series": "1.patch\nmore/2.patch -p0\n"}, `it lists ["1.patch" "more/2.patch"]`},
		{"another project", files{"images/etcd/patches/1.diff": change("a.go")}, "images/etcd/patches/1.diff: it would not"},
		{"the same list", files{"patches/series": "# mine\n1.patch -p1\n"}, ""},
		{"no patch", files{"patches/README.md": "", "patches/tools/fetch": "", "patches/.#2.patch": "", "patches/2.patch.off": ""}, ""},
	} {
		root := t.TempDir()
		test.tree["patches/1.patch"] = change("pkg/a.go")
		test.tree.write(t, root)
		all, err := Load(root)
		if test.want == "" {
			if err != nil || len(all) != 1 || len(all[0].Patches) != 1 {
				t.Errorf("%s: %v, error %v", test.name, all, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %s", test.name, err, test.want)
		}
	}
}

// change is a patch of the second line of a file.
func change(name string) string {
	return "diff --git a/" + name + " b/" + name + "\n--- a/" + name + "\n+++ b/" + name + "\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, patch, want string }{
		{"prose", "Dear maintainer,\nplease make it faster.\n", "patch a.patch: changes no file; want the output of git format-patch"},
		{"nothing", "", "changes no file"},
		{"other line ends", strings.ReplaceAll(change("pkg/a.go"), "\n", "\r\n"), "end with CR LF"},
		{"a page of HTML", "<html><body>diff</body></html>\n", "changes no file"},
		{"a path above", change("../a.go"), "../a.go: not a path inside the repository"},
		{"a path out of a folder", change("pkg/../../a.go"), "not a path inside the repository"},
		{"an absolute path", "diff --git a/pkg/a.go b/etc/passwd\nsimilarity index 100%\nrename from pkg/a.go\nrename to /etc/passwd\n",
			"/etc/passwd: not a path inside the repository"},
		{"a path of Windows", change(`pkg\a.go`), "not a path inside the repository"},
		{"a binary without content", "diff --git a/x b/x\nindex 1234567..89abcde 100644\nBinary files a/x and b/x differ\n", "--binary"},
		{"a diff of git and another one", change("pkg/a.go") + strings.SplitN(change("pkg/b.go"), "\n", 2)[1],
			"it has 1 headers of git, and changes 2 files"},
		{"a header of nothing", change("pkg/a.go") + "diff --git a/pkg/b.go b/pkg/b.go\n", "not a patch as git makes them"},
		{"git's own files", change(".git/config"), "not a path inside the repository"},
		{"half a hunk", strings.TrimSuffix(change("pkg/a.go"), " three\n"), "not a patch as git makes them"},
	} {
		_, err := Parse("a.patch", []byte(test.patch))
		var invalid *InvalidError
		if err == nil || !strings.Contains(err.Error(), test.want) || !errors.As(err, &invalid) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
}

func TestParseReadsEachCommit(t *testing.T) {
	t.Parallel()
	versions := []files{{"pkg/a": numbered(1, 9)}, {"pkg/a": numbered(0, 9)}, {"pkg/a": numbered(0, 10), "pkg/b": "b\n"}}
	p, err := Parse("a.patch", formatPatch(t, versions...))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Commits) != 2 || p.Title() != "Version 1" ||
		!bytes.Contains(p.Commits[1].Text, []byte("Subject: [PATCH 2/2] Version 2\n")) || bytes.Contains(p.Commits[0].Text, []byte("Version 2")) {
		t.Errorf("%+v", p.Commits)
	}
	if got := p.Paths(); !slices.Equal(got, []string{"pkg/a", "pkg/b"}) {
		t.Errorf("paths %q", got)
	}
	if got, r := apply(t, versions[0], p.Data); r.Verdict != Applies || got["pkg/a"] != versions[2]["pkg/a"] || got["pkg/b"] != "b\n" {
		t.Errorf("%v: %q", r, got)
	}
	if _, r := apply(t, versions[2], p.Data); r.Verdict != Upstream {
		t.Errorf("to its own result: %v", r.Verdict)
	}
	// One of two commits is upstream: the patch is neither whole nor already there.
	if _, r := apply(t, versions[1], p.Data); r.Verdict != Conflicts || r.Conflict.Commit != "Version 1" {
		t.Errorf("to half of its result: %+v", r)
	}
}

func TestParseReadsOtherDiffs(t *testing.T) {
	t.Parallel()
	_, plain, _ := strings.Cut(change("pkg/a.go"), "\n")
	for name, text := range map[string]string{
		"git diff":  change("pkg/a.go"),
		"diff -u":   plain,
		"with mail": "Subject: [PATCH] faster\n\nIt is.\n---\n pkg/a.go | 2 +-\n\n" + change("pkg/a.go") + "-- \n2.39.5\n\n",
	} {
		if got, r := apply(t, files{"pkg/a.go": "one\ntwo\nthree\n"}, []byte(text)); r.Verdict != Applies ||
			got["pkg/a.go"] != "one\nTWO\nthree\n" {
			t.Errorf("%s: %v %v %q", name, r.Verdict, r.Conflict, got)
		}
	}
}

func TestConflictSaysWhatWasExpectedAndWhatIsThere(t *testing.T) {
	t.Parallel()
	old := numbered(1, 40)
	edited := strings.NewReplacer("line 5\n", "line five\n", "line 30\n", "line thirty\n").Replace(old)
	patch := formatPatch(t, files{"pkg/a.go": old}, files{"pkg/a.go": edited})
	for _, test := range []struct {
		name, there, want string
	}{
		{"a line is another", strings.Replace(old, "line 28\n", "line twenty-eight\n", 1),
			"patch a.patch does not apply: pkg/a.go, hunk 2 of 2 (@@ -27,7 +27,7 @@ line 26), at line 28\n\texpected: line 28\n" +
				"\tthere is: line twenty-eight"},
		{"the place has moved", "0\n0\n" + strings.Replace(old, "line 28\n", "line twenty-eight\n", 1),
			"at line 30\n\texpected: line 28\n\tthere is: line twenty-eight"},
		{"the file is shorter", numbered(1, 29), "at line 30\n\texpected: line 30\n\tthere is: the end of the file"},
		{"only the line end is another", strings.Replace(old, "line 28\n", "line 28\r\n", 1),
			`expected: "line 28\n"` + "\n\tthere is: " + `"line 28\r\n"`},
	} {
		_, r := apply(t, files{"pkg/a.go": test.there}, patch)
		if r.Conflict == nil || !strings.Contains(r.Conflict.Error(), test.want) {
			t.Errorf("%s:\n%v\nwant\n%s", test.name, r.Conflict, test.want)
		}
	}
	if _, r := apply(t, files{}, patch); r.Conflict == nil || r.Conflict.Error() != "patch a.patch does not apply: pkg/a.go: there is no "+
		"such file" {
		t.Errorf("%v", r.Conflict)
	}
}

func TestFilesThatAreInNoModuleArePassedOver(t *testing.T) {
	t.Parallel()
	tree := files{"pkg/a.go": "one\ntwo\nthree\n", "CHANGELOG/CHANGELOG-1.37.md": "another\n"}
	var patch strings.Builder
	skipped := []string{
		"CHANGELOG/CHANGELOG-1.37.md", "docs/a.md", "vendor/example.com/a.go", "staging/src/k8s.io/unknown/a.go",
		"hack/tools/go.mod", "hack/tools/main.go", "pkg/OWNERS", "link",
	}
	for _, name := range skipped {
		text := change(name)
		if name == "link" {
			text = "diff --git a/link b/link\nindex 1234567..89abcde 120000\n--- a/link\n+++ b/link\n@@ -1 +1 @@\n-a\n" +
				"\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
		}
		patch.WriteString(text)
	}
	patch.WriteString(change("pkg/a.go"))
	got, r := apply(t, tree, []byte(patch.String()))
	if r.Verdict != Applies || got["pkg/a.go"] != "one\nTWO\nthree\n" || len(got) != len(tree) {
		t.Errorf("%v %v: %q", r.Verdict, r.Conflict, got)
	}
	var names []string
	for _, s := range r.Skipped {
		if names = append(names, s.File); s.Why == "" {
			t.Errorf("%s is passed over for no reason", s.File)
		}
	}
	if !slices.Equal(names, skipped) {
		t.Errorf("passed over %q, want %q", names, skipped)
	}
}

func TestPatchOfNothingThatIsCompiledHasNoEffect(t *testing.T) {
	t.Parallel()
	tree := files{"pkg/a.go": "one\ntwo\nthree\n"}
	const mode = "diff --git a/pkg/a.go b/pkg/a.go\nold mode 100644\nnew mode 100755\n"
	for _, test := range []struct{ name, patch, want string }{
		{"vendored code", change("vendor/golang.org/x/net/http2/frame.go"),
			"patch a.patch has no effect on what is compiled\n\tvendor/golang.org/x/net/http2/frame.go: modules hold no vendored code"},
		{"documents", change("docs/a.md") + change("CHANGELOG/b.md"), "\n\tCHANGELOG/b.md: no code is made from it"},
		{"modes", mode, "it changes only modes of files"},
		{"code, too", change("vendor/a.go") + change("pkg/a.go"), ""},
	} {
		_, r := apply(t, tree, []byte(test.patch))
		err := r.Err()
		if test.want == "" {
			if err != nil || r.Verdict != Applies {
				t.Errorf("%s: %v %v", test.name, r.Verdict, err)
			}
			continue
		}
		if r.Verdict != NoEffect || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v %v", test.name, r.Verdict, err)
		}
	}
}

// What a patch requires is an override's, and not a change of a go.mod.
func TestPatchRequiresWhatTheTreeHas(t *testing.T) {
	t.Parallel()
	required := func(version string) module.Requirement {
		return module.Requirement{Dependency: module.Dependency{Path: "golang.org/x/net", Version: version}}
	}
	goMod := func(lines string) string {
		return "diff --git a/go.mod b/go.mod\n--- a/go.mod\n+++ b/go.mod\n@@ -9,3 +9,3 @@ require (\n \tgolang.org/x/mod v0.1.0\n" + lines +
			" \tgolang.org/x/sys v0.1.0\n"
	}
	const raise = "-\tgolang.org/x/net v0.57.0 // indirect\n+\tgolang.org/x/net v0.60.0 // indirect\n"
	vendored := change("vendor/golang.org/x/net/a.go")
	for _, test := range []struct{ name, has, patch, verdict, text string }{
		{"lacking", "v0.57.0", goMod(raise) + change("go.sum") + vendored, "conflicts",
			"go.mod: it raises golang.org/x/net to v0.60.0, and cmd/go.mod has v0.57.0"},
		{"there", "v0.61.0", goMod(raise) + change("go.sum") + vendored + change("pkg/a.go"), "applies", ""},
		{"and nothing else", "v0.60.0", goMod(raise) + change("go.sum") + vendored, "no effect", "golang.org/x/net v0.60.0, which is required"},
		{"code of a module", "v0.57.0", vendored, "applies", ""},
		{"another change", "v0.60.0", goMod("-go 1.25\n+go 1.26\n"), "conflicts", `changes "go 1.26"`},
		{"a new module", "v0.60.0", goMod("-\texample.com/a v1.0.0\n+\texample.com/b v1.0.0\n"), "conflicts",
			"it requires example.com/b v1.0.0, and cmd/go.mod does not require this module"},
		{"one that nothing links", "v0.60.0", goMod("-\texample.com/a v1.0.0\n+\texample.com/a v1.1.0\n") + change("pkg/a.go"), "applies", ""},
		{"a deleted go.mod", "v0.60.0", "diff --git a/go.mod b/go.mod\ndeleted file mode 100644\n--- a/go.mod\n+++ /dev/null\n@@ -1 +0,0 @@\n" +
			"-module x\n", "conflicts", "the file's name"},
	} {
		r := kubernetes(t)
		r.Link(&module.Module{Name: "cmd", Requires: []module.Requirement{required(test.has)}})
		p, err := Parse("a.patch", []byte(test.patch))
		if err != nil {
			t.Fatal(err)
		}
		root := t.TempDir()
		files{"pkg/a.go": "one\ntwo\nthree\n", "vendor/golang.org/x/net/a.go": "one\ntwo\nthree\n"}.write(t, root)
		o := NewOverlay(r, Dir(root))
		report, err := o.Apply(p)
		if err != nil || report.Verdict.String() != test.verdict {
			t.Errorf("%s: %v, %v, %v", test.name, report.Verdict, report.Err(), err)
		}
		if got := report.Err(); (got == nil) != (test.text == "") || got != nil && !strings.Contains(got.Error(), test.text) {
			t.Errorf("%s: %v, want %s", test.name, got, test.text)
		}
		if _, changed := o.Changes()["go.mod"]; changed {
			t.Errorf("%s: go.mod is changed", test.name)
		}
	}
}

func TestKubernetesRepositoryLocates(t *testing.T) {
	t.Parallel()
	r := kubernetes(t)
	for _, test := range []struct{ name, module, file, why string }{
		{"pkg/kubelet/kubelet.go", Kubernetes, "pkg/kubelet/kubelet.go", ""},
		{"staging/src/k8s.io/api/apps/v1/types.go", "k8s.io/api", "apps/v1/types.go", ""},
		{"staging/README.md", Kubernetes, "staging/README.md", ""},
		{"staging/src/k8s.io/utils/a.go", "", "", "does not require the module k8s.io/utils"},
		{"staging/src/k8s.io/code-generator/examples/a.go", "", "", "not published"},
		{"vendor/a/b.go", "", "", "vendored"},
		{"docs/a.md", "", "", "no code"},
	} {
		in, file, why := r.Locate(test.name)
		if in.Module != test.module || file != test.file || !strings.Contains(why, test.why) || (why == "") != (test.why == "") {
			t.Errorf("%s: %v %q %q", test.name, in, file, why)
		}
	}
	p, err := Parse("a.patch", []byte(change("pkg/kubelet/a.go")+change("pkg/kubelet/b.go")+change(
		"staging/src/k8s.io/api/apps/v1/types.go")+change("docs/a.md")))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Packages([]*Patch{p}); !slices.Equal(got, []string{"k8s.io/api/apps/v1", "k8s.io/kubernetes/pkg/kubelet"}) {
		t.Errorf("packages %q", got)
	}
}

func TestProjectRepositoryIsWhatTheProjectRequires(t *testing.T) {
	t.Parallel()
	require := func(path string, direct bool) module.Requirement {
		return module.Requirement{Dependency: module.Dependency{Path: path, Version: "v1.0.0"}, Direct: direct}
	}
	for _, test := range []struct {
		project string
		require []module.Requirement
		name    string
		module  string // "" if there is an error
	}{
		{"etcd", []module.Requirement{require("go.etcd.io/etcd/server/v3", true), require("go.etcd.io/etcd/etcdctl/v3", true),
			require("go.etcd.io/bbolt", false)},
			"server/embed/etcd.go", "go.etcd.io/etcd/server/v3"},
		{"etcd", []module.Requirement{require("go.etcd.io/etcd/server/v3", true), require("go.etcd.io/etcd/api/v3", false)}, "api/version.go",
			"go.etcd.io/etcd/api/v3"},
		{"etcd", []module.Requirement{require("go.etcd.io/etcd/client/v3", true)}, "client/v3/client.go", "go.etcd.io/etcd/client/v3"},
		{"coredns", []module.Requirement{require("github.com/coredns/caddy", true), require("github.com/coredns/coredns", true)}, "core/a.go",
			"github.com/coredns/coredns"},
		{"cni-plugins", []module.Requirement{require("github.com/containernetworking/plugins", true),
			require("github.com/containernetworking/cni", false)},
			"plugins/main/a.go", "github.com/containernetworking/plugins"},
		{"own", []module.Requirement{require("example.com/a", true), require("example.com/b", true)}, "a.go", ""},
		{"pause", nil, "a.go", ""},
	} {
		r, err := ProjectRepository(test.project, &module.Module{Name: "images/" + test.project, Requires: test.require})
		if err != nil {
			if test.module != "" {
				t.Error(err)
			}
			continue
		}
		if in, _, why := r.Locate(test.name); in.Module != test.module {
			t.Errorf("%s: %s is in %v (%s)", test.project, test.name, in, why)
		}
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files{
		"patches/0002-b.patch":           change("pkg/b.go"),
		"patches/0001-a.patch":           change("pkg/a.go"),
		"patches/README.md":              "What they are for.\n",
		"images/etcd/patches/fast.patch": change("server/a.go"),

		"patches/golang.org/x/net/0001-c.patch":             change("http2/c.go"),
		"images/etcd/patches/go.etcd.io/bbolt/0001-d.patch": change("d.go"),
		"images/pause/pause.go":                             "package main\n",
		"images/coredns/patches/.gitkeep":                   "",
	}.write(t, root)
	all, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range all {
		for _, p := range s.Patches {
			got = append(got, s.Project+":"+p.Name+":"+p.Paths()[0])
			named := SeriesNamed(SeriesOf(p.Name).Name())
			if named.Project != p.Project || named.Module != p.Module || named.Dir() != path.Dir(p.Name) {
				t.Errorf("%s is of %+v", p.Name, named)
			}
		}
	}
	want := []string{":patches/golang.org/x/net/0001-c.patch:vendor/golang.org/x/net/http2/c.go", ":patches/0001-a.patch:pkg/a.go",
		":patches/0002-b.patch:pkg/b.go", "etcd:images/etcd/patches/go.etcd.io/bbolt/0001-d.patch:vendor/go.etcd.io/bbolt/d.go",
		"etcd:images/etcd/patches/fast.patch:server/a.go"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, name := range []string{"patches/0003-bad.patch", "images/etcd/patches/worse.patch"} {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), []byte("no patch\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Load(root); err == nil || !strings.Contains(err.Error(), "0003-bad.patch") || !strings.Contains(err.Error(), "worse.patch") {
		t.Errorf("error %v, want both", err)
	}
	for project, bad := range map[string]string{"": "patches/0003-bad.patch", "etcd": "images/etcd/patches/worse.patch"} {
		_, err := LoadProject(root, project)
		if err == nil || !strings.HasPrefix(err.Error(), "patch "+bad) || strings.Contains(err.Error(), "\n") {
			t.Errorf("project %q: %v, want that of %s alone", project, err, bad)
		}
	}
	if all, err := Load(t.TempDir()); err != nil || all != nil {
		t.Errorf("a tree without patches: %v, %v", all, err)
	}
}

func TestWhatEditorsLeaveIsNoPatch(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, Folder), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("me@host.1234", filepath.Join(root, Folder, ".#0001-acme.patch")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, Folder, ".hidden.patch"), []byte("no patch"), 0o644); err != nil {
		t.Fatal(err)
	}
	if found, err := Load(root); err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
}
