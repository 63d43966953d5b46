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

	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/release/sbom"
)

// made writes a release of two files and an image, with what is said about them, and returns its folder.
func made(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	on := platform.Platform{OS: "linux", Arch: "amd64"}
	zap := release.Input{Kind: release.Module, Name: "go.uber.org/zap", Version: "v1.0.0", License: "MIT",
		Sum: "h1:l6N77U7tjwB5L056bgrBTJIEdevac/naBZ3iSvDNfpM="}
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 128)
	const image = "registry.k8s.io/pause-amd64:v1.37.0"
	r := &release.Release{
		Format: release.Format, Version: "v1.37.0", Compiler: "go", Go: "go1.26.8", Inputs: []release.Input{zap},
		Variables: map[string]string{"GOLDFLAGS": "-race"},
		Artifacts: []release.Artifact{ // inside a tarball
			{Name: "linux/amd64/pause", Kind: release.Binary, Platform: on, Size: 1, SHA256: a, SHA512: b, Inputs: []string{zap.PURL()}},
			{Name: "linux/amd64/pause.tar", Kind: release.Archive, Platform: on, Size: 1, SHA256: a, SHA512: b, Of: []string{image}},
			{Name: image, Kind: release.Image, Platform: on, Size: 1, SHA256: strings.Repeat("c", 64), SHA512: b, Of: []string{"linux/amd64/pause"}},
			{Name: "registry.k8s.io/pause:v1.37.0", Kind: release.Index, Size: 1, SHA256: strings.Repeat("d", 64), SHA512: b, Of: []string{image}},
		},
	}
	file := func(a release.Artifact, data []byte) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, a.Name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, dir, a.Name, string(data))
		short, long := sha256.Sum256(data), sha512.Sum512(data)
		a.Path, a.Size, a.SHA256, a.SHA512 = a.Name, int64(len(data)), hex.EncodeToString(short[:]), hex.EncodeToString(long[:])
		r.Artifacts = append(r.Artifacts, a)
	}
	file(release.Artifact{Name: "kubernetes.tar.gz", Kind: release.Tarball, Of: []string{"linux/amd64/pause.tar"}},
		[]byte("content of kubernetes.tar.gz"))
	for _, a := range sbom.Artifacts(r, "sbom") {
		data, err := sbom.Make(r, a, nil)
		if err != nil {
			t.Fatal(err)
		}
		file(a, data)
	}
	file(release.Artifact{Name: "SHA256SUMS", Kind: release.Sums}, []byte("content of SHA256SUMS"))
	describe(t, dir, r)
	return dir
}

// describe writes a release.json, and the statements that follow from it.
func describe(t *testing.T, dir string, r *release.Release) {
	t.Helper()
	data, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, release.File, string(data))
	state(t, dir)
}

// described is the number of files in the release, and signatures that of its signatures.
const described, signatures = 10, 12

// state writes the statements about a release.
func state(t *testing.T, dir string) {
	t.Helper()
	data := read(t, dir, release.File)
	r, err := release.Unmarshal(data)
	if err != nil {
		t.Fatal(err)
	}
	made, err := provenance.Of(r, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range made {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, m.File)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, dir, m.File, string(m.Content))
	}
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
	want := &Report{Folder: dir, Version: "v1.37.0", Valid: true, Signature: Unsigned}
	for _, name := range []string{
		"SHA256SUMS", "kubernetes-release.cdx.json", "kubernetes-release.spdx.json", "kubernetes.tar.gz", "provenance.json",
		"provenance/kubernetes.tar.gz.json", "provenance/pause-linux-amd64.json", "provenance/pause.json",
		"sbom/pause-linux-amd64.cdx.json", "sbom/pause-linux-amd64.spdx.json",
	} {
		want.Files = append(want.Files, File{name, OK, ""})
	}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var text bytes.Buffer
	if err := report.Text(&text); err != nil {
		t.Fatal(err)
	}
	if want := `SHA256SUMS: OK
kubernetes-release.cdx.json: OK
kubernetes-release.spdx.json: OK
kubernetes.tar.gz: OK
provenance.json: OK
provenance/: OK, 3 files
sbom/: OK, 2 files
release v1.37.0: 10 files as described; intact, not signed
`; text.String() != want {
		t.Errorf("%s", text.String())
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
		"cut short": {func(t *testing.T, dir string) { write(t, dir, tar, "content") }, File{tar, Short, "has 7 bytes of 28"}},
		"longer": {func(t *testing.T, dir string) { write(t, dir, tar, "content of kubernetes.tar.gz.") },
			File{tar, Changed, "has 29 bytes, want 28"}},
		"another byte": {func(t *testing.T, dir string) { write(t, dir, tar, "content of kubernetes.tar.gy") },
			File{Path: tar, Status: Changed}},
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
			var text bytes.Buffer
			data, err := json.Marshal(report)
			if err := errors.Join(report.Text(&text), err); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text.String(), test.want.Path+": "+string(test.want.Status)) ||
				!strings.Contains(text.String(), "are not as described") {
				t.Errorf("text %q", text.String())
			}
			var read Report
			if err := json.Unmarshal(data, &read); err != nil || cmp.Diff(*report, read) != "" {
				t.Errorf("%v: JSON %s", err, data)
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
	report, err := Files(t.Context(), os.DirFS(dir), dir, described, "kubernetes.tar.gz")
	if err != nil || !report.OK() || len(report.Files) != 1 {
		t.Errorf("%v, %v", report, err)
	}
	if report, err := Files(t.Context(), os.DirFS(dir), dir, described, "SHA256SUMS"); err != nil || report.OK() {
		t.Errorf("%v, %v", report, err)
	}
	for _, name := range []string{"none", "linux/amd64/kubelet"} {
		if _, err := Files(t.Context(), os.DirFS(dir), dir, described, name); err == nil {
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
