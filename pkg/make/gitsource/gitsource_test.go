package gitsource

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	modzip "golang.org/x/mod/zip"

	gomod "golang.org/x/mod/module"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/worktree/gittest"
)

// newKubernetes makes a small repository of Kubernetes, with the tag v1.37.2. api needs client only for the tests of what it imports.
func newKubernetes(t *testing.T) *gittest.Repo {
	t.Helper()
	r := gittest.New(t)
	for name, text := range map[string]string{
		"go.mod": "module k8s.io/kubernetes\n\ngo 1.24\n\nrequire k8s.io/api v0.0.0\n\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n" +
			"\tk8s.io/client => ./staging/src/k8s.io/client\n\tk8s.io/meta => ./staging/src/k8s.io/meta\n)\n",
		"pkg/version.go":            "package version\n\nconst Commit = \"$Format:%H$\"\n",
		"vendor/example.com/x/x.go": "package x\n",
		"vendor/OWNERS":             "nobody\n",
		"hack/tools/go.mod":         "module k8s.io/kubernetes/hack/tools\n",
		".gitattributes":            "* text=auto\n*.go export-subst\nleft export-ignore\n",
		"left":                      "out of other archives\n",
		"dos":                       "line\r\n",

		"staging/src/k8s.io/api/go.mod": "module k8s.io/api\n\ngo 1.24\n\nrequire k8s.io/meta v0.0.0\n\n" +
			"replace (\n\tk8s.io/client => ../client\n\tk8s.io/meta => ../meta\n)\n",
		"staging/src/k8s.io/api/api.go":          "package api\n\nimport \"k8s.io/meta/types\"\n\nvar T types.T\n",
		"staging/src/k8s.io/api/.gitattributes":  "# of the repository\n",
		"staging/src/k8s.io/api/testdata/bad.go": "not Go",
		"staging/src/k8s.io/api/vendor/bad/b.go": "package bad\n",
		"staging/src/k8s.io/client/go.mod":       "module k8s.io/client\n\ngo 1.24\n",
		"staging/src/k8s.io/client/client.go":    "package client\n",
		"staging/src/k8s.io/client/gen.go":       "//go:build ignore\n\npackage main\n\nimport _ \"k8s.io/meta/types\"\n",
		"staging/src/k8s.io/meta/go.mod": "module k8s.io/meta\n\ngo 1.24\n\nrequire k8s.io/client v0.0.0\n\n" +
			"replace k8s.io/client => ../client\n",
		"staging/src/k8s.io/meta/types/t.go":      "package types\n\ntype T int\n",
		"staging/src/k8s.io/meta/types/t_test.go": "package types\n\nimport _ \"k8s.io/client\"\n",
	} {
		r.Write(name, text)
	}
	if err := os.Symlink("dos", filepath.Join(r.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.Dir, ".git", "info", "attributes"), []byte("* -text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.Commit()
	r.Git("tag", "-a", "-m", "release", "v1.37.2")
	return r
}

// request is one for a repository, and perhaps a ref and a version.
func request(at string, more ...string) Request {
	more = append(more, "", "")
	return Request{Repository: at, Ref: more[0], Version: more[1]}
}

// files returns the names and texts of a module's files.
func files(t *testing.T, dir string, m module.Pinned) map[string]string {
	t.Helper()
	at, err := m.ProxyPath()
	if err != nil {
		t.Fatal(err)
	}
	r, err := zip.OpenReader(filepath.Join(dir, filepath.FromSlash(at)+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	found := map[string]string{}
	for _, f := range r.File {
		data, err := fs.ReadFile(r, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimPrefix(f.Name, m.String()+"/")] = string(data)
	}
	return found
}

func TestModulesHaveWhatUpstreamPublishes(t *testing.T) {
	t.Parallel()
	r, dir := newKubernetes(t), t.TempDir()
	for _, at := range []string{r.Dir, "file://" + r.Dir} { // in place, and fetched
		found, err := Find(t.Context(), request(at))
		if err != nil {
			t.Fatal(err)
		}
		if found.Version != "v1.37.2" || !found.Tagged || found.Commit != r.Git("rev-parse", "HEAD") || len(found.Notes) > 0 {
			t.Errorf("found %+v", found)
		}
		made, source, err := Make(t.Context(), found.Source, found.Version, dir)
		if err != nil {
			t.Fatal(err)
		}
		if source.Tree != r.Git("rev-parse", "HEAD^{tree}") {
			t.Errorf("tree %s", source.Tree)
		}
		var names []string
		for _, m := range made {
			names = append(names, m.String())
		}
		want := []string{"k8s.io/api@v0.37.2", "k8s.io/client@v0.37.2", "k8s.io/kubernetes@v1.37.2", "k8s.io/meta@v0.37.2"}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Fatal(diff)
		}
		api, client, main, meta := made[0], made[1], files(t, dir, made[2]), made[3]
		if main["pkg/version.go"] != "package version\n\nconst Commit = \"$Format:%H$\"\n" || main["dos"] != "line\r\n" || main["left"] == "" ||
			main["vendor/OWNERS"] == "" || main["vendor/example.com/x/x.go"] != "" || main["link"] != "" || main["hack/tools/go.mod"] != "" ||
			main["staging/src/k8s.io/api/go.mod"] != "" || !strings.Contains(main["go.mod"], "=> ./staging/") {
			t.Errorf("k8s.io/kubernetes has %q", main)
		}
		if diff := cmp.Diff(map[string]string{
			"api.go": "package api\n\nimport \"k8s.io/meta/types\"\n\nvar T types.T\n", "testdata/bad.go": "not Go",
			"go.mod": "module k8s.io/api\n\ngo 1.24\n\nrequire k8s.io/meta v0.37.2\n",
			"go.sum": string(module.WithSums(nil, []module.Pinned{meta, client})),
		}, files(t, dir, api)); diff != "" {
			t.Errorf("k8s.io/api (-want +got):\n%s", diff)
		}
		if got := files(t, dir, client)["go.sum"]; got != "" {
			t.Errorf("k8s.io/client has a go.sum: %s", got)
		}
	}
}

// The go command agrees: what `go mod tidy` leaves in a published module is what is in it.
func TestTidyChangesNothingInAModule(t *testing.T) {
	t.Parallel()
	r, dir := newKubernetes(t), t.TempDir()
	made, _, err := Make(t.Context(), catalog.Source{Repository: r.Dir, Commit: r.Git("rev-parse", "HEAD")}, "v1.37.2", dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range made {
		if m.Path == kubernetes { // its go.mod is the repository's
			continue
		}
		at, _ := m.ProxyPath()
		code := filepath.Join(t.TempDir(), "code")
		if err := modzip.Unzip(code, gomod.Version(m.Version), filepath.Join(dir, filepath.FromSlash(at)+".zip")); err != nil {
			t.Fatal(err)
		}
		before := files(t, dir, m)
		cmd := exec.CommandContext(t.Context(), "go", "mod", "tidy")
		cmd.Dir = code
		cmd.Env = append(os.Environ(), "GOPROXY=file://"+dir, "GOSUMDB=off", "GOMODCACHE="+filepath.Join(t.TempDir(), "mod"),
			"GOFLAGS=-modcacherw", "GOWORK=off", "GOTOOLCHAIN=local")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", m, err, out)
		}
		for _, name := range []string{"go.mod", "go.sum"} {
			data, _ := os.ReadFile(filepath.Join(code, name)) // there need not be a go.sum
			if diff := cmp.Diff(before[name], string(data)); diff != "" {
				t.Errorf("%s of %s (-made +tidy):\n%s", name, m, diff)
			}
		}
	}
}

func TestWhatCannotBeFoundIsRefused(t *testing.T) {
	t.Parallel()
	r := newKubernetes(t)
	r.Git("switch", "-q", "-c", "fix")
	r.Write("pkg/fix.go", "package version\n")
	r.Commit()
	fix := r.Git("rev-parse", "HEAD")
	shallow := r.Clone("--depth=1", "--no-single-branch")
	shallow.Git("checkout", "-q", fix)
	empty := gittest.New(t)
	for _, tt := range []struct {
		request Request
		want    string // in the error; or the version that is found
		bad     bool
	}{
		{request(r.Dir, "v1.37.2"), "v1.37.2", false},
		{request(r.Dir, "", "v1.37.2"), "v1.37.2", false},
		{request(r.Dir, "fix", "v1.37.3-0.acme.1"), "v1.37.3-0.acme.1", false},
		{request(r.Dir, fix, "v1.37.3-0.20261129010203-0123456789ab"), "v1.37.3-0.20261129010203-0123456789ab", false},
		{request(r.Dir, "fix~1"), "v1.37.2", false},
		{request(shallow.Dir, "HEAD", "v1.37.3-rc.0"), "v1.37.3-rc.0", false},
		{request(r.Dir, "fix"), "has no tag that is a version: give the version, a pre-release such as v1.37.3-0.acme.1", true},
		{request(r.Dir), "has no tag that is a version", true},
		{request(r.Dir, "fix", "v1.37.2"), "does not have the tag v1.37.2: give it a version of its own, a pre-release such as v1.37.3-0", true},
		{request(r.Dir, "fix", "v1.37.3"), "does not have the tag v1.37.3: give it a version of its own, a pre-release such as v1.37.3-0", true},
		{request(r.Dir, "fix", "v1.37.3+acme.1"), "is not a version of Kubernetes as Go has them", true},
		{request(r.Dir, "", "v1.37.9"), "has no tag v1.37.9: name a branch or a commit", true},
		{request(r.Dir, "fixx"), "has no tag, branch or commit fixx; did you mean fix?", true},
		{request("file://"+r.Dir, "fix~1"), "has no tag, branch or commit fix~1", true},
		{request(shallow.Dir, "fix~1"), "it is a shallow clone", true},
		{request(empty.Dir), "has no commit", true},
		{request(t.TempDir()), "does not appear to be a git repository", false},
	} {
		found, err := Find(t.Context(), tt.request)
		if err == nil && found.Version == tt.want {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || badrequest.Is(err) != tt.bad {
			t.Errorf("%+v: %+v, error %v, want %q", tt.request, found, err, tt.want)
		}
	}
	for text, want := range map[string]string{
		"": "is not REPOSITORY", "#main": "is not REPOSITORY", r.Dir + "#": "is not REPOSITORY", "--upload-pack=x": "is not REPOSITORY",
		r.Dir + "#-x": "is not REPOSITORY", "https://me:secret@git.example/k": "password",
		filepath.Join(r.Dir, "go.mod"): "neither a folder nor a URL",
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || !badrequest.Is(err) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

func TestFoldersMayHaveColonsAsForGit(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a:b")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]Request{
		dir: {Repository: dir}, dir + "#fix": {Repository: dir, Ref: "fix"},
		"git.example:k/kubernetes#fix": {Repository: "git.example:k/kubernetes", Ref: "fix"},
		"ssh://git@git.example/k":      {Repository: "ssh://git@git.example/k"},
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestOnlyWhatIsCommittedCounts(t *testing.T) {
	t.Parallel()
	r := newKubernetes(t)
	before, err := Find(t.Context(), request(r.Dir))
	if err != nil {
		t.Fatal(err)
	}
	r.Write("pkg/version.go", "package edited\n")
	after, err := Find(t.Context(), request(r.Dir))
	if err != nil {
		t.Fatal(err)
	}
	if after.Source != before.Source || len(after.Notes) != 1 || !strings.Contains(after.Notes[0], "pkg/version.go: they do not count") {
		t.Errorf("%+v", after)
	}
	dir := t.TempDir()
	made, _, err := Make(t.Context(), after.Source, after.Version, dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir, made[2])["pkg/version.go"]; strings.Contains(got, "edited") {
		t.Error(got)
	}
}

func TestWhatIsNotKubernetesIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ file, text, want string }{
		"no Go":      {"README.md", "x\n", "it has no go.mod"},
		"another":    {"go.mod", "module example.com/x\n", "its go.mod is not that of k8s.io/kubernetes"},
		"no staging": {"go.mod", "module k8s.io/kubernetes\n", "no module is below staging/src/k8s.io"},
	} {
		r := gittest.New(t)
		r.Write(tt.file, tt.text)
		r.Commit()
		s := catalog.Source{Repository: r.Dir, Commit: r.Git("rev-parse", "HEAD")}
		if _, _, err := Make(t.Context(), s, "v1.37.2", t.TempDir()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	r := newKubernetes(t)
	r.Write("staging/src/k8s.io/client/client.go", "package client\n\nimport _ \"k8s.io/meta/types\"\n")
	r.Write("staging/src/k8s.io/meta/types/t.go", "package types\n\nimport _ \"k8s.io/client\"\n")
	r.Commit()
	s := catalog.Source{Repository: r.Dir, Commit: r.Git("rev-parse", "HEAD")}
	if _, _, err := Make(t.Context(), s, "v1.37.2", t.TempDir()); err == nil || !strings.Contains(err.Error(), "in a circle: k8s.io/") {
		t.Errorf("a circle: error %v", err)
	}
}

// newTree makes a tree that takes api and meta of a commit, an empty module cache, and a Go that asks a proxy, or "off".
func newTree(t *testing.T, r *gittest.Repo, proxy string) (root string, g *toolchain.Go, c *catalog.Catalog) {
	t.Helper()
	root = t.TempDir()
	for name, value := range map[string]string{
		"GOPROXY": proxy, "GOSUMDB": "sum.golang.org", "GOMODCACHE": filepath.Join(t.TempDir(), "mod"), "GOFLAGS": "-modcacherw", "GOWORK": "off",
		"GOTOOLCHAIN": "local", "GIT_DIR": filepath.Join(root, "none"), // which git sets for hooks
	} {
		t.Setenv(name, value)
	}
	g, err := toolchain.Find(t.Context(), toolchain.Pin{Version: runtime.Version()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c = &catalog.Catalog{Kubernetes: "v1.37.2"}
	made, source, err := Make(t.Context(), catalog.Source{Repository: r.Dir, Commit: r.Git("rev-parse", "HEAD")}, c.Kubernetes, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.Source = source
	for folder, modules := range map[string][]module.Pinned{"cmd": made[:1], "images/etcd": made[3:], "_output/x": made[1:2]} {
		dir := filepath.Join(root, filepath.FromSlash(folder))
		sums := append([]byte("example.com/x v0.37.2 h1:=\n"), module.WithSums(nil, modules)...)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return root, g, c
}

func cached(g *toolchain.Go, name string) bool {
	_, err := os.Stat(filepath.Join(g.ModCache, filepath.FromSlash(name)))
	return err == nil
}

func TestModulesArePlacedInTheModuleCache(t *testing.T) {
	r := newKubernetes(t)
	root, g, c := newTree(t, r, "off")
	if err := Place(t.Context(), g, root, c, nil); err != nil {
		t.Fatal(err)
	}
	if !cached(g, "k8s.io/api@v0.37.2/api.go") || !cached(g, "k8s.io/meta@v0.37.2") || cached(g, "k8s.io/client@v0.37.2") {
		t.Error("the module cache does not have what the tree takes, or more")
	}
	if err := os.Rename(r.Dir, r.Dir+" away"); err != nil {
		t.Fatal(err)
	}
	if err := Place(t.Context(), g, root, c, nil); err != nil {
		t.Errorf("what is there was made again: %v", err)
	}
	if err := os.RemoveAll(g.ModCache); err != nil {
		t.Fatal(err)
	}
	err := Place(t.Context(), g, root, c, nil)
	if err == nil || !strings.Contains(err.Error(), "k8s.io/api@v0.37.2 has no module proxy to come from") {
		t.Errorf("without the repository: error %v", err)
	}
}

func TestOtherCodeIsNotPlaced(t *testing.T) {
	r := newKubernetes(t)
	root, g, c := newTree(t, r, "off")
	right := c.Source
	c.Source.Tree = strings.Repeat("0", 40)
	if err := Place(t.Context(), g, root, c, nil); err == nil || !strings.Contains(err.Error(), "has the tree "+right.Tree+", want 0000") {
		t.Errorf("another tree: error %v", err)
	}
	r.Write("staging/src/k8s.io/meta/types/t.go", "package types\n\ntype T string\n")
	r.Commit()
	c.Source = catalog.Source{Repository: r.Dir, Commit: r.Git("rev-parse", "HEAD"), Tree: r.Git("rev-parse", "HEAD^{tree}")}
	err := Place(t.Context(), g, root, c, nil)
	if err == nil || !strings.Contains(err.Error(), "is not what go.sum files have the sums of: k8s.io/") {
		t.Errorf("another commit: error %v", err)
	}
	c.Source = right
	if err := Place(t.Context(), g, root, c, nil); err != nil {
		t.Fatal(err)
	}
	taken, err := Taken(root, c.Kubernetes)
	if err != nil || len(taken) != 2 {
		t.Fatalf("%v, error %v", taken, err)
	}
	taken[1].Sum = "h1:other="
	if _, err := Missing(g, taken); !errors.As(err, new(*ConflictError)) {
		t.Errorf("other code in the module cache: error %v", err)
	}
}

func TestMakingStopsWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	r := newKubernetes(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := catalog.Source{Repository: r.Dir, Commit: r.Git("rev-parse", "HEAD")}
	if _, _, err := Make(ctx, s, "v1.37.2", t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := (writer{ctx, &bytes.Buffer{}}).Write([]byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestUnderAnEmbargoNoProxyIsAsked(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.NotFound(w, r)
	}))
	defer server.Close()
	for embargo, want := range map[time.Time]bool{{}: true, time.Now().Add(-time.Hour): true, time.Now().Add(time.Hour): false} {
		t.Run(embargo.String(), func(t *testing.T) {
			root, g, c := newTree(t, newKubernetes(t), server.URL)
			asked.Store(0)
			c.Embargo = embargo
			if err := Place(t.Context(), g, root, c, nil); err != nil {
				t.Fatal(err)
			}
			if got := asked.Load() > 0; got != want {
				t.Errorf("a proxy is asked: %t", got)
			}
		})
	}
}

func TestSumsAreReadInAnyFolder(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "a [b] *")
	want := filepath.Join(root, "cmd", "go.sum")
	for _, name := range []string{want, filepath.Join(root, "_output", "x", "go.sum")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, nil, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := SumFiles(root)
	if diff := cmp.Diff([]string{want}, got); err != nil || diff != "" {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}
}
