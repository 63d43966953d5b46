package publish

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/child/childtest"
	"slipway.build/pkg/mechanism/gpg"
	"slipway.build/pkg/mechanism/gpg/gpgtest"
	"slipway.build/pkg/mechanism/needs"
	"slipway.build/pkg/mechanism/openpgp"
)

// keyOfGPG returns a new key of gpg, as each process reads it, and how many signatures were made since that was asked last.
func keyOfGPG(t *testing.T) (read func() *openpgp.Key, made func() int) {
	t.Helper()
	h := gpgtest.New(t, "")
	t.Setenv("GNUPGHOME", string(h))
	fingerprint := h.Add(t, "Acme <k8s@acme.example>", "", "ed25519", "never", "--faked-system-time", "20240101T000000")
	childtest.Script(t, h.Path("gpg"), strings.NewReplacer("HOME", string(h), "GPG", needs.Program(t, "gpg")).Replace(`#!/bin/sh
case $* in
*--detach-sign*) # no two at the same time
	echo >>HOME/made
	echo >>HOME/all
	set -- --faked-system-time $((1750000000 + $(wc -l <HOME/all))) "$@"
	;;
esac
exec GPG "$@"
`))
	t.Setenv("PATH", string(h)+":"+os.Getenv("PATH"))
	return func() *openpgp.Key {
			key, err := gpg.Key(t.Context(), fingerprint)
			if err != nil {
				t.Fatal(err)
			}
			return key
		}, func() int {
			data, _ := os.ReadFile(h.Path("made"))
			h.Write(t, "made", "")
			return len(data)
		}
}

// The signatures that another program makes differ each time. It is asked for those alone that are not there yet.
func TestSignaturesOfGPGAreMadeOnce(t *testing.T) {
	o, to, file := newOwner(t), t.TempDir(), newKey(t, 0)
	key, made := keyOfGPG(t)
	first, second := o.packaged(t, "v1.37.0+acme.1"), o.packaged(t, "v1.37.0+acme.2")
	stable := filepath.Join(to, "core:", "stable:", "v1.37")
	publish := func(dir string, signatures int, keys ...*openpgp.Key) *Publication {
		t.Helper()
		p, err := o.publishPackages(t, dir, to, keys...)
		if err != nil {
			t.Fatal(err)
		}
		if n := made(); n != signatures {
			t.Errorf("%d signatures were made, want %d", n, signatures)
		}
		return p
	}
	publish(first, 5, key()) // of two rpms, one of them with the keys, and InRelease, Release.gpg and repomd.xml
	publish(second, 4, key())
	before := contents(t, to)
	for _, dir := range []string{second, first} {
		if p := publish(dir, 0, key()); !p.Done() {
			t.Error("there is more to send")
		}
	}
	if diff := cmp.Diff(before, contents(t, to)); diff != "" {
		t.Errorf("again:\n%s", diff)
	}
	clients(t, to, []string{"1.37.0+acme.1-1", "1.37.0+acme.2-1"})

	// From a key of gpg to one in a file, and back.
	publish(second, 4, key(), file)
	publish(second, 0, file, key())
	publish(o.packaged(t, "v1.37.0+acme.3"), 3, file, key())
	publish(o.packaged(t, "v1.37.0+acme.4"), 0, file)
	publish(o.packaged(t, "v1.37.0+acme.5"), 3, file, key())
	if got := listed(t, stable, "tool"); len(got) != 5 {
		t.Errorf("there are %q", got)
	}
	publish(first, 0, key(), file)
	publish(second, 4, key())
	p, err := Withdraw(t.Context(), folder(to), "v1.37.0+acme.2", "it leaks", Repositories{Keys: openpgp.Keys{key()}})
	if err == nil {
		err = p.Send(t.Context(), func() {})
	}
	if n := made(); err != nil || n != 3 {
		t.Errorf("a withdrawal: %d signatures, %v", n, err)
	}
}

