package main

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/tree/catalog"
)

func TestActionsOfOtherPlatformsHaveOneLikeThemHere(t *testing.T) {
	t.Parallel()
	var all []catalog.Platform
	for _, text := range []string{"linux/arm", "linux/amd64", "linux/arm64", "windows/386"} {
		p, err := platform.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	for id, want := range map[string]string{
		"compile linux/arm64 kubectl":                      "compile linux/amd64 kubectl",
		"compile linux/arm kubectl":                        "compile linux/amd64 kubectl",
		"compile linux/amd64 kubectl":                      "compile linux/amd64 kubectl",
		"package kubernetes-client-linux-arm64.tar.gz":     "package kubernetes-client-linux-amd64.tar.gz",
		"package kubernetes-client-windows-386.tar.gz":     "package kubernetes-client-linux-amd64.tar.gz",
		"package kubernetes-client-solaris-sparc64.tar.gz": "package kubernetes-client-solaris-sparc64.tar.gz",
		"release.json": "release.json",
	} {
		if got := onPlatform(all[1], id, all); got != want {
			t.Errorf("%s is like %s, want %s", id, got, want)
		}
	}
}

// What stands in for a folder has the same names, kinds, modes and, up to a bound, sizes, but other bytes; and the same bytes each time.
func TestStandInIsLikeItsModel(t *testing.T) {
	t.Parallel()
	like := filepath.Join(t.TempDir(), "model")
	for name, text := range map[string]string{"a/small": "12345", "a/large": string(make([]byte, 3*unread)), "empty": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(like, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(like, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(like, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a/small", filepath.Join(like, "link")); err != nil {
		t.Fatal(err)
	}
	made := func(most int64) map[string]string {
		t.Helper()
		to := filepath.Join(t.TempDir(), "out")
		s := standIn{source: rand.NewChaCha8([32]byte{1}), most: most}
		if err := s.write(to, like); err != nil {
			t.Fatal(err)
		}
		return contents(t, to)
	}
	bounded, whole := made(unread), made(math.MaxInt64)
	sizes := func(of map[string]string) map[string]int {
		n := map[string]int{}
		for name, text := range of {
			n[name] = len(text)
		}
		return n
	}
	const mode = "-rw-r--r-- "
	n := len(mode)
	for _, test := range []struct {
		got  map[string]string
		want map[string]int
	}{
		{bounded, map[string]int{"a": n, "a/small": n + 5, "a/large": n + unread, "empty": n, "link": n + len("a/small")}},
		{whole, map[string]int{"a": n, "a/small": n + 5, "a/large": n + 3*unread, "empty": n, "link": n + len("a/small")}},
	} {
		if diff := cmp.Diff(test.want, sizes(test.got)); diff != "" {
			t.Error(diff)
		}
	}
	if whole["a/large"] == contents(t, like)["a/large"] || whole["empty"] != "-rwxr-xr-x " {
		t.Errorf("a stand-in has its model's bytes, or another mode: %q", whole["empty"])
	}
	if diff := cmp.Diff(bounded, made(unread)); diff != "" {
		t.Error(diff)
	}
}

// contents returns mode and bytes, or target, of all that is below a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var data []byte
		switch {
		case d.Type().IsRegular():
			data, err = os.ReadFile(name)
		case d.Type() == os.ModeSymlink:
			var target string
			target, err = os.Readlink(name)
			data = []byte(target)
		}
		rel, _ := filepath.Rel(dir, name)
		all[filepath.ToSlash(rel)] = info.Mode().Perm().String() + " " + string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
