package upstream_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/goproxytest"
	"github.com/rogpeppe/go-internal/txtar"

	"slipway.build/pkg/make/upstream"
	"slipway.build/pkg/mechanism/badrequest"
)

// A world is a tree, with the only modules that there are.
type world struct {
	root string // of the tree
	env  []string
}

// newWorld unpacks testdata/world.txtar without the named modules.
func newWorld(t *testing.T, without ...string) world {
	t.Helper()
	ar, err := txtar.ParseFile(filepath.Join("testdata", "world.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	ar.Files = slices.DeleteFunc(ar.Files, func(f txtar.File) bool {
		return slices.ContainsFunc(without, func(m string) bool { return strings.HasPrefix(f.Name, "mod/"+m+"/") })
	})
	dir := t.TempDir()
	if err := txtar.Write(ar, dir); err != nil {
		t.Fatal(err)
	}
	proxy := goproxytest.NewTestServer(t, filepath.Join(dir, "mod"), "")
	return world{filepath.Join(dir, "tree"), append(os.Environ(), "GOENV=off", "GOWORK=off", "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw",
		"GOMODCACHE="+filepath.Join(dir, "cache"), "GOPROXY="+proxy.URL, "GONOSUMDB=*", "GOPRIVATE=", "GONOPROXY=")}
}

// Command makes a world an upstream.Go.
func (w world) Command(ctx context.Context, dir, _, _ string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir, c.Env = dir, w.env
	return c
}

