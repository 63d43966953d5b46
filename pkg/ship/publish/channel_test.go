package publish

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
)

func TestFolderKeepsWhatExists(t *testing.T) {
	t.Parallel()
	f := folder(t.TempDir())
	write(t, string(f), "old", []byte("old"))
	write(t, string(f), "gone", []byte("gone"))
	err := f.Locked(t.Context(), func() {}, func() error {
		put := f.Put(t.Context(), "old", func(w io.Writer) error {
			_, err := io.WriteString(w, "new")
			return err
		})
		if !errors.Is(put, fs.ErrExist) {
			t.Errorf("put: %v", put)
		}
		for _, was := range [][]byte{nil, []byte("older")} {
			if err := f.Replace(t.Context(), Change{"fresh", nil, []byte("new")}, Change{"old", was, []byte("new")}); !errors.Is(err, ErrChanged) {
				t.Errorf("replace what was %q: %v", was, err)
			}
		}
		if _, err := f.Read(t.Context(), "fresh"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("one of two files was replaced: %v", err)
		}
		return f.Replace(t.Context(), Change{"fresh", nil, []byte("new")}, Change{"gone", []byte("gone"), nil})
	})
	for name, want := range map[string]string{"fresh": "new", "gone": ""} {
		if data, failed := f.Read(t.Context(), name); string(data) != want || (want == "") != errors.Is(failed, fs.ErrNotExist) {
			t.Errorf("%s is %q, %v", name, data, failed)
		}
	}
	if data, failed := f.Read(t.Context(), "old"); err != nil || failed != nil || string(data) != "old" {
		t.Errorf("it is %q, %v, %v", data, err, failed)
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "with space/file", nil)
	for target, want := range map[string]string{
		"file://" + dir + "/with%20space":      "",
		"file://localhost" + dir:               "",
		"file://" + dir + "/none":              "make it first",
		"file://" + dir + "/with%20space/file": "is not a folder",
		dir:                                    "is not the URL of a folder",
		"file://srv/k8s":                       "is not the URL of a folder",
		"https://example.com/":                 "is not the URL of a folder",
		"file://" + dir + "?x":                 "is not the URL of a folder",
	} {
		_, err := Open(target)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", target, err, want)
		}
	}
}
