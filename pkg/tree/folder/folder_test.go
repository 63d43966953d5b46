package folder

import (
	"archive/tar"
	"bytes"
	"crypto/sha1"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/statcache"
)

func TestLeavings(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"patches/.#0001-acme.patch": true, "cmd/#main.go#": true, "a~": true, "cmd/.main.go.swp": true, ".x.swo": true, "docs/.DS_Store": true,
		".gitignore": false, "images/x/rootfs/etc/.hidden": false, "~": false, "#": false, "a#": false, "a.swp": false,
		"patches/0001.patch": false,
	} {
		if Leaving(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func TestDigestOfAFolderIsThatOfItsTar(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, f := range []struct {
		name, content, link string
		mode                fs.FileMode
	}{
		{"b/run", "#!/bin/sh\n", "", 0o755}, {"a.go", "package a\n", "", 0o644}, {"b/link", "", "../a.go", 0}, {"version", "other", "", 0o644},
		{"_output/x", "", "", 0o644},
	} {
		file := filepath.Join(dir, f.name)
		h := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(f.content)), Typeflag: tar.TypeReg}
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if err == nil && f.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.link
			err = os.Symlink(f.link, file)
		} else if err == nil {
			err = os.WriteFile(file, []byte(f.content), f.mode)
		}
		if err == nil {
			err = w.WriteHeader(h)
		}
		if err == nil {
			_, err = w.Write([]byte(f.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := List(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a.go", "b/link", "b/run"}; !slices.Equal(names, want) {
		t.Errorf("List = %q, want %q", names, want)
	}
	files, err := Read(t.Context(), dir, append(names, "missing", "b", "a.go/below"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	members, err := Members(t.Context(), &packed)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := Digest(files), Digest(members); a != b || a == Digest(files, "more") || a == Digest(files[1:]) {
		t.Errorf("the folder's digest is %s, and the tar's %s", a, b)
	}
}

// An edit that leaves a file's size and modification time is noticed; what did not change is not read again.
func TestReadOnlyWhatChanged(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	memory, err := statcache.Load(filepath.Join(dir, "none"))
	if err != nil {
		t.Fatal(err)
	}
	sum := func(text string) string {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * statcache.Tick)
		files, err := Read(t.Context(), dir, []string{"a"}, sha1.New, memory)
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		return files[0].SHA256 + files[0].Blob
	}
	one, two := sum("one"), sum("two")
	if one == two || sum("one") != one {
		t.Error("an edit was not noticed")
	}
	st, err := statcache.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	memory.Remember("a", st, "x y", time.Now().UnixNano())
	files, err := Read(t.Context(), dir, []string{"a"}, sha1.New, memory)
	if err != nil || files[0].SHA256 != "x" || files[0].Blob != "y" {
		t.Errorf("read again: %v %v", files, err)
	}
}
