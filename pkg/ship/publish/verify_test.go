package publish

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/ship/site"
	"slipway.build/pkg/ship/verify"
)

// What follows from release.json is checked in a folder and on a web server, although nobody has signed it.
func TestWrongFilesOfASiteAreNamed(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	from := o.release(t, "v1.37.0+acme.1", nil)
	for _, tt := range []struct {
		file, content string // no content: it is removed
		want          []verify.File
		unlisted      bool // a web server does not say that it is there
	}{
		{file: "bin/linux/amd64/kubectl", content: "evil", want: []verify.File{{Path: "bin/linux/amd64/kubectl", Status: verify.Short}}},
		{file: "bin/linux/amd64/kubectl.sha256", content: "evil",
			want: []verify.File{{Path: "bin/linux/amd64/kubectl.sha256", Status: verify.Short}}},
		{file: "images.txt", content: "evil.example/pause:3.10.2\n", want: []verify.File{{Path: "images.txt", Status: verify.Short}}},
		{file: "bin/linux/amd64/kubelet", want: []verify.File{{Path: "bin/linux/amd64/kubelet", Status: verify.Missing}}},
		{file: "index.html", content: site.Generator + "evil", want: []verify.File{{Path: "index.html", Status: verify.Changed}}},
		{file: "bin/linux/amd64/kube-evil", content: "evil", unlisted: true,
			want: []verify.File{{Path: "bin/linux/amd64/kube-evil", Status: verify.Stranger}}},
		{file: "index.html", content: "a list of files", unlisted: true, want: []verify.File{{Path: "index.html", Status: verify.Changed}}},
		{file: "index.html", content: site.AnyGenerator + "0\">", want: []verify.File{{Path: "index.html", Status: verify.Unchecked}}},
		{file: "index.html"}, // nobody needs it
	} {
		to := t.TempDir()
		o.publish(t, from, to)
		at := filepath.Join(to, "release", "v1.37.0+acme.1")
		if tt.content != "" {
			write(t, at, tt.file, []byte(tt.content))
		} else if err := os.Remove(filepath.Join(at, tt.file)); err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(http.FileServer(http.Dir(to)))
		t.Cleanup(server.Close)
		inFolder, err := verify.Folder(t.Context(), at, o.want())
		if err != nil {
			t.Fatal(err)
		}
		byURL, err := verify.URL(t.Context(), server.URL+"/release/v1.37.0%2Bacme.1/", o.want())
		if err != nil {
			t.Fatal(err)
		}
		for where, report := range map[string]*verify.Report{"in a folder": inFolder, "by URL": byURL} {
			var bad []verify.File
			for _, f := range report.Files {
				if f.Status != verify.OK {
					bad = append(bad, verify.File{Path: f.Path, Status: f.Status})
				}
			}
			want := slices.Clone(tt.want)
			if tt.unlisted && where == "by URL" {
				want = nil
			}
			if diff := cmp.Diff(want, bad); diff != "" || report.OK() != (len(want) == 0 || want[0].Status == verify.Unchecked) {
				t.Errorf("%s %q, %s (-want +got):\n%s", tt.file, tt.content, where, diff)
			}
		}
	}
}

// The rpms of a repository are those of releases, with signatures in their headers. Anything else in them is noticed.
func TestPackagesOfARepositoryAreTheRelease(t *testing.T) {
	t.Parallel()
	o, to := newOwner(t), t.TempDir()
	dir := o.packaged(t, "v1.37.0+acme.1")
	if _, err := o.publishPackages(t, dir, to, newKey(t, 0)); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(to)))
	t.Cleanup(server.Close)
	const file = "core:/stable:/v1.37/rpm/x86_64/tool-1.37.0-acme.1-1.x86_64.rpm"
	signed, err := os.ReadFile(filepath.Join(to, file))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := os.ReadFile(filepath.Join(dir, "packages", filepath.Base(file)))
	if err != nil || len(plain) >= len(signed) {
		t.Fatalf("%d bytes, signed %d, %v", len(plain), len(signed), err)
	}
	isRPM := func(f verify.File) bool { return f.Path == filepath.Base(file) }
	header, last := bytes.LastIndex(signed, []byte("A <tool>")), len(signed)-1
	for name, change := range map[string]func([]byte) []byte{
		"":        func(b []byte) []byte { return b },
		"header":  func(b []byte) []byte { b[header] ^= 1; return b },
		"payload": func(b []byte) []byte { b[last] ^= 1; return b },
		"longer":  func(b []byte) []byte { return append(b, 0) },
		"shorter": func(b []byte) []byte { return b[:last] },
	} {
		write(t, to, file, change(bytes.Clone(signed)))
		inFolder, err := verify.One(t.Context(), filepath.Join(to, file), o.want())
		if err != nil {
			t.Fatal(err)
		}
		byURL, err := verify.URL(t.Context(), server.URL+"/"+file, o.want())
		if err != nil {
			t.Fatal(err)
		}
		for _, report := range []*verify.Report{inFolder, byURL} {
			if report.OK() != (name == "") || !slices.ContainsFunc(report.Files, isRPM) || report.Signature != verify.Good {
				t.Errorf("%s: %+v", name, report)
			}
		}
	}

	// Users download a package and release.json into one folder; in a release, packages are in a folder of their own.
	beside := t.TempDir()
	for _, name := range []string{"release.json", "release.json.sigstore.json"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, beside, name, data)
	}
	write(t, beside, filepath.Base(file), signed)
	inRelease := filepath.Join(dir, "packages", "tool_1.37.0-acme.1-1_amd64.deb")
	for _, file := range []string{filepath.Join(beside, filepath.Base(file)), inRelease} {
		if report, err := verify.One(t.Context(), file, o.want()); err != nil || !report.OK() {
			t.Errorf("%s: %+v, %v", file, report, err)
		}
	}
}
