package patching

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/goproxytest"
	"github.com/rogpeppe/go-internal/txtar"

	"slipway.build/pkg/make/upstream"
	"slipway.build/pkg/mechanism/git"
)

// A world is a tree with a small Kubernetes.
type world struct {
	*Workspace
	t   *testing.T
	env []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ar, err := txtar.ParseFile(filepath.Join("testdata", "world.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := txtar.Write(ar, dir); err != nil {
		t.Fatal(err)
	}
	proxy := goproxytest.NewTestServer(t, filepath.Join(dir, "mod"), "")
	w := &world{t: t, env: append(os.Environ(), "GOENV=off", "GOWORK=off", "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw",
		"GOMODCACHE="+filepath.Join(dir, "cache"), "GOPROXY="+proxy.URL, "GONOSUMDB=*", "GOPRIVATE=", "GONOPROXY=")}
	w.Workspace = &Workspace{Root: filepath.Join(dir, "tree"), Components: "cmd", Project: upstream.Kubernetes, Go: w.find}
	return w
}

func (w *world) find(context.Context) (upstream.Go, error) { return w, nil }

// Command makes a world an upstream.Go.
func (w *world) Command(ctx context.Context, dir, _, _ string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir, c.Env = dir, w.env
	return c
}

// edit lays out the copy.
func (w *world) edit() *Edited {
	w.t.Helper()
	e, err := w.Edit(w.t.Context(), false)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func (w *world) save() *Saved {
	w.t.Helper()
	s, err := w.Save(w.t.Context(), false)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// git runs git in the copy as its user.
func (w *world) git(args ...string) string {
	w.t.Helper()
	repo, err := git.At(w.Folder())
	if err != nil {
		w.t.Fatal(err)
	}
	repo = repo.With("GIT_AUTHOR_NAME=Jo Ä", "GIT_AUTHOR_EMAIL=jo@acme.example", "GIT_AUTHOR_DATE=2026-11-20T23:53:00+0100",
		"GIT_COMMITTER_NAME=Jo", "GIT_COMMITTER_EMAIL=jo@acme.example")
	out, err := repo.Line(w.t.Context(), args...)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// commit replaces text in a file of the copy, and commits that. Empty text makes a new file.
func (w *world) commit(title, name, old, new string) {
	w.t.Helper()
	w.change(name, old, new)
	w.git("add", "-A")
	w.git("commit", "-q", "-m", title)
}

func (w *world) change(name, old, new string) {
	w.t.Helper()
	file := filepath.Join(w.Folder(), filepath.FromSlash(name))
	text := new
	if old != "" {
		data, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(data), old) {
			w.t.Fatalf("%s does not hold %q: %v", name, old, err)
		}
		text = strings.Replace(string(data), old, new, 1)
	}
	write(w.t, file, text)
}

// patches reads the folder of patches.
func (w *world) patches() map[string]string {
	w.t.Helper()
	files, err := readPatches(w.abs("patches"))
	if err != nil {
		w.t.Fatal(err)
	}
	texts := map[string]string{}
	for name, data := range files {
		texts[name] = string(data)
	}
	return texts
}

func (w *world) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.Folder(), filepath.FromSlash(name)))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func (w *world) patch(name, text string) {
	w.t.Helper()
	write(w.t, w.abs("patches/"+name), text)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
