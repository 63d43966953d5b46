package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/ship/sign"
	"slipway.build/pkg/ship/trust"
)

// signed writes a release that is signed by a new key.
func signed(t *testing.T) (dir string, key signature.PrivateKey, public *signature.PublicKey) {
	t.Helper()
	dir = made(t)
	key, err := signature.New()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sign.Folder(t.Context(), dir, key, sign.Options{}); err != nil {
		t.Fatal(err)
	}
	half := key.Public()
	return dir, key, &half
}

// signedBy returns the policy that the owner of a key must have signed, or none without a key.
func signedBy(key *signature.PublicKey) *trust.Policy {
	if key == nil {
		return nil
	}
	return trust.Of(*key)
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
		{public, Good, true, fmt.Sprintf("%d files as described, signed by the key %s", described+signatures, public.Hint())},
		{nil, NotChecked, true, fmt.Sprintf("%d files as described; signatures not checked", described+signatures)},
		{&half, NotConvinced, false, fmt.Sprintf("%d of %d files are not as described", signatures-1, described+signatures)},
	} {
		report, err := Folder(t.Context(), dir, Want{Trust: signedBy(tt.key)})
		if err != nil || report.Signature != tt.want || report.OK() != tt.ok {
			t.Errorf("%s: %+v, %v", tt.want, report, err)
			continue
		}
		var text bytes.Buffer
		if err := report.Text(&text); err != nil || !strings.HasSuffix(text.String(), "release v1.37.0: "+tt.text+"\n") {
			t.Errorf("%s: %v, %s", tt.want, err, &text)
		}
	}
	report, err := Folder(t.Context(), made(t), Want{Trust: signedBy(public)})
	if err != nil || report.OK() || report.Signature != NotConvinced {
		t.Errorf("without signatures: %+v, %v", report, err)
	}
}

// restate changes the statement about a release, and puts it into its bundle without signing it again.
func restate(t *testing.T, dir string, change func(s *provenance.Statement)) {
	t.Helper()
	s, err := provenance.Unmarshal(read(t, dir, provenance.File))
	if err != nil {
		t.Fatal(err)
	}
	change(s)
	data, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	data = append(data, '\n')
	const bundle = "attestations/provenance.sigstore.json"
	b, err := signature.Unmarshal(read(t, dir, bundle))
	if err != nil {
		t.Fatal(err)
	}
	b.Envelope.Payload = data
	signed, err := b.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, provenance.File, string(data))
	write(t, dir, bundle, string(signed))
}

