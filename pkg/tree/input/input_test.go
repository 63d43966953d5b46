package input

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/tree/module"
)

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheFolderOfInputsIsFound(t *testing.T) {
	t.Parallel()
	with, without := t.TempDir(), t.TempDir()
	write(t, with, map[string]string{"_inputs/go/a/@v/list": ""})
	own := Folder(filepath.Join(with, Dir))
	for _, tt := range []struct {
		root, setting string
		want          Folder
	}{
		{with, "", own}, {without, "", ""}, {with, "off", ""}, {without, filepath.Join(with, Dir), own},
	} {
		if got, err := Find(tt.root, tt.setting); got != tt.want || err != nil {
			t.Errorf("%s, setting %q: %q, %v", tt.root, tt.setting, got, err)
		}
	}
	if _, err := Find(with, without); !badrequest.Is(err) || !strings.Contains(err.Error(), "want the folder _inputs") {
		t.Errorf("another folder: error %v", err)
	}
	if Folder("").Modules() != "" || own.Debian() != filepath.Join(with, "_inputs", "debian") {
		t.Error("parts of a folder are elsewhere")
	}
}

func TestModulesInTestdataAndOfTestsAreNoInputs(t *testing.T) {
	t.Parallel()
	got := ModuleFolders([]string{"images/a/go.mod", "go.mod", "cmd/go.mod.orig", "pkg/testdata/m/go.mod", "_old/go.mod", ".cache/x/go.mod",
		"cmd/go.mod", "test/peers/go.mod", "testing/go.mod"})
	if diff := cmp.Diff([]string{".", "cmd", "images/a", "testing"}, got); diff != "" {
		t.Error(diff)
	}
}

var sum = strings.Repeat("0a", 32)

func lock(names ...string) string {
	text := "suite trixie\ntime 20261121T131324Z\n"
	for i, name := range names {
		arch, pkg, _ := strings.Cut(name, " ")
		text += fmt.Sprintf("%s %s 1 5 %s pool/a.deb\n", arch, pkg, strings.Replace(sum, "0a", fmt.Sprintf("%02x", i), 1))
	}
	return text
}

func TestAListHasEveryInputOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{
		"go.mod":               "module a\n",
		"go.sum":               "example.com/m v1.0.0 h1:m=\nexample.com/m v1.0.0/go.mod h1:mod=\nexample.com/g v1.0.0/go.mod h1:g=\n",
		"cmd/go.mod":           "module b\n",
		"cmd/go.sum":           "example.com/g v1.0.0 h1:code=\nexample.com/m v1.0.0/go.mod h1:mod=\n",
		"images/a/debian.lock": lock("amd64 liba", "arm64 liba"),
		"images/b/debian.lock": lock("amd64 liba"),
	})
	tool := module.Pinned{Version: module.Version{Path: "golang.org/toolchain", Version: "v0.0.1-go1.99.1.linux-amd64"}, Sum: "h1:t="}
	l, err := Read(root, []string{".", "cmd"}, []module.Pinned{tool}, []string{"images/a", "images/b"}, []string{"amd64"})
	if err != nil {
		t.Fatal(err)
	}
	want := []module.Pinned{
		{Version: module.Version{Path: "example.com/g", Version: "v1.0.0"}, Sum: "h1:code=", GoModSum: "h1:g="},
		{Version: module.Version{Path: "example.com/m", Version: "v1.0.0"}, Sum: "h1:m=", GoModSum: "h1:mod="},
		tool,
	}
	if diff := cmp.Diff(want, l.Modules); diff != "" {
		t.Error(diff)
	}
	if len(l.Debian) != 1 || len(l.Debian[0].Packages) != 1 || l.Debian[0].Time != "20261121T131324Z" {
		t.Errorf("packages: %+v", l.Debian)
	}

	write(t, root, map[string]string{"cmd/go.sum": "example.com/m v1.0.0 h1:other=\n"})
	_, err = Read(root, []string{".", "cmd"}, nil, nil, nil)
	if err == nil || err.Error() != "example.com/m@v1.0.0 has different sums in go.sum and cmd/go.sum" {
		t.Errorf("two sums: error %v", err)
	}
}

// A member is a file of a tarball.
type member struct{ name, text string }

func tarball(t *testing.T, members ...member) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		if err := w.WriteHeader(&tar.Header{Name: m.name, Mode: 0o644, Size: int64(len(m.text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestMembersAreComparedWithTheSums(t *testing.T) {
	t.Parallel()
	sums := fmt.Sprintf("%x  README.md\n%x  version\n", sha256.Sum256([]byte("text")), sha256.Sum256([]byte("v1")))
	readme, list, version := member{"README.md", "text"}, member{Sums, sums}, member{"version", "v1"}
	c, err := check(t.Context(), tarball(t, readme, list, version))
	if err != nil || string(c.Version) != "v1" {
		t.Fatalf("%+v, error %v", c, err)
	}
	for want, members := range map[string][]member{
		"README.md has changed: its SHA-256 is ": {{"README.md", "texT"}, list, version},
		"version is missing":                     {readme, list},
		"more is not in _inputs/SHA256SUMS":      {readme, list, {"more", ""}, version},
		"README.md is in it twice":               {readme, readme, list, version},
	} {
		_, err := check(t.Context(), tarball(t, members...))
		if _, ok := errors.AsType[MembersError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	whole := tarball(t, readme, list, version).Bytes()
	for _, n := range []int{100, 513, 600, 1500} {
		if _, err := check(t.Context(), bytes.NewReader(whole[:n])); !errors.Is(err, ErrCutShort) {
			t.Errorf("the first %d of %d bytes: error %v", n, len(whole), err)
		}
	}
	if _, err := check(t.Context(), strings.NewReader(strings.Repeat("no tarball ", 100))); err == nil {
		t.Error("any text is accepted")
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := check(canceled, bytes.NewReader(whole)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func FuzzCheck(f *testing.F) {
	sums := fmt.Sprintf("%x  README.md\n", sha256.Sum256([]byte("text")))
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range map[string]string{"README.md": "text", Sums: sums} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			f.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = check(context.Background(), bytes.NewReader(data))
	})
}
