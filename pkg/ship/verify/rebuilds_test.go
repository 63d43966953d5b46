package verify

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
)

// rebuiltBy writes what the owner of a key states about a release, as if it had the provenance of another folder.
func rebuiltBy(t *testing.T, dir, of string, key signature.PrivateKey) {
	t.Helper()
	summary, err := provenance.Summarize(read(t, of, provenance.File), time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	b, err := signature.Attest(t.Context(), key, summary)
	if err != nil {
		t.Fatal(err)
	}
	data, err := b.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	file := release.RebuildFile(key.Public().Hint())
	if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir, file, string(data))
}

func TestRebuildersAreCounted(t *testing.T) {
	t.Parallel()
	dir, _, public := signed(t)
	var keys []signature.PrivateKey
	var publics []signature.PublicKey
	for range 3 {
		key, err := signature.New()
		if err != nil {
			t.Fatal(err)
		}
		keys, publics = append(keys, key), append(publics, key.Public())
	}
	rebuiltBy(t, dir, dir, keys[0])
	rebuiltBy(t, dir, dir, keys[1])
	ask := func(n int, by ...signature.PublicKey) *Report {
		t.Helper()
		report, err := Folder(t.Context(), dir, Want{Trust: signedBy(public), Rebuilders: n, RebuilderKeys: by})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	if r := ask(2, publics...); !r.OK() || !slices.Equal(r.Rebuilders, []string{publics[0].Hint(), publics[1].Hint()}) {
		t.Errorf("two of three: %+v", r)
	}
	if r := ask(3, publics...); r.OK() || r.Problem != "2 of the wanted 3 have rebuilt it" {
		t.Errorf("three of three: %+v", r)
	}
	for what, want := range map[string]Want{
		"one key twice":          {Trust: signedBy(public), Rebuilders: 2, RebuilderKeys: []signature.PublicKey{publics[0], publics[0]}},
		"no keys":                {Trust: signedBy(public), Rebuilders: 1},
		"keys alone":             {Trust: signedBy(public), RebuilderKeys: publics},
		"a number below 0":       {Trust: signedBy(public), Rebuilders: -1, RebuilderKeys: publics},
		"the key of the release": {Trust: signedBy(public), Rebuilders: 1, RebuilderKeys: []signature.PublicKey{*public}},
		"the key that signed it": {Rebuilders: 1, RebuilderKeys: []signature.PublicKey{publics[0], *public}},
	} {
		if r, err := Folder(t.Context(), dir, want); !badrequest.Is(err) {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
	if r := ask(1, publics[2]); r.OK() {
		t.Errorf("somebody else's: %+v", r)
	}
	if r := ask(0); !r.OK() {
		t.Errorf("nobody asks: %+v", r)
	}
	for _, want := range []Want{{Rebuilders: 1, RebuilderKeys: publics}, {Rebuilders: 1}} {
		if _, err := One(t.Context(), filepath.Join(dir, "kubernetes.tar.gz"), want); !badrequest.Is(err) {
			t.Errorf("a part of a release is rebuilt: %v", err)
		}
	}

	// One that is wrong is named, whoever else is right.
	other, _, _ := signed(t)
	r, err := release.Read(other)
	if err != nil {
		t.Fatal(err)
	}
	r.Version = "v1.37.0+acme.2"
	describe(t, other, r)
	file := release.RebuildFile(publics[0].Hint())
	good := read(t, dir, file)
	for what, change := range map[string]func(){
		"of another release": func() { rebuiltBy(t, dir, other, keys[0]) },
		"by another key":     func() { write(t, dir, file, string(read(t, dir, release.RebuildFile(publics[1].Hint())))) },
		"of a message": func() {
			write(t, dir, file, string(read(t, dir, release.File+release.BundleSuffix)))
		},
		"no bundle":      func() { write(t, dir, file, "{}") },
		"something more": func() { write(t, dir, file, string(good)+"{}") },
	} {
		change()
		r := ask(1, publics...)
		if at := slices.IndexFunc(r.Files, func(f File) bool { return f.Path == file }); r.OK() || r.Files[at].Status != BadSigned {
			t.Errorf("%s: %+v", what, r)
		}
		write(t, dir, file, string(good))
	}
	if r := ask(2, publics...); !r.OK() {
		t.Errorf("put back: %+v", r)
	}
	write(t, dir, file, strings.TrimSpace(string(good)))
	if r := ask(2, publics...); !r.OK() {
		t.Errorf("written by another client: %+v", r)
	}
	if r, err := Folder(t.Context(), dir, Want{Version: "v1", Rebuilders: 3, RebuilderKeys: publics}); err != nil ||
		r.Problem != "it is not v1, and 2 of the wanted 3 have rebuilt it" {
		t.Errorf("two problems: %+v, %v", r, err)
	}
}

// Anybody may put files into the folder of rebuilds.
func TestFilesAboutRebuildsAreBounded(t *testing.T) {
	t.Parallel()
	dir, _, _ := signed(t)
	folder := filepath.Join(dir, release.Rebuilds)
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(folder, name+release.BundleSuffix) }
	if err := os.Symlink(os.DevNull, file("link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file("large"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file("large"), signature.MaxBundle+1); err != nil {
		t.Fatal(err)
	}
	write(t, dir, release.Rebuilds+"/small"+release.BundleSuffix, "{}")
	write(t, dir, release.Rebuilds+"/README", "")
	r, err := Folder(t.Context(), dir, Want{})
	if err != nil || r.OK() {
		t.Fatalf("%+v, %v", r, err)
	}
	got := map[string]Status{}
	for _, f := range r.Files {
		if filepath.Dir(f.Path) == release.Rebuilds {
			got[filepath.Base(f.Path)] = f.Status
		}
	}
	want := map[string]Status{
		"link" + release.BundleSuffix: Stranger, "large" + release.BundleSuffix: Stranger,
		"small" + release.BundleSuffix: Unchecked, "README": Stranger,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for i := range maxRebuilds {
		write(t, dir, fmt.Sprintf("%s/%d%s", release.Rebuilds, i, release.BundleSuffix), "")
	}
	if _, err := Folder(t.Context(), dir, Want{}); err == nil || !strings.Contains(err.Error(), "rebuilds has more than 1000 files") {
		t.Errorf("error %v", err)
	}
}

// What a bundle about a rebuild holds is anybody's.
func FuzzCheckRebuild(f *testing.F) {
	key, err := signature.New()
	if err != nil {
		f.Fatal(err)
	}
	bundle, err := signature.Attest(f.Context(), key, []byte("{}"))
	if err != nil {
		f.Fatal(err)
	}
	data, err := bundle.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		if checkRebuild(data, []byte("{}"), key.Public()) == nil {
			t.Errorf("%q is accepted", data)
		}
	})
}
