package gpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/child/childtest"
	"slipway.build/pkg/mechanism/needs"
	"slipway.build/pkg/mechanism/openpgp"
)

// A home is a folder of gpg, which the environment names.
type home string

// newHome makes one, whose agent asks a program that counts its questions and answers with a passphrase, or cancels if that is empty.
func newHome(t *testing.T, passphrase string) home {
	t.Helper()
	needs.Program(t, program)
	needs.Program(t, "gpg-agent")
	h := home(t.TempDir())
	if err := os.Chmod(string(h), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GNUPGHOME", string(h))
	t.Cleanup(func() { // not with the test's context, which has ended
		if out, err := exec.Command("gpgconf", "--homedir", string(h), "--kill", "all").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	answer := "echo 'ERR 83886179 Operation cancelled <Pinentry>'"
	if passphrase != "" {
		answer = "echo D " + passphrase + "; echo OK"
	}
	childtest.Script(t, h.path("pinentry"), fmt.Sprintf(`#!/bin/sh
echo OK
while read -r command rest; do
	case $command in
	GETPIN) echo >>%s; %s ;;
	*) echo OK ;;
	esac
done
`, h.path("asked"), answer))
	h.write(t, "gpg-agent.conf", "pinentry-program "+h.path("pinentry")+"\n")
	return h
}

func (h home) path(name string) string { return filepath.Join(string(h), name) }

func (h home) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(h.path(name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// asked returns how often people were asked for a passphrase.
func (h home) asked() int {
	data, _ := os.ReadFile(h.path("asked"))
	return bytes.Count(data, []byte("\n"))
}

func (h home) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, append([]string{"--batch", "--no-tty", "--pinentry-mode", "loopback"}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("gpg %q: %v, %s", args, err, err.(*exec.ExitError).Stderr)
	}
	return string(out)
}

// add makes a key and returns its fingerprint, and those of its parts.
func (h home) add(t *testing.T, passphrase, user, kind, usage, lifetime string, more ...string) []string {
	t.Helper()
	h.run(t, append(more, "--passphrase", passphrase, "--quick-gen-key", user, kind, usage, lifetime)...)
	return h.fingerprints(t, user)
}

func (h home) fingerprints(t *testing.T, user string) (all []string) {
	t.Helper()
	for line := range strings.Lines(h.run(t, "--with-colons", "--list-keys", user)) {
		if fields := strings.Split(line, ":"); fields[0] == "fpr" {
			all = append(all, fields[9])
		}
	}
	return all
}

// signs has a key sign in all forms, and gpg check that.
func (h home) signs(t *testing.T, k *openpgp.Key) (isRSA bool) {
	t.Helper()
	text := []byte("Origin: a\nSHA256:\n 0123 4 Packages\n- a dash\n")
	clear, err := openpgp.Keys{k}.Clear(t.Context(), text, time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	detached, err := openpgp.Keys{k}.Sign(t.Context(), text, time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	h.write(t, "text", string(text))
	h.write(t, "clear", string(clear))
	h.write(t, "detached", string(detached))
	if got := h.run(t, "--decrypt", h.path("clear")); got != string(text)+"\n" {
		t.Errorf("gpg reads the text %q", got)
	}
	h.run(t, "--verify", h.path("detached"), h.path("text"))
	s, err := k.Sign(t.Context(), text, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return s.IsRSA
}

func TestKeysOfGPGSign(t *testing.T) {
	h := newHome(t, "secret")
	for i, tt := range []struct {
		kind  string
		isRSA bool
	}{{"rsa2048", true}, {"ed25519", false}, {"nistp384", false}} {
		fingerprint := h.add(t, "", fmt.Sprintf("Acme <k8s-%d@acme.example>", i), tt.kind, "sign", "2y")[0]
		k, err := Key(t.Context(), strings.ToLower(fingerprint[:20]+"  "+fingerprint[20:]))
		if err != nil {
			t.Fatal(err)
		}
		if isRSA := h.signs(t, k); isRSA != tt.isRSA || k.Fingerprint() != fingerprint || !k.Expires(time.Now()).After(time.Now()) {
			t.Errorf("%s: of RSA: %v, %s, expires %s", tt.kind, isRSA, k.Fingerprint(), k.Expires(time.Now()))
		}
	}

	// A part of the key signs, and its passphrase is asked for once.
	const user = "Parts <parts@acme.example>"
	whole := h.add(t, "secret", user, "rsa2048", "cert", "never")[0]
	h.run(t, "--passphrase", "secret", "--quick-add-key", whole, "ed25519", "sign", "30d")
	k, err := Key(t.Context(), whole)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "gpgconf", "--kill", "gpg-agent").CombinedOutput(); err != nil { // it has the passphrase
		t.Fatalf("%v: %s", err, out)
	}
	if isRSA := h.signs(t, k); isRSA || h.asked() != 1 {
		t.Errorf("of RSA: %v, asked %d times", isRSA, h.asked())
	}
	if end := k.Expires(time.Now()); end.IsZero() || end.After(time.Now().Add(31*24*time.Hour)) {
		t.Errorf("the part that signs expires in 30 days, and the key %s", end)
	}
	part := h.fingerprints(t, user)[1]
	if _, err := Key(t.Context(), part); !badrequest.Is(err) || err.Error() != part+" is a part of a key: name the whole, "+whole {
		t.Errorf("a part: %v", err)
	}
}

func TestConfigurationOfGPGDoesNotMatter(t *testing.T) {
	h := newHome(t, "secret")
	other := h.add(t, "", "Other <other@acme.example>", "ed25519", "sign", "never")[0]
	fingerprint := h.add(t, "", "Acme <k8s@acme.example>", "rsa2048", "sign", "never")[0]
	h.write(t, "gpg.conf", "armor\ntextmode\nlocal-user "+other+"\ndefault-key "+other+"\ncomment hello\n")
	k, err := Key(t.Context(), fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	if !h.signs(t, k) {
		t.Error("another key has signed")
	}
	h.write(t, "gpg.conf", "digest-algo SHA1\n")
	if _, err := k.Sign(t.Context(), []byte("another content"), time.Now()); err == nil || !strings.Contains(err.Error(), "that others would accept") {
		t.Errorf("a signature of SHA-1: %v", err)
	}
}

func TestWhyGPGDoesNotSign(t *testing.T) {
	h := newHome(t, "")
	locked := h.add(t, "secret", "Locked <locked@acme.example>", "ed25519", "sign", "never")[0]
	public := h.add(t, "", "Public <public@acme.example>", "ed25519", "sign", "never")[0]
	h.run(t, "--yes", "--delete-secret-keys", public)
	old := h.add(t, "", "Old <old@acme.example>", "ed25519", "sign", "30d", "--faked-system-time", "20240101T000000")[0]
	revoked := h.add(t, "", "Revoked <revoked@acme.example>", "ed25519", "sign", "never")[0]
	certificate, err := os.ReadFile(h.path("openpgp-revocs.d/" + revoked + ".rev"))
	if err != nil {
		t.Fatal(err)
	}
	h.write(t, "revoked", strings.ReplaceAll(string(certificate), ":-----BEGIN", "-----BEGIN"))
	h.run(t, "--import", h.path("revoked"))
	if out, err := exec.CommandContext(t.Context(), "gpgconf", "--kill", "gpg-agent").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, want := range map[string]string{
		locked:  "sign with the key " + locked + ": gpg: signing failed: Operation cancelled: run the same again, and give",
		public:  "sign with the key " + public + ": gpg: signing failed: No secret key: import the private key, insert the card",
		old:     "sign with the key " + old + ": gpg: signing failed: ",
		revoked: "sign with the key " + revoked + ": gpg: signing failed: ",
	} {
		k, err := Key(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Sign(t.Context(), []byte("a"), time.Now()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
		if k.CanSign(time.Now()) != (name == locked || name == public) || k.Revoked(time.Now()) != (name == revoked) {
			t.Errorf("%s can sign: %v, is revoked: %v", name, k.CanSign(time.Now()), k.Revoked(time.Now()))
		}
	}
	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("enough"))
	for fingerprint, want := range map[string]string{
		"0123456789ABCDEF": "short name of a key, and others can make a key with the same: name all 40 digits",
		"0x89ABCDEF":       "short name of a key",
		"":                 "no fingerprint",
		"Acme":             "no fingerprint",
		locked + "00":      "no fingerprint",
		"0123456789ABCDEF0123456789ABCDEF01234567": "gpg has no public key 0123456789ABCDEF0123456789ABCDEF01234567: import it, or set GNUPGHOME",
	} {
		_, err := Key(t.Context(), fingerprint)
		if err == nil || !strings.Contains(err.Error(), want) || badrequest.Is(err) == strings.HasPrefix(want, "gpg") {
			t.Errorf("%s: %v", fingerprint, err)
		}
	}
	if _, err := Key(ended, locked); err == nil || !strings.HasSuffix(err.Error(), ": enough") {
		t.Errorf("at an end: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Key(t.Context(), locked); err == nil || !strings.Contains(err.Error(), "on Debian the package gnupg") {
		t.Errorf("without gpg: %v", err)
	}
}