// Every change is found, by the name of a file that it is in or that does not match it.
func TestTamperingIsNamed(t *testing.T) {
	t.Parallel()
	const tar = "kubernetes.tar.gz"
	for what, tt := range map[string]struct {
		harm func(t *testing.T, dir string)
		want File
	}{
		"one byte in a tarball": {func(t *testing.T, dir string) { write(t, dir, tar, "content of kubernetes.tar.gy") },
			File{Path: tar, Status: Changed}},
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
			write(t, dir, "SHA256SUMS.sigstore.json", string(read(t, dir, "SHA256SUMS.sigstore.json"))+"{}")
		}, File{"SHA256SUMS.sigstore.json", BadSigned, ""}},
		"somebody to trust": {func(t *testing.T, dir string) {
			write(t, dir, release.RootFile, `{"certificateAuthorities":[{}]}`)
		}, File{release.RootFile, BadSigned, "it names trusted parties, and slipway writes one without"}},
		"predicate changed": {func(t *testing.T, dir string) {
			restate(t, dir, func(s *provenance.Statement) { s.Predicate.Definition.Parameters.Variables["GOLDFLAGS"] = "" })
		}, File{"attestations/provenance.sigstore.json", BadSigned, "it is of another content"}},
		"unknown parameter": {func(t *testing.T, dir string) {
			restate(t, dir, func(s *provenance.Statement) { s.Predicate.Definition.Parameters.Variables["HOSTFLAGS"] = "1" })
		}, File{provenance.File, Changed, ""}},
		"subject dropped": {func(t *testing.T, dir string) {
			restate(t, dir, func(s *provenance.Statement) { s.Subject = s.Subject[1:] })
		}, File{provenance.File, Short, ""}},
		"subject added": {func(t *testing.T, dir string) {
			restate(t, dir, func(s *provenance.Statement) { s.Subject = append(s.Subject, provenance.Subject{Name: "evil"}) })
		}, File{provenance.File, Changed, ""}},
		"sum of a module changed": {func(t *testing.T, dir string) {
			restate(t, dir, func(s *provenance.Statement) {
				s.Predicate.Definition.Dependencies[0].Digest["dirHash"] = strings.Repeat("0", 64)
			})
		}, File{provenance.File, Changed, ""}},
		"provenance of another version": {func(t *testing.T, dir string) {
			restate(t, dir, func(s *provenance.Statement) { s.Predicate.Definition.Parameters.Version = "v1.37.9" })
		}, File{provenance.File, Changed, ""}},
		"bill of materials without a component": {func(t *testing.T, dir string) {
			const name = "sbom/pause-linux-amd64.spdx.json"
			write(t, dir, name, strings.Replace(string(read(t, dir, name)), "go.uber.org/zap", "", 1))
		}, File{"sbom/pause-linux-amd64.spdx.json", Short, ""}},
		"platform of an image swapped": {func(t *testing.T, dir string) {
			r, err := release.Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			for i := range r.Artifacts {
				if r.Artifacts[i].Kind == release.Image {
					r.Artifacts[i].SHA256 = strings.Repeat("e", 64)
				}
			}
			describe(t, dir, r)
		}, File{"attestations/pause-linux-amd64.signature.sigstore.json", BadSigned, ""}},
		"attestation of another artifact": {func(t *testing.T, dir string) {
			write(t, dir, "attestations/pause.provenance.sigstore.json", string(
				read(t, dir, "attestations/pause-linux-amd64.provenance.sigstore.json")))
		}, File{"attestations/pause.provenance.sigstore.json", BadSigned, "it is of another content"}},
		"attestation removed": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "attestations/pause.signature.sigstore.json")); err != nil {
				t.Fatal(err)
			}
		}, File{"attestations/pause.signature.sigstore.json", Missing, ""}},
		"attestation added": {func(t *testing.T, dir string) {
			write(t, dir, "attestations/more.sigstore.json", string(read(t, dir, "attestations/pause.signature.sigstore.json")))
		}, File{"attestations/more.sigstore.json", Stranger, ""}},
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
			report, err := Folder(t.Context(), dir, Want{Trust: signedBy(public)})
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

// Whichever byte of a signed release changes, and however, it is refused, unless it is how a bundle is written and not what it means.
func TestChangedBytesAreFound(t *testing.T) {
	t.Parallel()
	changeBytes(t, 400)
}

// changeBytes changes single bytes of a signed release, at random places, and expects to be told each time.
func changeBytes(t *testing.T, times int) {
	dir, _, public := signed(t)
	var names []string
	var offsets []int // where each file begins in all of them
	total := 0
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		names, offsets = append(names, name), append(offsets, total)
		total += int(info.Size())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range times {
		// Small files get as many changes as large ones.
		i := random.IntN(len(names))
		data := read(t, dir, names[i])
		at, bit := random.IntN(len(data)), random.IntN(8)
		changed := bytes.Clone(data)
		changed[at] ^= 1 << bit
		write(t, dir, names[i], string(changed))
		if report, err := Folder(t.Context(), dir, Want{Trust: signedBy(public)}); err == nil && report.OK() && !meansTheSame(data, changed) {
			t.Errorf("%s: a change of bit %d of byte %d is not found", names[i], bit, at)
		}
		write(t, dir, names[i], string(data))
	}
	report, err := Folder(t.Context(), dir, Want{Trust: signedBy(public)})
	if err != nil || !report.OK() {
		t.Errorf("put back: %+v, %v", report, err)
	}
}

// meansTheSame reports whether two files are the same bundle: the case of its names does not count, nor do the last bits of base64.
func meansTheSame(a, b []byte) bool {
	one, err := signature.Unmarshal(a)
	if err != nil {
		return false
	}
	other, err := signature.Unmarshal(b)
	return err == nil && cmp.Equal(one, other, cmp.Exporter(func(reflect.Type) bool { return true }))
}

