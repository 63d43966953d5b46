package debian

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/debian/debiantest"
)

// sourceArchive returns the files of a suite whose index lists sources, each of a .dsc file and a tarball, by NAME_VERSION.
func sourceArchive(t *testing.T, suite string, sources ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	var index strings.Builder
	for _, source := range sources {
		name, version, _ := strings.Cut(source, "_")
		fmt.Fprintf(&index, "Package: %s\nVersion: %s\nDirectory: pool/main/%s\nChecksums-Sha256:\n", name, version, name)
		for _, end := range []string{".dsc", ".orig.tar.xz"} {
			at, text := "pool/main/"+name+"/"+source+end, suite+" "+source+end
			files[at] = text
			fmt.Fprintf(&index, " %x %d %s\n", sha256.Sum256([]byte(text)), len(text), source+end)
		}
		index.WriteString("\n")
	}
	maps.Copy(files, debiantest.SourceSuite(t, suite, index.String()))
	return files
}

func sourceLock(time string, packages ...Package) *Lock {
	for i := range packages {
		p := &packages[i]
		p.Arch, p.Size, p.SHA256 = "amd64", 1, strings.Repeat("0", 64)
		if p.Archive == "" {
			p.Archive = Main
		}
		source := p.Name
		if p.Path != "" {
			source = p.Path
		}
		p.Path = "pool/main/x/" + source + "/" + p.Name + "_" + p.Version + "_amd64.deb"
	}
	return &Lock{Suite: "trixie", Time: time, Packages: packages}
}

func fetchTestSources(t *testing.T, from Sources, lock *Lock) ([]SourcePackage, error) {
	t.Helper()
	from.Keyring = debiantest.Keyring(t)
	return fetchSources(t.Context(), from, lock, func(string) {}, t.TempDir(), t.TempDir())
}

func TestSourcesOfPackagesAreFetchedByTheirSums(t *testing.T) {
	t.Parallel()
	url, _ := debiantest.Serve(t, sourceArchive(t, "trixie", "glibc_2.41-12", "glibc_2.36-9", "bash_5.2-2", "libbpf_1.5-3"))
	fixes, _ := debiantest.Serve(t, sourceArchive(t, "trixie-security", "bash_5.2-2", "openssl_3-1"))
	lock := sourceLock("",
		Package{Name: "libc6", Path: "glibc", Version: "2.41-12"}, Package{Name: "libc-bin", Path: "glibc", Version: "2.41-12"},
		Package{Name: "bash", Version: "5.2-2+b10"}, // of an older lock
		Package{Name: "libbpf1", Path: "libbpf", Version: "1:1.5-3+b1"},
		Package{Name: "openssl", Version: "3-1+b1", SourceVersion: "3-1", Archive: Security})
	found, err := fetchTestSources(t, Sources{Mirror: url, Security: fixes}, lock)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range found {
		got = append(got, s.Name+" "+s.Version+" of "+strings.Join(s.Packages, " "))
		for _, f := range s.Files {
			text, err := os.ReadFile(f.File)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(text))
		}
	}
	want := []string{
		"bash 5.2-2 of bash_5.2-2+b10_amd64", "trixie bash_5.2-2.dsc", "trixie bash_5.2-2.orig.tar.xz",
		"glibc 2.41-12 of libc-bin_2.41-12_amd64 libc6_2.41-12_amd64", "trixie glibc_2.41-12.dsc", "trixie glibc_2.41-12.orig.tar.xz",
		"libbpf 1.5-3 of libbpf1_1:1.5-3+b1_amd64", "trixie libbpf_1.5-3.dsc", "trixie libbpf_1.5-3.orig.tar.xz",
		"openssl 3-1 of openssl_3-1+b1_amd64", "trixie-security openssl_3-1.dsc", "trixie-security openssl_3-1.orig.tar.xz",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSourcesThatMirrorsHaveRemovedAreOfThePast(t *testing.T) {
	t.Parallel()
	now, _ := debiantest.Serve(t, sourceArchive(t, "trixie", "bash_5.3-1"))
	past := map[string]string{}
	for name, text := range sourceArchive(t, "trixie", "bash_5.2-2") {
		past["debian/20261121T131324Z/"+name] = text
	}
	snapshot, _ := debiantest.Serve(t, past)
	lock := sourceLock("20261121T131324Z", Package{Name: "bash", Version: "5.2-2"})
	found, err := fetchTestSources(t, Sources{Mirror: now, Security: Off, Snapshot: snapshot + "/{archive}/{time}"}, lock)
	if err != nil || len(found) != 1 || len(found[0].Files) != 2 {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := fetchTestSources(t, Sources{Mirror: now, Security: Off}, lock); err == nil ||
		!strings.Contains(err.Error(), "no index of sources lists bash 5.2-2") {
		t.Errorf("without an archive of the past: %v", err)
	}
}

func TestSourcesThatCannotBeCheckedAreRefused(t *testing.T) {
	t.Parallel()
	lock := sourceLock("", Package{Name: "bash", Version: "5.2-2"})
	for name, tt := range map[string]struct {
		edit func(files map[string]string)
		want string
	}{
		"another tarball": {func(files map[string]string) { files["pool/main/bash/bash_5.2-2.orig.tar.xz"] = "evil" },
			"the index of sources says"},
		"another index": {func(files map[string]string) { files["dists/trixie/main/source/Sources.xz"] += "x" }, "that in InRelease is"},
		"no tarball":    {func(files map[string]string) { delete(files, "pool/main/bash/bash_5.2-2.orig.tar.xz") }, "not found (404)"},
		"nobody's signature": {func(files map[string]string) {
			files["dists/trixie/InRelease"] = strings.Replace(files["dists/trixie/InRelease"], "Suite: stable", "Suite: stabler", 1)
		}, "InRelease"},
		"a file elsewhere": {func(files map[string]string) {
			maps.Copy(files, debiantest.SourceSuite(t, "trixie", "Package: bash\nVersion: 5.2-2\nDirectory: pool\nChecksums-Sha256:\n "+
				strings.Repeat("0", 64)+" 1 ../a.dsc\n\n"))
		}, "is not a file with its SHA-256"},
		"no .dsc": {func(files map[string]string) {
			maps.Copy(files, debiantest.SourceSuite(t, "trixie", "Package: bash\nVersion: 5.2-2\nDirectory: pool\nChecksums-Sha256:\n "+
				strings.Repeat("0", 64)+" 1 a.tar\n\n"))
		}, "it has no .dsc file"},
	} {
		files := sourceArchive(t, "trixie", "bash_5.2-2")
		tt.edit(files)
		url, _ := debiantest.Serve(t, files)
		_, err := fetchTestSources(t, Sources{Mirror: url, Security: Off}, lock)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
