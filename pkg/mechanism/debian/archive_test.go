package debian

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const bookworm = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\nVERSION_CODENAME=bookworm\n"

// machine lays files out below a root.
func machine(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestPackagesComeFromWhereAptHasThem(t *testing.T) {
	t.Parallel()
	root := machine(t, map[string]string{
		"etc/os-release": bookworm,
		"etc/apt/sources.list": "# deb http://old.example.com/debian bookworm main\n" +
			"deb cdrom:[Debian GNU/Linux 12 _Bookworm_]/ bookworm main\n" +
			"deb [arch=amd64,arm64 signed-by=/usr/share/keyrings/a.gpg] http://me:secret@one.example.com/debian\tbookworm main contrib # ours\n" +
			"deb-src http://one.example.com/debian bookworm main\n" +
			"deb http://one.example.com/debian bookworm-backports main\n",
		"etc/apt/sources.list.d/debian.sources": "# the archive\nTypes: deb deb-src\nURIs: http://two.example.com/debian\n" +
			"Suites: bookworm bookworm-updates bookworm-backports\nComponents: main non-free-firmware\n" +
			"Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF\n\n" +
			"Types: deb\nURIs: http://two.example.com/debian-security\nSuites: bookworm-security\nComponents: main\n\n" +
			"Types: deb\nEnabled: no\nURIs: http://three.example.com/debian\nSuites: bookworm\nComponents: main\n",
		"etc/apt/sources.list.d/engine.list":        "deb [arch=amd64] http://engine.example.com/debian bookworm stable\n",
		"etc/apt/sources.list.d/database.list":      "deb http://database.example.com/debian bookworm-pgdg main\n",
		"etc/apt/sources.list.d/old.list.disabled":  "deb http://old.example.com/debian bookworm main\n",
		"etc/apt/sources.list.d/other.sources.save": "Types: deb\nURIs: http://old.example.com/debian\nSuites: bookworm\nComponents: main\n",
	})
	got, err := findArchive("", "", root)
	if err != nil {
		t.Fatal(err)
	}
	want := "Types: deb\nURIs: http://me:secret@one.example.com/debian\nSuites: bookworm\nComponents: main\n" +
		"Architectures: amd64 arm64\nsigned-by: /usr/share/keyrings/a.gpg\n\n" +
		"Types: deb\nURIs: http://two.example.com/debian\nSuites: bookworm bookworm-updates\nComponents: main\n" +
		"Signed-By: \n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF\n\n" +
		"Types: deb\nURIs: http://two.example.com/debian-security\nSuites: bookworm-security\nComponents: main\n"
	if diff := cmp.Diff(want, got.sources); diff != "" || got.suite != "bookworm" {
		t.Errorf("suite %s (-want +got):\n%s", got.suite, diff)
	}
}

func TestMirrorComesFirst(t *testing.T) {
	t.Parallel()
	root := machine(t, map[string]string{
		"etc/os-release": "ID=fedora\n",
		keyring:          "keys",
	})
	got, err := findArchive("https://mirror.example.com/debian", "", root)
	if err != nil {
		t.Fatal(err)
	}
	want := "Types: deb\nURIs: https://mirror.example.com/debian\nSuites: bookworm\nComponents: main\nSigned-By: " +
		filepath.Join(root, filepath.FromSlash(keyring)) + "\n"
	if diff := cmp.Diff(want, got.sources); diff != "" || got.suite != "bookworm" {
		t.Errorf("suite %s (-want +got):\n%s", got.suite, diff)
	}
}

func TestAnotherSuiteComesFromTheSamePlaces(t *testing.T) {
	t.Parallel()
	root := machine(t, map[string]string{
		"etc/os-release": bookworm,
		"etc/apt/sources.list": "deb [signed-by=/a.gpg] http://one.example.com/debian bookworm main\n" +
			"deb http://one.example.com/debian bookworm-updates main\n" +
			"deb http://one.example.com/debian-security bookworm-security main\n",
		keyring: "keys",
	})
	got, err := findArchive("", "forky", root)
	if err != nil {
		t.Fatal(err)
	}
	want := "Types: deb\nURIs: http://one.example.com/debian\nSuites: forky\nComponents: main\nsigned-by: /a.gpg\n"
	if diff := cmp.Diff(want, got.sources); diff != "" || got.suite != "forky" {
		t.Errorf("suite %s (-want +got):\n%s", got.suite, diff)
	}
	if got, err = findArchive("http://mirror.example.com/debian", "forky", root); err != nil || got.suite != "forky" ||
		!strings.Contains(got.sources, "\nSuites: forky\n") {
		t.Errorf("from a mirror: %+v, error %v", got, err)
	}
}

func TestMachineThatCannotSay(t *testing.T) {
	t.Parallel()
	const both = "set SLIPWAY_DEBIAN_MIRROR to a Debian mirror"
	for name, test := range map[string]struct {
		mirror string
		files  map[string]string
		want   []string
	}{
		"no Linux":      {"", nil, []string{"not a Debian", both}},
		"another Linux": {"", map[string]string{"etc/os-release": "ID=ubuntu\nVERSION_CODENAME=noble\n"}, []string{"not a Debian", both}},
		"testing":       {"", map[string]string{"etc/os-release": "ID=debian\n"}, []string{"not a Debian with a codename", both}},
		"no sources":    {"", map[string]string{"etc/os-release": bookworm}, []string{"apt has no source for Debian's bookworm", both}},
		"only updates": {"", map[string]string{"etc/os-release": bookworm,
			"etc/apt/sources.list": "deb http://e.example.com bookworm-updates main"}, []string{"apt has no source for Debian's bookworm", both}},
		"a mirror, no keys":  {"http://mirror.example.com/debian", nil, []string{"install the package debian-archive-keyring"}},
		"no address":         {"bookworm", map[string]string{keyring: "keys"}, []string{`SLIPWAY_DEBIAN_MIRROR: "bookworm" is not an address`}},
		"more than one line": {"http://e.example.com/\nTrusted: yes", map[string]string{keyring: "keys"}, []string{"SLIPWAY_DEBIAN_MIRROR"}},
		"a mirror by options": {"http://me:secret@e.example.com/x y", map[string]string{keyring: "keys"},
			[]string{`"http://***@e.example.com/x y" is not`}},
	} {
		_, err := findArchive(test.mirror, "", machine(t, test.files))
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %s", name, err, want)
			}
		}
	}
}
