package verify

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/sign"
)

// signed writes a release that is signed by a new key.
func signed(t *testing.T) (dir string, key signature.PrivateKey, public *signature.PublicKey) {
	t.Helper()
	dir = made(t)
	key, err := signature.New()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sign.Folder(dir, key); err != nil {
		t.Fatal(err)
	}
	half := key.Public()
	return dir, key, &half
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestSignedReleaseIsGoodByItsKeyAlone(t *testing.T) {
	t.Parallel()
	dir, _, public := signed(t)
	other, err := signature.New()
	if err != nil {
		t.Fatal(err)
	}
	half := other.Public()
	for _, tt := range []struct {
		key  *signature.PublicKey
		want Signature
		ok   bool
		text string
	}{
		{public, Good, true, "7 files as described, signed by the key " + public.Hint()},
		{nil, NotChecked, true, "7 files as described; signatures not checked"},
		{&half, NotConvinced, false, "4 of 7 files are not as described"},
	} {
		report, err := Folder(t.Context(), dir, tt.key)
		if err != nil || report.Signature != tt.want || report.OK() != tt.ok {
			t.Errorf("%s: %+v, %v", tt.want, report, err)
			continue
		}
		var text bytes.Buffer
		if err := report.Text(&text); err != nil || !strings.HasSuffix(text.String(), "release v1.37.0: "+tt.text+"\n") {
			t.Errorf("%s: %v, %s", tt.want, err, &text)
		}
	}
	report, err := Folder(t.Context(), made(t), public)
	if err != nil || report.OK() || report.Signature != NotConvinced {
		t.Errorf("without signatures: %+v, %v", report, err)
	}
}

// Every change is found, by the name of a file that it is in or that does not match it.
func TestTamperingIsNamed(t *testing.T) {
	t.Parallel()
	const tar = "kubernetes.tar.gz"
	for what, tt := range map[string]struct {
		harm func(t *testing.T, dir string)
		want File
	}{
		"one byte in a tarball": {func(t *testing.T, dir string) { write(t, dir, tar, "content of kubernetes.tar.gy") }, File{Path: tar, Status: Changed}},
		"sums made again, not signed": {func(t *testing.T, dir string) {
			described, err := release.Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			described.Version = "v1.37.0+evil"
			data, err := described.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir, release.File, string(data))
		}, File{"release.json.sigstore.json", BadSigned, "it is of another content"}},
		"bundle of another file": {func(t *testing.T, dir string) {
			write(t, dir, "SHA256SUMS.sigstore.json", string(read(t, dir, "release.json.sigstore.json")))
		}, File{"SHA256SUMS.sigstore.json", BadSigned, "it is of another content"}},
		"no bundle": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "release.json.sigstore.json")); err != nil {
				t.Fatal(err)
			}
		}, File{"release.json.sigstore.json", Missing, ""}},
		"bundle with more in it": {func(t *testing.T, dir string) {
			write(t, dir, "SHA256SUMS.sigstore.json", " "+string(read(t, dir, "SHA256SUMS.sigstore.json")))
		}, File{"SHA256SUMS.sigstore.json", BadSigned, "it is not written as slipway writes it"}},
		"somebody to trust": {func(t *testing.T, dir string) {
			write(t, dir, release.RootFile, `{"certificateAuthorities":[{}]}`)
		}, File{release.RootFile, BadSigned, "it trusts somebody"}},
		"no file, but a folder": {func(t *testing.T, dir string) {
			name := filepath.Join(dir, "SHA256SUMS.sig")
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(name, 0o755); err != nil {
				t.Fatal(err)
			}
		}, File{"SHA256SUMS.sig", BadSigned, ""}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir, _, public := signed(t)
			tt.harm(t, dir)
			report, err := Folder(t.Context(), dir, public)
			if err != nil || report.OK() {
				t.Fatalf("%+v, %v", report, err)
			}
			for _, f := range report.Files {
				if tt.want.Detail == "" {
					f.Detail = ""
				}
				if f == tt.want {
					return
				}
			}
			t.Errorf("%+v is not among %+v", tt.want, report.Files)
		})
	}
}

// Whichever byte of a signed release changes, and however, it is refused.
func TestEveryChangedByteIsFound(t *testing.T) {
	t.Parallel()
	dir, _, public := signed(t)
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data := read(t, dir, name)
		for i := range data {
			changed := bytes.Clone(data)
			changed[i] ^= 1 << (i % 8)
			write(t, dir, name, string(changed))
			if report, err := Folder(t.Context(), dir, public); err == nil && report.OK() {
				t.Errorf("%s: a change of byte %d is not found", name, i)
			}
		}
		write(t, dir, name, string(data))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := Folder(t.Context(), dir, public)
	if err != nil || !report.OK() {
		t.Errorf("put back: %+v, %v", report, err)
	}
}

func TestSigningAgainGivesTheSameFiles(t *testing.T) {
	t.Parallel()
	dir, key, _ := signed(t)
	before := map[string]string{}
	for _, name := range release.Signatures() {
		before[name] = string(read(t, dir, name))
	}
	if _, err := sign.Folder(dir, key); err != nil {
		t.Fatal(err)
	}
	for name, text := range before {
		if diff := cmp.Diff(text, string(read(t, dir, name))); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
	}
}
