package pack

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/recipe/recipetest"
)

func TestEveryFieldOfASpecIsInItsRecipe(t *testing.T) {
	t.Parallel()
	recipetest.EachField(t, Spec{})
	recipetest.EachField(t, CopySpec{})
}

// members runs the action of a spec, and returns what the tarball holds: "MODE NAME: CONTENT".
func members(t *testing.T, root string, s Spec, at Place) []string {
	t.Helper()
	at.Root, at.Tarballs, at.Sums, at.Cache = root, "out/tars", "out/sums", filepath.Join(root, "cache")
	g := action.Graph{Root: root, State: "out/state", Actions: []*action.Action{Action(s, at)}}
	if err := g.Run(t.Context(), action.Options{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(at.Tarball(s.Name))))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(data)
	if kept, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(at.SHA512(s.Name)))); err != nil ||
		string(kept) != hex.EncodeToString(sum[:])+"\n" {
		t.Errorf("SHA-512 %q, %v", kept, err)
	}
	gz, err := gzip.NewReader(strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(s.Time) {
			t.Errorf("%s: time %s", h.Name, h.ModTime)
		}
		got = append(got, fmt.Sprintf("%o %s: %s", h.Mode, h.Name, content))
	}
}

func TestATarballHoldsWhatItsSpecSays(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	err := os.CopyFS(root, fstest.MapFS{
		"bin/kubelet": {Data: []byte("program"), Mode: 0o755}, "manifests/a.yaml": {Data: []byte("image: __REGISTRY__/a:__VERSION__")},
		"manifests/a.toml":     {Data: []byte("image = '__REGISTRY__/a'")},
		"manifests/sub/README": {Data: []byte("__VERSION__")}, "plain/b.yaml": {Data: []byte("__VERSION__")},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := members(t, root, Spec{
		Name: "x.tar.gz", Top: "kubernetes", Time: time.Unix(1_700_000_000, 0).UTC(),
		Members: []Member{{From: "bin/kubelet", To: "server/bin/kubelet"}, {From: "manifests/", To: "addons", Fill: true},
			{From: "plain/b.yaml", To: "b.yaml", Last: true}},
		Texts:  []Text{{Name: "version", Content: "v1\n"}},
		Values: []Value{{"__REGISTRY__", "r.example"}, {"__VERSION__", "v1"}},
	}, Place{List: func(context.Context) ([]archive.Entry, error) {
		return []archive.Entry{{Name: "elsewhere", Mode: 0o600, Data: []byte("more")}}, nil
	}})
	want := []string{
		"644 elsewhere: more", "644 kubernetes/addons/sub/README: __VERSION__", "755 kubernetes/server/bin/kubelet: program",
		// what is last
		"644 kubernetes/addons/a.toml: image = 'r.example/a'", "644 kubernetes/addons/a.yaml: image: r.example/a:v1",
		"644 kubernetes/b.yaml: __VERSION__", "644 kubernetes/version: v1\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestATarballThatCannotBeMadeLeavesNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	broken := errors.New("broken")
	at := Place{Root: root, Tarballs: "out", Sums: "sums", List: func(context.Context) ([]archive.Entry, error) { return nil, broken }}
	g := action.Graph{Root: root, State: "state", Actions: []*action.Action{Action(Spec{Name: "x.tar.gz"}, at)}}
	if err := g.Run(t.Context(), action.Options{}); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "out", "x.tar.gz")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a tarball: %v", err)
	}
}
