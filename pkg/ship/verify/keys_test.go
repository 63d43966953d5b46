package verify

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/mechanism/timestamp"
	"slipway.build/pkg/mechanism/timestamp/timestamptest"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/sign"
	"slipway.build/pkg/ship/trust"
)

func newKey(t *testing.T, kind signature.Type) signature.PrivateKey {
	t.Helper()
	key, err := signature.NewOf(kind)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signWith(t *testing.T, dir string, key signature.PrivateKey, o sign.Options) {
	t.Helper()
	if _, err := sign.Folder(t.Context(), dir, key, o); err != nil {
		t.Fatal(err)
	}
}

// verified returns the report on a folder, and what is wrong in one text.
func verified(t *testing.T, dir string, p *trust.Policy) (*Report, string) {
	t.Helper()
	report, err := Folder(t.Context(), dir, Want{Trust: p})
	if err != nil {
		t.Fatal(err)
	}
	if report.OK() != (report.Signature == Good) {
		t.Errorf("OK is %t, and the signature %s", report.OK(), report.Signature)
	}
	text := report.Problem
	for _, f := range report.Files {
		if f.Status.bad() {
			text += "\n" + f.Path + ": " + string(f.Status) + ": " + f.Detail
		}
	}
	return report, text
}

func hints(keys ...signature.PrivateKey) []string {
	var all []string
	for _, key := range keys {
		all = append(all, key.Public().Hint())
	}
	return all
}

func threshold(n int, keys ...signature.PrivateKey) *trust.Policy {
	p := trust.Of()
	p.Threshold = n
	for _, key := range keys {
		p.Keys = append(p.Keys, trust.Key{PublicKey: key.Public()})
	}
	return p
}

// A release that is signed in an overlap of two keys is good by either, and by both.
func TestReleaseIsGoodByEachOfItsKeys(t *testing.T) {
	t.Parallel()
	dir, old, _ := signed(t)
	next, third := newKey(t, signature.P384), newKey(t, signature.Ed25519)
	before := read(t, dir, "release.json.sigstore.json")
	signWith(t, dir, next, sign.Options{Add: true})
	signWith(t, dir, next, sign.Options{Add: true}) // again
	if string(before) != string(read(t, dir, "release.json.sigstore.json")) {
		t.Error("signing by another key changes the first key's signature")
	}
	for _, tt := range []struct {
		p    *trust.Policy
		by   []string
		want string // "" if it is good
	}{
		{threshold(1, old), hints(old), ""},
		{threshold(1, next), hints(next), ""},
		{threshold(1, third, next), hints(next), ""},
		{threshold(2, old, next), hints(old, next), ""},
		{threshold(2, third, next, old), hints(next, old), ""},
		{threshold(1, third), nil, "release.json.sigstore.json: bad signature: it is by the key "},
		{threshold(2, third, next), hints(next), "1 of the wanted 2 keys have signed it"},
		{threshold(3, third, next, old), hints(next, old), "2 of the wanted 3 keys have signed it"},
	} {
		report, text := verified(t, dir, tt.p)
		if report.OK() != (tt.want == "") || !strings.Contains(text, tt.want) || !slices.Equal(report.Keys, tt.by) {
			t.Errorf("%d of %d: by %s, %s", tt.p.Threshold, len(tt.p.Keys), report.Keys, text)
		}
	}
	if report, err := Folder(t.Context(), dir, Want{}); err != nil || !report.OK() || report.Signature != NotChecked {
		t.Errorf("without a key: %+v, %v", report, err)
	}
	// What is added is of the whole release, and of nothing else.
	added := release.AddedDir(next.Public().Hint())
	for name, content := range map[string]string{"/more": "", "/" + release.RootFile: signature.TrustedRoot} {
		write(t, dir, added+name, content)
		if report, text := verifiedAny(t, dir, threshold(1, old)); report.OK() {
			t.Errorf("with %s: good, %s", name, text)
		}
		if err := os.Remove(filepath.Join(dir, added+name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, added, "attestations/provenance.sigstore.json")); err != nil {
		t.Fatal(err)
	}
	if report, text := verified(t, dir, threshold(1, next)); report.OK() || !strings.Contains(text, "provenance.sigstore.json: missing") {
		t.Errorf("without an attestation: %s", text)
	}
	if report, text := verified(t, dir, threshold(1, next, old)); !report.OK() || !slices.Equal(report.Keys, hints(old)) {
		t.Errorf("without an attestation, by either key: by %s, %s", report.Keys, text)
	}
	// The keys that have signed it cannot vouch for it by making it again.
	if _, err := Folder(t.Context(), dir, Want{Rebuilders: 1, RebuilderKeys: []signature.PublicKey{next.Public()}}); err == nil {
		t.Error("the owner of an added key counts as a rebuilder")
	}
	signWith(t, dir, third, sign.Options{Replace: true})
	if _, err := os.Stat(filepath.Join(dir, release.Added)); err == nil {
		if left, _ := os.ReadDir(filepath.Join(dir, release.Added)); len(left) > 0 {
			t.Errorf("signatures that were to be replaced: %v", left)
		}
	}
	if report, text := verified(t, dir, threshold(1, third)); !report.OK() {
		t.Error(text)
	}
}

// verifiedAny is like verified, of folders that are wrong for other reasons than signatures.
func verifiedAny(t *testing.T, dir string, p *trust.Policy) (*Report, string) {
	t.Helper()
	report, err := Folder(t.Context(), dir, Want{Trust: p})
	if err != nil {
		t.Fatal(err)
	}
	return report, report.Problem
}

func TestThresholdsThatNobodyCanMeetAreRefused(t *testing.T) {
	t.Parallel()
	dir, key, _ := signed(t)
	for _, p := range []*trust.Policy{threshold(0, key), threshold(2, key), threshold(2, key, key), threshold(1), threshold(-1, key)} {
		if report, err := Folder(t.Context(), dir, Want{Trust: p}); err == nil {
			t.Errorf("%d of %d keys: %+v", p.Threshold, len(p.Keys), report)
		}
	}
}

// Whether a key was valid when it signed is shown by a timestamp, and by nothing else.
func TestSignaturesCountWhileTheirKeyIsValid(t *testing.T) {
	t.Parallel()
	server, rootFile := timestamptest.Serve(t)
	_, otherRoot := timestamptest.Serve(t)
	root, other := readRoots(t, rootFile), readRoots(t, otherRoot)
	stamped, key, _ := signed(t)
	signWith(t, stamped, key, sign.Options{Timestamp: func(ctx context.Context, data []byte) ([]byte, error) {
		return timestamp.Fetch(ctx, server, data)
	}})
	plain := made(t)
	signWith(t, plain, key, sign.Options{})
	now := time.Now()
	before, after, later := now.Add(-time.Hour), now.Add(time.Hour), now.Add(24*time.Hour)
	revoked := func(since time.Time) *trust.Revocation {
		return &trust.Revocation{Since: since, Reason: "it was stolen"}
	}
	policy := func(at time.Time, roots []byte, k trust.Key) *trust.Policy {
		k.PublicKey = key.Public()
		p := &trust.Policy{Keys: []trust.Key{k}, Threshold: 1, Now: at}
		if roots != nil {
			var err error
			if p.Authorities, err = timestamp.ParseRoots(roots); err != nil {
				t.Fatal(err)
			}
		}
		return p
	}
	for what, tt := range map[string]struct {
		dir  string
		p    *trust.Policy
		want string // "" if it is good
	}{
		"valid":                              {plain, policy(now, nil, trust.Key{From: before, Until: after}), ""},
		"expired":                            {plain, policy(later, root, trust.Key{Until: after}), "was valid until"},
		"expired, with a timestamp":          {stamped, policy(later, root, trust.Key{From: before, Until: after}), ""},
		"expired, no server is believed":     {stamped, policy(later, nil, trust.Key{Until: after}), "was valid until"},
		"expired, another server's":          {stamped, policy(later, other, trust.Key{Until: after}), "its timestamp: "},
		"expired before the timestamp":       {stamped, policy(later, root, trust.Key{Until: before}), "and the signature's timestamp is of"},
		"valid, another server's":            {stamped, policy(now, other, trust.Key{}), "its timestamp: "},
		"not valid yet":                      {plain, policy(now, nil, trust.Key{From: after}), "is valid from"},
		"valid later than the timestamp":     {stamped, policy(later, root, trust.Key{From: after}), "is valid from"},
		"a timestamp of the future":          {stamped, policy(before, root, trust.Key{}), "which is not over"},
		"revoked":                            {plain, policy(now, root, trust.Key{Revoked: revoked(time.Time{})}), "is revoked: it was stolen"},
		"revoked, with a timestamp":          {stamped, policy(now, root, trust.Key{Revoked: revoked(time.Time{})}), "is revoked: it was stolen"},
		"revoked since later":                {stamped, policy(later, root, trust.Key{Revoked: revoked(after)}), ""},
		"revoked since later, no timestamp":  {plain, policy(now, root, trust.Key{Revoked: revoked(after)}), "is revoked since"},
		"revoked since before the timestamp": {stamped, policy(later, root, trust.Key{Revoked: revoked(before)}), "is revoked since"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			report, text := verified(t, tt.dir, tt.p)
			if report.OK() != (tt.want == "") || !strings.Contains(text, tt.want) {
				t.Errorf("%t, %s", report.OK(), text)
			}
		})
	}
	// A release of an overlap is good by the new key when the old one has expired.
	next := newKey(t, signature.P256)
	signWith(t, plain, next, sign.Options{Add: true})
	p := policy(later, nil, trust.Key{Until: after})
	p.Keys = append(p.Keys, trust.Key{PublicKey: next.Public()})
	if report, text := verified(t, plain, p); !report.OK() || !slices.Equal(report.Keys, hints(next)) {
		t.Errorf("in the overlap: by %s, %s", report.Keys, text)
	}
	p.Threshold = 2
	if report, _ := verified(t, plain, p); report.OK() {
		t.Error("an expired key counts")
	}
}

func readRoots(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A timestamp of one signature does not make another one older.
func TestTimestampOfAnotherSignatureIsRefused(t *testing.T) {
	t.Parallel()
	server, root := timestamptest.Serve(t)
	dir, key, _ := signed(t)
	stolen, err := timestamp.Fetch(t.Context(), server, []byte("another signature"))
	if err != nil {
		t.Fatal(err)
	}
	signWith(t, dir, key, sign.Options{Timestamp: func(context.Context, []byte) ([]byte, error) { return stolen, nil }})
	p := threshold(1, key)
	if p.Authorities, err = timestamp.ParseRoots(readRoots(t, root)); err != nil {
		t.Fatal(err)
	}
	if report, text := verified(t, dir, p); report.OK() || !strings.Contains(text, "it is of another content") {
		t.Errorf("%+v, %s", report, text)
	}
}

func TestFileOfTrustedKeysIsSignedAndNeverGoesBack(t *testing.T) {
	t.Parallel()
	root, key, thief := newKey(t, signature.Ed25519), newKey(t, signature.P256), newKey(t, signature.P256)
	dir, kept := t.TempDir(), filepath.Join(t.TempDir(), "kept")
	file := filepath.Join(dir, "trust.json")
	at := time.Now().Add(time.Hour)
	publish := func(version int, expires *time.Time, by signature.PrivateKey) {
		t.Helper()
		f := &trust.File{Version: version, Threshold: 1, Expires: expires}
		f.Key(key.Public())
		data, err := f.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, "trust.json", string(data))
		if _, err := sign.Single(t.Context(), file, by, sign.Options{Replace: true}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what, want string, roots *trust.Policy) {
		t.Helper()
		p, err := Trusted(t.Context(), file, roots, kept)
		if want == "" && (err != nil || !p.Has(key.Public()) || p.Has(thief.Public())) {
			t.Errorf("%s: %+v, %v", what, p, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want one with %q", what, err, want)
		}
	}
	publish(2, nil, thief)
	check("signed by a thief", "is not to be trusted: trust.json.sigstore.json: it is by the key", threshold(1, root))
	publish(2, nil, root)
	check("version 2", "", threshold(1, root))
	check("version 2 again", "", threshold(1, root))
	check("two roots", "1 of the wanted 2 keys", threshold(2, root, thief))
	if _, err := sign.Single(t.Context(), file, thief, sign.Options{Add: true}); err != nil {
		t.Fatal(err)
	}
	check("two roots that have signed", "", threshold(2, root, thief))
	publish(2, &at, root)
	check("another version 2", "it is version 2, and has another content", threshold(1, root))
	publish(1, nil, root)
	check("version 1", "it is version 1, and ", threshold(1, root))
	publish(3, &at, root)
	late := threshold(1, root)
	late.Now = at
	check("after it has expired", "has expired", late)
	check("version 3", "", threshold(1, root))
	write(t, dir, "trust.json", strings.Replace(string(read(t, dir, "trust.json")), `"version": 3`, `"version": 4`, 1))
	check("changed", "it is of another content", threshold(1, root))
	if err := os.RemoveAll(filepath.Join(dir, "trust.json.sigstore.json")); err != nil {
		t.Fatal(err)
	}
	check("not signed", "is not signed: there is no ", threshold(1, root))
	publish(9, nil, root)
	write(t, dir, "trust.json", "{}")
	if _, err := sign.Single(t.Context(), file, root, sign.Options{}); err != nil {
		t.Fatal(err)
	}
	check("empty", "its version is 0", threshold(1, root))
	publish(5, nil, root)
	write(t, kept, filepath.Base(release.AddedDir(root.Public().Hint()))+"/x", "")
	check("a record that means nothing", "it is no version", threshold(1, root))
}

func TestImagesHaveSignaturesOfTwoKeys(t *testing.T) {
	t.Parallel()
	folder, images, old := signedImage(t)
	next, third := newKey(t, signature.P384), newKey(t, signature.P256)
	signWith(t, folder, next, sign.Options{Add: true})
	both := images + "-both"
	if err := sign.Layout(t.Context(), folder, images, both); err != nil {
		t.Fatal(err)
	}
	with := func(n int, keys ...signature.PublicKey) *trust.Policy {
		p := trust.Of(keys...)
		p.Threshold = n
		return p
	}
	for _, tt := range []struct {
		p    *trust.Policy
		good bool
	}{
		{with(1, *old), true},
		{with(1, next.Public()), true},
		{with(1, third.Public(), next.Public()), true},
		{with(2, *old, next.Public()), true},
		{with(2, *old, third.Public()), false},
		{with(1, third.Public()), false},
	} {
		reports, err := Layout(t.Context(), both, "", Want{Trust: tt.p})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range reports {
			if r.OK() != tt.good || (r.Signature == Good) != tt.good || len(r.Keys) >= tt.p.Threshold != tt.good {
				t.Errorf("%d of %d: %+v", tt.p.Threshold, len(tt.p.Keys), r)
			}
		}
	}
}
