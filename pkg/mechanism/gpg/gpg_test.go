package gpg

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/gpg/gpgtest"
	"slipway.build/pkg/mechanism/openpgp"
)

// newHome makes a folder of gpg, which the environment names.
func newHome(t *testing.T, passphrase string) gpgtest.Home {
	t.Helper()
	h := gpgtest.New(t, passphrase)
	t.Setenv("GNUPGHOME", string(h))
	return h
}

// signs has a key sign in all forms, and gpg check that.
func signs(t *testing.T, h gpgtest.Home, k *openpgp.Key) (isRSA bool) {
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
	h.Write(t, "text", string(text))
	h.Write(t, "clear", string(clear))
	h.Write(t, "detached", string(detached))
	if got := h.Run(t, "--decrypt", h.Path("clear")); got != string(text)+"\n" {
		t.Errorf("gpg reads the text %q", got)
	}
	h.Run(t, "--verify", h.Path("detached"), h.Path("text"))
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
		fingerprint := h.Add(t, fmt.Sprintf("Acme <k8s-%d@acme.example>", i), "", tt.kind, "2y")
		k, err := Key(t.Context(), strings.ToLower(fingerprint[:20]+"  "+fingerprint[20:]))
		if err != nil {
			t.Fatal(err)
		}
		if isRSA := signs(t, h, k); isRSA != tt.isRSA || k.Fingerprint() != fingerprint || !k.Expires(time.Now()).After(time.Now()) {
			t.Errorf("%s: of RSA: %v, %s, expires %s", tt.kind, isRSA, k.Fingerprint(), k.Expires(time.Now()))
		}
	}

	// A part of the key signs, and its passphrase is asked for once.
	const user = "Parts <parts@acme.example>"
	h.Run(t, "--passphrase", "secret", "--quick-gen-key", user, "rsa2048", "cert", "never")
	whole := h.Fingerprints(t, user)[0]
	h.Run(t, "--passphrase", "secret", "--quick-add-key", whole, "ed25519", "sign", "30d")
	k, err := Key(t.Context(), whole)
	if err != nil {
		t.Fatal(err)
	}
	h.Stop(t) // it has the passphrase
	if isRSA := signs(t, h, k); isRSA || h.Asked() != 1 {
		t.Errorf("of RSA: %v, asked %d times", isRSA, h.Asked())
	}
	if end := k.Expires(time.Now()); end.IsZero() || end.After(time.Now().Add(31*24*time.Hour)) {
		t.Errorf("the part that signs expires in 30 days, and the key %s", end)
	}
	part := h.Fingerprints(t, user)[1]
	if _, err := Key(t.Context(), part); !badrequest.Is(err) || err.Error() != part+" is a part of a key: name the whole, "+whole {
		t.Errorf("a part: %v", err)
	}
}

func TestConfigurationOfGPGDoesNotMatter(t *testing.T) {
	h := newHome(t, "secret")
	other := h.Add(t, "Other <other@acme.example>", "", "ed25519", "never")
	fingerprint := h.Add(t, "Acme <k8s@acme.example>", "", "rsa2048", "never")
	h.Write(t, "gpg.conf", "armor\ntextmode\nlocal-user "+other+"\ndefault-key "+other+"\ncomment hello\n")
	k, err := Key(t.Context(), fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	if !signs(t, h, k) {
		t.Error("another key has signed")
	}
	h.Write(t, "gpg.conf", "digest-algo SHA1\n")
	_, err = k.Sign(t.Context(), []byte("another content"), time.Now())
	if err == nil || !strings.Contains(err.Error(), "a weak digest such as SHA-1") {
		t.Errorf("a signature of SHA-1: %v", err)
	}
}

func TestWhyGPGDoesNotSign(t *testing.T) {
	h := newHome(t, "")
	locked := h.Add(t, "Locked <locked@acme.example>", "secret", "ed25519", "never")
	public := h.Add(t, "Public <public@acme.example>", "", "ed25519", "never")
	h.Run(t, "--yes", "--delete-secret-keys", public)
	old := h.Add(t, "Old <old@acme.example>", "", "ed25519", "30d", "--faked-system-time", "20240101T000000")
	revoked := h.Add(t, "Revoked <revoked@acme.example>", "", "ed25519", "never")
	h.Revoke(t, revoked)
	future := h.Add(t, "Future <future@acme.example>", "", "ed25519", "30d", "--faked-system-time", "20990101T000000")
	if _, err := Key(t.Context(), future); err == nil || !strings.Contains(err.Error(), "check the clock") {
		t.Errorf("a key of the future: %v", err)
	}
	h.Stop(t)
	for name, want := range map[string]string{
		locked:  "sign with the key " + locked + ": gpg: signing failed: Operation cancel",
		public:  "sign with the key " + public + ": gpg: signing failed: No secret key: import the private key, insert the card",
		old:     "sign with the key " + old + ": gpg: signing failed: ",
		revoked: "sign with the key " + revoked + ": gpg: signing failed: ",
	} {
		k, err := Key(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Sign(t.Context(), []byte("a"), time.Now()); err == nil || !strings.HasPrefix(err.Error(), want) ||
			name == locked && !strings.Contains(err.Error(), ": run the same again, and give the passphrase") {
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
		"0123456789ABCDEF0123456789ABCDEF01234567": "gpg has no public key 0123456789ABCDEF0123456789ABCDEF01234567: import it, or set",
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