func signatureNames(t *testing.T, dir string) []string {
	t.Helper()
	r, err := release.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return append(release.Signatures(), sign.Names(r)...)
}

func TestSigningAgainGivesTheSameFiles(t *testing.T) {
	t.Parallel()
	dir, key, _ := signed(t)
	before := map[string]string{}
	for _, name := range signatureNames(t, dir) {
		before[name] = string(read(t, dir, name))
	}
	if _, err := sign.Folder(t.Context(), dir, key, sign.Options{}); err != nil {
		t.Fatal(err)
	}
	for name, text := range before {
		if diff := cmp.Diff(text, string(read(t, dir, name))); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
	}
}

func TestOlderReleasesAreRefused(t *testing.T) {
	t.Parallel()
	dir, _, public := signed(t)
	for _, tt := range []struct {
		want    Want
		problem string
	}{
		{Want{Version: "v1.37.0"}, ""},
		{Want{Version: "v1.37.0+acme.1"}, "it is not v1.37.0+acme.1"},
		{Want{AtLeast: "v1.37.0"}, ""},
		{Want{AtLeast: "v1.37.0-rc.1"}, ""},
		{Want{AtLeast: "v1.37.0+acme.1"}, "it is older than v1.37.0+acme.1"},
	} {
		tt.want.Trust = signedBy(public)
		report, err := Folder(t.Context(), dir, tt.want)
		if err != nil || report.Problem != tt.problem || report.OK() != (tt.problem == "") {
			t.Errorf("%+v: %+v, %v", tt.want, report, err)
		}
	}
	if _, err := Folder(t.Context(), dir, Want{AtLeast: "v1.37.0+acme.1.rc.1"}); err == nil ||
		!strings.Contains(err.Error(), "write v1.37.0+acme.1-rc.1") {
		t.Errorf("a candidate that would come after its release: %v", err)
	}
	if _, err := Folder(t.Context(), dir, Want{AtLeast: "1.37"}); err == nil || !strings.Contains(err.Error(), `"1.37" is not a version`) {
		t.Errorf("no version: %v", err)
	}
}

// Who has the first key alone would find no signature by it any longer.
func TestSigningByAnotherKeyReplacesOnlyIfWanted(t *testing.T) {
	t.Parallel()
	dir, key, public := signed(t)
	other, err := signature.New()
	if err != nil {
		t.Fatal(err)
	}
	half := other.Public()
	remove := func(name string) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what, file string) {
		t.Helper()
		_, err := sign.Folder(t.Context(), dir, other, sign.Options{})
		if e, ok := errors.AsType[*sign.SignedError](err); !ok || e.File != file {
			t.Errorf("%s: %v", what, err)
		}
	}
	good := func(what string, by *signature.PublicKey) {
		t.Helper()
		if r, err := Folder(t.Context(), dir, Want{Trust: signedBy(by)}); err != nil || !r.OK() {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
	refused("another key", release.Signed()[0]+release.BundleSuffix)
	good("refused", public)
	if _, err := sign.Folder(t.Context(), dir, key, sign.Options{}); err != nil {
		t.Errorf("the same key: %v", err)
	}
	for _, name := range release.Signed() {
		remove(name + release.BundleSuffix)
	}
	refused("made by openssl", release.Signed()[0]+release.SignatureSuffix)
	for _, name := range release.Signed() {
		remove(name + release.SignatureSuffix)
	}
	if _, err := sign.Folder(t.Context(), dir, other, sign.Options{}); err != nil {
		t.Fatal(err)
	}
	good("not signed any longer", &half)
	if _, err := sign.Folder(t.Context(), dir, key, sign.Options{Replace: true}); err != nil {
		t.Fatal(err)
	}
	good("replaced", public)

	r, err := release.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	r.Version = "v1.37.0+acme.2"
	describe(t, dir, r)
	remove("SHA256SUMS.sigstore.json") // the sums of this one are the same
	remove("SHA256SUMS.sig")
	if _, err := sign.Folder(t.Context(), dir, other, sign.Options{}); err != nil {
		t.Errorf("signatures of another release: %v", err)
	}
	good("another release", &half)
}
