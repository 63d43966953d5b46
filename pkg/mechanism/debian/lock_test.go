package debian

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var sum = strings.Repeat("0a", 32)

func file(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestLockReadsBack(t *testing.T) {
	t.Parallel()
	want := &Lock{Suite: "trixie", Time: "20261121T131324Z", Packages: []Package{
		{"amd64", "iptables", "1.8.11-2", 360924, sum, Main, "pool/main/i/iptables/iptables_1.8.11-2_amd64.deb", ""},
		{"ppc64el", "iptables", "1:1.8.11-2+b1", 1, sum, Security, "pool/updates/main/i/iptables/iptables_1.8.11-2_ppc64el.deb", "1:1.8.11-2"},
	}}
	got, err := ReadLock(file(t, "debian.lock", string(want.Marshal("a test"))))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if here := got.For("ppc64le"); len(here) != 1 || here[0].Arch != "ppc64el" {
		t.Errorf("for ppc64le: %v", here)
	}
}

// Locks from before there were two archives are read.
func TestLocksOfOneArchive(t *testing.T) {
	t.Parallel()
	lock, err := ReadLock(file(t, "debian.lock", "suite trixie\namd64 iptables 1.8 5 "+sum+" pool/a.deb\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Package{{"amd64", "iptables", "1.8", 5, sum, Main, "pool/a.deb", ""}}, lock.Packages); diff != "" {
		t.Error(diff)
	}
}

func TestBrokenLocksAreNamedByLine(t *testing.T) {
	t.Parallel()
	line := "amd64 iptables 1.8 5 " + sum + " pool/a.deb\n"
	for name, tt := range map[string]struct{ text, want string }{
		"empty":         {"# nothing\n", ": no packages"},
		"no suite":      {line, `:1: want a line like "suite trixie" before the packages`},
		"odd suite":     {"suite ../x\n" + line, `:1: want a line like "suite trixie"`},
		"odd time":      {"suite a\ntime today\n" + line, ":2: a package has 7 or 8 columns, not 2"},
		"cut short":     {"suite a\namd64 iptables 1.8\n", ":2: a package has 7 or 8 columns, not 3"},
		"twice":         {"suite a\n" + line + line, ":3: duplicate package iptables for amd64"},
		"odd size":      {"suite a\n" + strings.Replace(line, " 5 ", " -5 ", 1), `:2: "-5" is not a size in bytes`},
		"too large":     {"suite a\n" + strings.Replace(line, " 5 ", " 999999999999 ", 1), `:2: "999999999999" is not a size in bytes`},
		"odd sum":       {"suite a\n" + strings.Replace(line, sum, sum[2:], 1), "is not a SHA-256 in hex"},
		"path outside":  {"suite a\n" + strings.Replace(line, "pool/", "pool/../../", 1), "is not a path in an archive"},
		"another place": {"suite a\n" + strings.Replace(line, "pool/", "http://a.example/pool/", 1), "is not a path in an archive"},
		"odd archive": {"suite a\n" + strings.Replace(line, "pool/", "ubuntu pool/", 1),
			`:2: "ubuntu" is no archive: it can be debian or debian-security`},
		"odd name": {"suite a\n" + strings.Replace(line, "iptables", "../iptables", 1), `"../iptables" is not a package's name`},
	} {
		_, err := ReadLock(file(t, "debian.lock", tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

// The locks of this repository have what is requested, for every architecture alike.
func TestLocksOfThisRepository(t *testing.T) {
	t.Parallel()
	locks, err := filepath.Glob(filepath.Join("..", "..", "..", "images", "*", "debian.lock"))
	if err != nil || len(locks) == 0 {
		t.Fatalf("%v, error %v", locks, err)
	}
	for _, name := range locks {
		lock, err := ReadLock(name)
		if err != nil {
			t.Fatal(err)
		}
		request, err := ReadRequest(filepath.Join(filepath.Dir(name), "packages.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if lock.Suite != request.Suite {
			t.Errorf("%s is of %s, packages.txt says %s", name, lock.Suite, request.Suite)
		}
		for _, goarch := range []string{"amd64", "arm64", "s390x", "ppc64le"} {
			have := map[string]bool{}
			for _, p := range lock.For(goarch) {
				have[p.Name] = true
			}
			for _, p := range request.Packages {
				if !have[p] {
					t.Errorf("%s has no %s for %s", name, p, goarch)
				}
			}
			for _, p := range request.Without {
				if have[p] {
					t.Errorf("%s has %s for %s, which packages.txt leaves out", name, p, goarch)
				}
			}
		}
	}
}
