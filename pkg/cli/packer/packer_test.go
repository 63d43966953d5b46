package packer

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/catalog"
)

func TestUnpackedSourcesAreTheSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	packed, tree := filepath.Join(dir, "src.tar.gz"), filepath.Join(dir, "tree")
	f, err := os.Create(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = (&archive.Packer{}).TarGz(t.Context(), f, []archive.Entry{
		{Name: "Makefile", Mode: 0o644, Data: []byte("all:\n")},
		{Name: "build/run.sh", Mode: 0o755, Data: []byte("#!/bin/sh\n")},
		{Name: "build/link", Mode: fs.ModeSymlink | 0o777, Link: "../Makefile"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := unpackTar(t.Context(), packed, tree); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	err = filepath.WalkDir(tree, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(tree, name)
		if link, err := os.Readlink(name); err == nil {
			got[rel] = "-> " + link
			return nil
		}
		data, err := os.ReadFile(name)
		if info, _ := d.Info(); info.Mode()&0o100 != 0 {
			rel += "*"
		}
		got[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"Makefile": "all:\n", "build/run.sh*": "#!/bin/sh\n", "build/link": "-> ../Makefile"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// The third-party parts are unpacked into the sources.
func TestThirdPartyPartsAreUnpackedOverTheSources(t *testing.T) {
	t.Parallel()
	from, tree := t.TempDir(), t.TempDir()
	put := func(dir, name string, mode fs.FileMode) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	put(tree, "LICENSE", 0o644)
	put(from, "_output/bin/etcd", 0o755)
	put(from, "_output/bin/left", 0o755)
	put(from, "_output/licenses/etcd/go/LICENSE", 0o644)
	var entries []archive.Entry
	for _, name := range []string{"_output/bin/etcd", "_output/licenses/"} {
		more, err := files(from, name)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, more...)
	}
	packed := filepath.Join(t.TempDir(), "third-party.tar")
	if err := write(packed, func(w io.Writer) error { return archive.Tar(w, entries, time.Time{}) }); err != nil {
		t.Fatal(err)
	}
	if err := unpackTar(t.Context(), packed, tree); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range []string{"LICENSE", "_output/bin/etcd", "_output/bin/left", "_output/licenses/etcd/go/LICENSE"} {
		if info, err := os.Stat(filepath.Join(tree, filepath.FromSlash(name))); err == nil {
			got = append(got, fmt.Sprintf("%v %s", info.Mode().Perm()&0o100 != 0, name))
		}
	}
	if diff := cmp.Diff([]string{"false LICENSE", "true _output/bin/etcd", "false _output/licenses/etcd/go/LICENSE"}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if _, err := files(from, "_output/bin/etcdctl"); err == nil {
		t.Error("a file that was not made is no error")
	}
}

// keepEnvironment puts this process's environment back after the test.
func keepEnvironment(t *testing.T) {
	t.Helper()
	before := os.Environ()
	t.Cleanup(func() {
		os.Clearenv()
		for _, kv := range before {
			name, value, _ := strings.Cut(kv, "=")
			if err := os.Setenv(name, value); err != nil {
				t.Error(err)
			}
		}
	})
}

// What is made belongs to the sources whose digests Bazel knows, or a remote cache would serve it for other sources.
func TestSourcesThatWereEditedMeanwhileAreAnError(t *testing.T) {
	keepEnvironment(t)
	ar, err := txtar.ParseFile("../../../pkg/make/plan/testdata/tree.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]part{"licenses": licenses, "third_party": thirdParty} {
		t.Run(name, func(t *testing.T) {
			dir, tree := t.TempDir(), t.TempDir()
			if err := txtar.Write(ar, tree); err != nil {
				t.Fatal(err)
			}
			a := arguments{
				tree: tree, to: filepath.Join(dir, "made.tar"), digests: filepath.Join(dir, "digests"),
				environment: filepath.Join(dir, "environment.json"),
				platform:    catalog.Platform{OS: "linux", Arch: "amd64"}, names: []string{"LICENSE", "images"},
			}
			listed := a
			listed.to = a.digests
			if err := digests(t.Context(), listed); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(a.environment, []byte(`{"PATH": "/none"}`), 0o600); err != nil {
				t.Fatal(err)
			}
			const message = "the sources are not those that Bazel has seen"
			edit := func(name string) error {
				t.Helper()
				if err := os.WriteFile(filepath.Join(tree, name), []byte("edited\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				return a.inTree(t.Context(), of)
			}
			if err := edit("README.md"); err == nil || strings.Contains(err.Error(), message) { // there is no Go
				t.Errorf("an edit of what is not among the names: %v", err)
			}
			if err := edit("LICENSE"); err == nil || !strings.Contains(err.Error(), tree+": "+message) {
				t.Errorf("an edit of what is: %v", err)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "made*")); err != nil || len(left) > 0 {
				t.Errorf("it leaves %q, %v", left, err)
			}
		})
	}
}

func TestEnvironmentIsThatOfTheFile(t *testing.T) {
	keepEnvironment(t)
	file := filepath.Join(t.TempDir(), "environment.json")
	if err := os.WriteFile(file, []byte(`{"GOPROXY": "off", "HOME": "/home/a b"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := setEnvironment(file); err != nil {
		t.Fatal(err)
	}
	got := os.Environ()
	slices.Sort(got)
	if want := []string{"GOPROXY=off", "HOME=/home/a b"}; !slices.Equal(got, want) {
		t.Errorf("it is %q, want %q", got, want)
	}
	if err := os.WriteFile(file, []byte(`{"":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, file + ".none"} {
		if err := setEnvironment(name); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestUnpackRefusesWhatIsNoSource(t *testing.T) {
	t.Parallel()
	for what, header := range map[string]tar.Header{
		"outside":           {Name: "../escaped", Typeflag: tar.TypeReg},
		"absolute":          {Name: "/escaped", Typeflag: tar.TypeReg},
		"another file type": {Name: "pipe", Typeflag: tar.TypeFifo},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			name := filepath.Join(dir, "src.tar.gz")
			f, err := os.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			gz := gzip.NewWriter(f)
			w := tar.NewWriter(gz)
			if err := w.WriteHeader(&header); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if err := gz.Close(); err != nil {
				t.Fatal(err)
			}
			if err := unpackTar(t.Context(), name, filepath.Join(dir, "tree")); err == nil {
				t.Error("it was unpacked")
			}
			if _, err := os.Stat(filepath.Join(dir, "escaped")); err == nil {
				t.Error("it is outside of the folder")
			}
		})
	}
}

func TestBazelExpectsWhatTheReleaseHolds(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		names []string
		want  string
	}{
		"the same": {[]string{"SHA256SUMS", "kubernetes.tar.gz", "provenance.json", "release.json"}, ""},
		"more": {[]string{"SHA256SUMS", "kubernetes.tar.gz", "provenance.json", "release.json", "kubernetes-test.tar.gz"},
			"does not hold kubernetes-test.tar.gz: run make update"},
		"less": {[]string{"SHA256SUMS", "provenance.json", "release.json"},
			"holds kubernetes.tar.gz, which Bazel does not expect: run make update"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			tars := t.TempDir()
			made := release.Release{Format: release.Format}
			for _, name := range []string{"SHA256SUMS", "kubernetes.tar.gz"} {
				if err := os.WriteFile(filepath.Join(tars, name), []byte(name), 0o644); err != nil {
					t.Fatal(err)
				}
				made.Artifacts = append(made.Artifacts, release.Artifact{
					Name: name, Path: name, SHA256: strings.Repeat("a", 64), SHA512: strings.Repeat("b", 128),
				})
			}
			description, err := made.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			for name, data := range map[string][]byte{release.File: description, "provenance.json": []byte("provenance.json")} {
				if err := os.WriteFile(filepath.Join(tars, name), data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			a := arguments{to: t.TempDir(), names: test.names}
			err = a.take(tars)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("the error is %v, want %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range test.names {
				if data, err := os.ReadFile(filepath.Join(a.to, name)); err != nil || string(data) != name && name != release.File {
					t.Errorf("%s: %q, %v", name, data, err)
				}
			}
		})
	}
}

func TestArgumentsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"pack"}, {"release", "-binary", "//cmd/kubectl"}, {"release", "-platform", "linux"}} {
		if err := run(t.Context(), args); err == nil {
			t.Errorf("%q is understood", args)
		}
	}
}
