package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/release"
)

// made writes a release of two files and returns its folder.
func made(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	r := &release.Release{Format: release.Format, Version: "v1.37.0"}
	for _, name := range []string{"SHA256SUMS", "kubernetes.tar.gz"} {
		data := []byte("content of " + name)
		write(t, dir, name, string(data))
		short, long := sha256.Sum256(data), sha512.Sum512(data)
		r.Artifacts = append(r.Artifacts, release.Artifact{
			Name: name, Path: name, Size: int64(len(data)), SHA256: hex.EncodeToString(short[:]), SHA512: hex.EncodeToString(long[:]),
		})
	}
	r.Artifacts = append(r.Artifacts, release.Artifact{ // inside a tarball
		Name: "linux/amd64/kubelet", Size: 1, SHA256: strings.Repeat("a", 64), SHA512: strings.Repeat("b", 128),
	})
	data, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, release.File, string(data))
	return dir
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAWholeReleaseIsOK(t *testing.T) {
	t.Parallel()
	dir := made(t)
	report, err := Folder(t.Context(), dir, Want{})
	if err != nil {
		t.Fatal(err)
	}
	want := &Report{Folder: dir, Version: "v1.37.0", Valid: true, Signature: Unsigned, Files: []File{{"SHA256SUMS", OK, ""}, {"kubernetes.tar.gz", OK, ""}}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var text bytes.Buffer
	if err := report.Text(&text); err != nil {
		t.Fatal(err)
	}
	if want := "SHA256SUMS: OK\nkubernetes.tar.gz: OK\nrelease v1.37.0: 2 files as described; intact, not signed\n"; text.String() != want {
		t.Errorf("%q", text.String())
	}
}

func TestTheReportSaysWhatIsWrongWithAFile(t *testing.T) {
	t.Parallel()
	const tar = "kubernetes.tar.gz"
	for what, test := range map[string]struct {
		harm func(t *testing.T, dir string)
		want File
	}{
		"missing": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, tar)); err != nil {
				t.Fatal(err)
			}
		}, File{tar, Missing, ""}},
		"cut short":      {func(t *testing.T, dir string) { write(t, dir, tar, "content") }, File{tar, Short, "has 7 bytes of 28"}},
		"longer":         {func(t *testing.T, dir string) { write(t, dir, tar, "content of kubernetes.tar.gz.") }, File{tar, Changed, "has 29 bytes, want 28"}},
		"another byte":   {func(t *testing.T, dir string) { write(t, dir, tar, "content of kubernetes.tar.gy") }, File{Path: tar, Status: Changed}},
		"of another run": {func(t *testing.T, dir string) { write(t, dir, "old.tar.gz", "") }, File{"old.tar.gz", Stranger, ""}},
		"in a folder": {func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, dir, "sub/x", "")
		}, File{"sub/x", Stranger, ""}},
		"a link": {func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, tar), filepath.Join(t.TempDir(), tar)); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(release.File, filepath.Join(dir, tar)); err != nil {
				t.Fatal(err)
			}
		}, File{tar, Changed, "is not a regular file"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := made(t)
			test.harm(t, dir)
			report, err := Folder(t.Context(), dir, Want{})
			if err != nil {
				t.Fatal(err)
			}
			var bad []File
			for _, f := range report.Files {
				if f.Status != OK {
					if test.want.Detail == "" {
						f.Detail = ""
					}
					bad = append(bad, f)
				}
			}
			if diff := cmp.Diff([]File{test.want}, bad); diff != "" || report.OK() {
				t.Errorf("OK %t, -want +got:\n%s", report.OK(), diff)
			}
			var text, data bytes.Buffer
			if err := errors.Join(report.Text(&text), report.JSON(&data)); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text.String(), test.want.Path+": "+string(test.want.Status)) || !strings.Contains(text.String(), "are not as described") {
				t.Errorf("text %q", text.String())
			}
			var read Report
			if err := json.Unmarshal(data.Bytes(), &read); err != nil || cmp.Diff(*report, read) != "" {
				t.Errorf("%v: JSON %s", err, data.String())
			}
		})
	}
}

func TestFilesChecksOnlyTheNamedFiles(t *testing.T) {
	t.Parallel()
	dir := made(t)
	described, err := release.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "SHA256SUMS", "damaged")
	write(t, dir, "stranger", "")
	if report, err := Files(t.Context(), dir, described, "kubernetes.tar.gz"); err != nil || !report.OK() || len(report.Files) != 1 {
		t.Errorf("%v, %v", report, err)
	}
	if report, err := Files(t.Context(), dir, described, "SHA256SUMS"); err != nil || report.OK() {
		t.Errorf("%v, %v", report, err)
	}
	for _, name := range []string{"none", "linux/amd64/kubelet"} {
		if _, err := Files(t.Context(), dir, described, name); err == nil {
			t.Errorf("%s is checked", name)
		}
	}
}

func TestAFolderWithoutADescriptionIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := Folder(t.Context(), t.TempDir(), Want{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	dir := made(t)
	data, err := (&release.Release{Format: release.Format}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, release.File, string(data))
	if _, err := Folder(t.Context(), dir, Want{}); err == nil || !strings.Contains(err.Error(), "names no files") {
		t.Errorf("error %v", err)
	}
}

func TestACheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Folder(ctx, made(t), Want{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
