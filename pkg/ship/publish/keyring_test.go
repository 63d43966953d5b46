package publish

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	pgp "github.com/ProtonMail/go-crypto/openpgp"
	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/apt"
	"slipway.build/pkg/mechanism/openpgp"
)

const keyringPackage = "acme-archive-keyring"

// Whenever the keys change, the package with them gets a newer version, and no other time.
func TestKeyringsFollowKeys(t *testing.T) {
	t.Parallel()
	o, to, elsewhere := newOwner(t), t.TempDir(), t.TempDir()
	at := time.Date(2021, 1, 15, 23, 0, 0, 0, time.UTC)
	private := newPrivate(t, at.AddDate(1, 6, 0), 0)
	made := func(at time.Time) *openpgp.Key { return readKey(t, newPrivate(t, at, 0)) }
	old, twin, next, sameDay := made(at), made(at), readKey(t, private), made(at.AddDate(1, 6, 0))
	stable := filepath.Join(to, "core:/stable:/v1.37")
	dir, other := o.packaged(t, "v1.37.0+acme.1"), o.packaged(t, "v1.36.4+acme.9")
	var all []string
	for _, step := range []struct {
		name string
		keys openpgp.Keys
		want string // a new version
	}{
		{"the first", openpgp.Keys{old}, "2021.01.15-1"},
		{"the same", openpgp.Keys{old}, ""},
		{"a key of the same second", openpgp.Keys{old, twin}, "2021.01.15-2"},
		{"a second key", openpgp.Keys{old, next}, "2022.07.15~2021.01.15-1"},
		{"the second key signs rpms", openpgp.Keys{next, old}, ""},
		{"the second key alone", openpgp.Keys{next}, "2022.07.15-1"},
		{"an older key comes back", openpgp.Keys{next, old}, "2022.07.15-2"},
		{"and goes again", openpgp.Keys{next}, "2022.07.15-3"},
		{"another key of the same day", openpgp.Keys{next, sameDay}, "2022.07.15-4"},
		{"an extended key", openpgp.Keys{extended(t, private, at.AddDate(2, 0, 0)), sameDay}, "2023.01.15~2022.07.15-1"},
	} {
		if _, err := o.publishPackages(t, dir, to, step.keys...); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if step.want != "" {
			newestIs(t, step.name, append(all, step.want))
			all = append(all, step.want)
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(all)), listed(t, stable, keyringPackage)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		before := contents(t, to)
		if p, err := o.publishPackages(t, dir, to, step.keys...); err != nil || !p.Done() {
			t.Errorf("%s, again: %v", step.name, err)
		}
		if diff := cmp.Diff(before, contents(t, to)); diff != "" {
			t.Errorf("%s, again:\n%s", step.name, diff)
		}
	}

	// A release of another minor version, published elsewhere, comes with the same package.
	if _, err := o.publishPackages(t, other, elsewhere, old, next); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"deb/all/" + keyringPackage + "_2022.07.15~2021.01.15-1_all.deb",
		"rpm/noarch/" + keyringPackage + "-2022.07.15~2021.01.15-1.noarch.rpm"} {
		one, err := os.ReadFile(filepath.Join(stable, file))
		if err != nil {
			t.Fatal(err)
		}
		two, err := os.ReadFile(filepath.Join(elsewhere, "core:/stable:/v1.36", file))
		if err != nil || !bytes.Equal(one, two) {
			t.Errorf("%s differs, %v", file, err)
		}
	}
}

// newestIs requires that the last of some versions is the newest for dpkg.
func newestIs(t *testing.T, step string, versions []string) {
	t.Helper()
	last := versions[len(versions)-1]
	for _, v := range versions[:len(versions)-1] {
		if order, err := apt.Compare(last, v); err != nil || order <= 0 {
			t.Errorf("%s: %s is not newer than %s, %v", step, last, v, err)
		}
	}
}

// extended returns a key whose owner has extended it at a time.
func extended(t *testing.T, private []byte, at time.Time) *openpgp.Key {
	t.Helper()
	list, err := pgp.ReadArmoredKeyRing(bytes.NewReader(private))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list[0].Identities {
		again := *i.SelfSignature
		again.CreationTime = at
		i.SelfSignature = &again
		i.Signatures = append(i.Signatures, &again)
	}
	var out bytes.Buffer
	if err := list[0].SerializePrivate(&out, nil); err != nil { // this signs again
		t.Fatal(err)
	}
	return readKey(t, out.Bytes())
}

// Withdrawals leave the keyring, and add one if they sign with other keys.
func TestKeyringsOfWithdrawals(t *testing.T) {
	t.Parallel()
	o, to := newOwner(t), t.TempDir()
	at := time.Date(2021, 1, 15, 0, 0, 0, 0, time.UTC)
	old, next := readKey(t, newPrivate(t, at, 0)), readKey(t, newPrivate(t, at.AddDate(1, 0, 0), 0))
	stable := filepath.Join(to, "core:/stable:/v1.37")
	versions := []string{"v1.37.0+acme.1", "v1.37.0+acme.2"}
	for _, v := range versions {
		if _, err := o.publishPackages(t, o.packaged(t, v), to, old); err != nil {
			t.Fatal(err)
		}
	}
	for i, keys := range []openpgp.Keys{{old}, {old, next}} {
		p, err := Withdraw(t.Context(), folder(to), versions[i], "it leaks", Repositories{Keys: keys})
		if err == nil {
			err = p.Send(t.Context(), func() {})
		}
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"2021.01.15-1", "2022.01.15~2021.01.15-1"}[:i+1]
		if got := listed(t, stable, keyringPackage); !slices.Equal(got, want) {
			t.Errorf("%d keys: %q, want %q", len(keys), got, want)
		}
	}
	whatIsNamedIsThere(t, stable, next)
	if got := listed(t, stable, "tool"); len(got) > 0 {
		t.Errorf("withdrawn, and listed: %q", got)
	}
}

// No rpm is signed by a key that the machines of users have never seen.
func TestFirstKeyIsThatOfUsers(t *testing.T) {
	t.Parallel()
	o, to, old, next := newOwner(t), t.TempDir(), newKey(t, 0), newKey(t, 0)
	dir := o.packaged(t, "v1.37.0+acme.1")
	for _, step := range []struct {
		keys openpgp.Keys
		good bool
		left int // rpms with the signature of another key
	}{
		{openpgp.Keys{old}, true, 0}, {openpgp.Keys{next, old}, false, 0}, {openpgp.Keys{old, next}, true, 0},
		{openpgp.Keys{next, old}, true, 0}, {openpgp.Keys{next}, true, 1},
	} {
		before := contents(t, to)
		p, err := o.publishPackages(t, dir, to, step.keys...)
		if p != nil && len(p.OtherKey) != step.left {
			t.Errorf("%d rpms have the signature of another key: %q", len(p.OtherKey), p.OtherKey)
		}
		if step.good && err != nil {
			t.Error(err)
		}
		if !step.good && (err == nil || !strings.Contains(err.Error(), "which users of core:/stable:/v1.37 do not have yet")) {
			t.Errorf("a key that nobody has signs rpms: %v", err)
		}
		if !step.good && !cmp.Equal(before, contents(t, to)) {
			t.Error("something was written")
		}
	}
}

// dateOf returns the date of a release, which is another one for each minor version.
func dateOf(version string) time.Time {
	minor, err := strconv.Atoi(version[len("v1."):len("v1.37")])
	if err != nil {
		panic(err)
	}
	return time.Unix(1_700_000_000, 0).AddDate(0, minor-37, 0)
}