func TestTwoPublishersWithAKeyOfGPG(t *testing.T) {
	o, to := newOwner(t), t.TempDir()
	key, _ := keyOfGPG(t)
	dir := o.packaged(t, "v1.37.0+acme.1")
	var both []*Publication
	for range 2 {
		accepted, err := Accept(t.Context(), dir, o.want(), "", time.Now())
		if err == nil {
			err = accepted.SignPackages(Repositories{Keys: openpgp.Keys{key()}, URL: address})
		}
		if err != nil {
			t.Fatal(err)
		}
		p, err := accepted.Plan(t.Context(), folder(to))
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, p)
	}
	for _, p := range both {
		if err := p.Send(t.Context(), func() {}); err != nil {
			t.Errorf("both had planned it: %v", err)
		}
	}
	clients(t, to, []string{"1.37.0+acme.1-1"})
}

// A repository that gpg signs is continued where a run has ended.
func TestInterruptedRepositoryOfGPG(t *testing.T) {
	o, to := newOwner(t), t.TempDir()
	key, made := keyOfGPG(t)
	if _, err := o.publishPackages(t, o.packaged(t, "v1.37.0+acme.1"), to, key()); err != nil {
		t.Fatal(err)
	}
	second := o.packaged(t, "v1.37.0+acme.2")
	ended := false
	for !ended {
		accepted, err := Accept(t.Context(), second, o.want(), "", time.Now())
		if err == nil {
			err = accepted.SignPackages(Repositories{Keys: openpgp.Keys{key()}, URL: address})
		}
		if err != nil {
			t.Fatal(err)
		}
		left := 3
		p, err := accepted.Plan(t.Context(), brittle{folder(to), &left})
		if err != nil {
			t.Fatal(err)
		}
		err = p.Send(t.Context(), func() {})
		ended = err == nil
		if err != nil && !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
		whatIsNamedIsThere(t, filepath.Join(to, "core:", "stable:", "v1.37"), key())
	}
	made()
	if p, err := o.publishPackages(t, second, to, key()); err != nil || !p.Done() || made() != 0 {
		t.Errorf("again: %v", err)
	}
	clients(t, to, []string{"1.37.0+acme.1-1", "1.37.0+acme.2-1"})
}

func TestKeysOfGPGThatMustNotSign(t *testing.T) {
	h := gpgtest.New(t, "secret")
	t.Setenv("GNUPGHOME", string(h))
	revoked := h.Add(t, "Revoked <revoked@acme.example>", "", "ed25519", "never")
	h.Revoke(t, revoked)
	certifies := "Certifies <certifies@acme.example>"
	h.Run(t, "--passphrase", "", "--quick-gen-key", certifies, "ed25519", "cert", "never")
	part := "Part <part@acme.example>"
	h.Run(t, "--passphrase", "", "--quick-gen-key", part, "ed25519", "cert", "never")
	h.Run(t, "--passphrase", "", "--quick-add-key", h.Fingerprints(t, part)[0], "ed25519", "sign", "30d")
	old := h.Add(t, "Old <old@acme.example>", "", "ed25519", "30d", "--faked-system-time", "20240101T000000")
	for _, tt := range []struct{ fingerprint, want string }{
		{revoked, "it was revoked: make another one"},
		{h.Fingerprints(t, certifies)[0], "none of its parts is for signatures"},
		{old, "it expired on 2024-01-31: extend"},
		{h.Fingerprints(t, part)[0], ""},
	} {
		key, err := gpg.Key(t.Context(), tt.fingerprint)
		if err != nil {
			t.Fatal(tt, err)
		}
		warnings, err := CheckKeys(openpgp.Keys{key}, time.Now())
		if tt.want != "" && (!errors.As(err, new(*KeyError)) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v, want %s", err, tt.want)
		}
		if tt.want == "" && (err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "expires on")) {
			t.Errorf("a part that signs expires in 30 days: %q, %v", warnings, err)
		}
	}
}