func (w world) open(t *testing.T, project string) *upstream.Repository {
	t.Helper()
	r, err := upstream.Open(t.Context(), w, w.root, "cmd", project)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (w world) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.root, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// files lists the files below dir, executable ones with an asterisk.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode()&0o100 != 0 {
			name += "*"
		}
		list = append(list, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestKubernetesIsPutTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(t, upstream.Kubernetes)
	dir := filepath.Join(t.TempDir(), "copy")
	if err := r.Copy(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	script := "hack/update.sh*"
	if runtime.GOOS == "windows" {
		script = "hack/update.sh"
	}
	want := []string{"go.mod", "go.work", script, "pkg/kubelet/kubelet.go", "staging/src/k8s.io/api/core/types.go",
		"staging/src/k8s.io/api/go.mod"}
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	// Nothing is compiled from the module that is missing.
	if len(r.Missing) != 1 || r.Missing[0].Path != "k8s.io/sample-cli-plugin" || r.Missing[0].Version.Version != "v0.99.1" {
		t.Errorf("missing: %v", r.Missing)
	}
	work, err := os.ReadFile(filepath.Join(dir, "go.work"))
	if want := "go 1.26\n\nuse (\n\t.\n\t./staging/src/k8s.io/api\n)\n"; err != nil || string(work) != want {
		t.Errorf("go.work is %q, %v", work, err)
	}
	list := w.Command(t.Context(), dir, "", "", "list", "./...", "k8s.io/api/...")
	list.Env = append(list.Env, "GOWORK="+filepath.Join(dir, "go.work"))
	if out, err := list.CombinedOutput(); err != nil || string(out) != "k8s.io/kubernetes/pkg/kubelet\nk8s.io/api/core\n" {
		t.Errorf("go list: %v\n%s", err, out)
	}
}

func TestFilesBelongToTheInnermostModule(t *testing.T) {
	t.Parallel()
	r := newWorld(t).open(t, upstream.Kubernetes)
	for file, want := range map[string][2]string{
		"pkg/kubelet/kubelet.go":               {"k8s.io/kubernetes", "pkg/kubelet/kubelet.go"},
		"staging/src/k8s.io/api/core/types.go": {"k8s.io/api", "core/types.go"},
		"staging/src/k8s.io/apis":              {"k8s.io/kubernetes", "staging/src/k8s.io/apis"},
	} {
		if m, rest, ok := r.Find(file); !ok || m.Path != want[0] || rest != want[1] {
			t.Errorf("%s is %s of %s, want %v", file, rest, m.Path, want)
		}
	}
}

func TestProjectOfSeveralModules(t *testing.T) {
	t.Parallel()
	r := newWorld(t).open(t, "store")
	dir := filepath.Join(t.TempDir(), "copy")
	if err := r.Copy(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"api/api.go", "api/go.mod", "client/v3/go.mod", "server/go.mod", "server/main.go"},
		files(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if r.Version != "v3.7.0" || r.Path != "example.com/store" {
		t.Errorf("%s %s", r.Path, r.Version)
	}
	if _, _, ok := r.Find("README.md"); ok {
		t.Error("a file at the top belongs to no module here")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, project string
		change        func(t *testing.T, w world)
		without       string
		request       bool
		want          string
	}{
		{name: "unknown project", project: "stor", request: true,
			want: `unknown project "stor"; did you mean store? (the tree has k8s.io/kubernetes, pause, store)`},
		{name: "path", project: "../cmd", request: true, want: `unknown project`},
		{name: "own code", project: "pause", request: true, want: "images/pause is code of this tree"},
		{name: "module that is compiled is missing", project: upstream.Kubernetes, without: "k8s.io_api_v0.99.1",
			want: "module k8s.io/api@v0.99.1: "},
		{name: "folder", project: upstream.Kubernetes, want: "replaces k8s.io/kubernetes by the folder ../k",
			change: func(t *testing.T, w world) {
				w.write(t, "cmd/go.mod", "module m\ngo 1.26\nrequire k8s.io/kubernetes v1.99.1\nreplace k8s.io/kubernetes => ../k\n")
			}},
		{name: "other sum", project: upstream.Kubernetes, want: "checksum mismatch", change: func(t *testing.T, w world) {
			w.write(t, "cmd/go.sum", "k8s.io/kubernetes v1.99.1 h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.without)
			if tt.change != nil {
				tt.change(t, w)
			}
			_, err := upstream.Open(t.Context(), w, w.root, "cmd", tt.project)
			if err == nil || !strings.Contains(err.Error(), tt.want) || badrequest.Is(err) != tt.request {
				t.Errorf("got %v (the request's fault: %v), want %q", err, badrequest.Is(err), tt.want)
			}
		})
	}
}

func TestKeptCopyHasTheFilesOfTheLastChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(t, upstream.Kubernetes)
	dir := filepath.Join(t.TempDir(), "state", "kept")
	made := 0
	keep := func(key string, changed map[string]upstream.File, err error) error {
		t.Helper()
		change := func(_ context.Context, root string) (map[string]upstream.File, error) {
			made++
			if list := files(t, root); slices.Contains(list, "new.go") || !slices.Contains(list, "go.work") {
				t.Errorf("the copy is not as the modules are: %q", list)
			}
			return changed, err
		}
		got, err := r.Keep(t.Context(), dir, upstream.Change{Key: key, Make: change})
		if err == nil && got != dir {
			t.Errorf("kept in %s", got)
		}
		return err
	}
	const staging = "staging/src/k8s.io/api/go.mod"
	original := func() string {
		data, err := os.ReadFile(filepath.Join(dir, staging))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	first := map[string]upstream.File{
		"new.go": {Data: []byte("package new\n")}, "deep/new.sh": {Exec: true},
		staging: {Data: []byte("module changed\n")}, "go.work": {Removed: true},
	}
	for range 2 {
		if err := keep("1", first, nil); err != nil || made != 1 {
			t.Fatalf("made %d times: %v", made, err)
		}
	}
	if list := files(t, dir); !slices.Contains(list, "new.go") || slices.Contains(list, "go.work") || original() != "module changed\n" {
		t.Errorf("after a change: %q", list)
	}
	if info, err := os.Stat(filepath.Join(dir, "deep", "new.sh")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("%v: %v, want an executable file", info, err)
	}
	// What a user has written stays: so the copy is the same.
	if err := os.WriteFile(filepath.Join(dir, "user"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("failed")
	if err := keep("2", nil, failed); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	list := files(t, dir)
	if slices.Contains(list, "new.go") || !slices.Contains(list, "go.work") || !slices.Contains(list, "user") ||
		original() == "module changed\n" {
		t.Errorf("after a change that fails: %q", list)
	}
	if err := keep("2", first, nil); err != nil || made != 3 {
		t.Errorf("made %d times: %v", made, err)
	}
	if _, err := r.Keep(t.Context(), dir, upstream.Change{}); err != nil || slices.Contains(files(t, dir), "new.go") {
		t.Errorf("without a change: %v, %q", err, files(t, dir))
	}
}

// A kill may leave any of a change's files half-written.
func TestKeptCopyIsRestoredAfterAKill(t *testing.T) {
	t.Parallel()
	r := newWorld(t).open(t, upstream.Kubernetes)
	dir := filepath.Join(t.TempDir(), "kept")
	change := upstream.Change{Key: "1", Make: func(_ context.Context, root string) (map[string]upstream.File, error) {
		// A file that cannot be written, since a folder has its name.
		return map[string]upstream.File{"go.work": {Data: []byte("half")}, "staging/src/k8s.io/api": {Data: []byte("x")}}, nil
	}}
	if _, err := r.Keep(t.Context(), dir, change); err == nil {
		t.Fatal("a file replaced a folder")
	}
	if data, err := os.ReadFile(filepath.Join(dir, "go.work")); err != nil || string(data) != "half" {
		t.Fatalf("the change has not begun: %q, %v", data, err)
	}
	change.Make = func(_ context.Context, root string) (map[string]upstream.File, error) {
		if data, err := os.ReadFile(filepath.Join(root, "go.work")); err != nil || string(data) == "half" {
			t.Errorf("go.work is %q, %v", data, err)
		}
		return nil, nil
	}
	if _, err := r.Keep(t.Context(), dir, change); err != nil {
		t.Error(err)
	}
}
