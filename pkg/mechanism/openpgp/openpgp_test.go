package openpgp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"slipway.build/pkg/mechanism/needs"
)

var now = time.Unix(1_700_000_000, 0)

func newKey(t *testing.T, lifetime time.Duration) *Key {
	t.Helper()
	private, _, err := New("Acme <k8s@acme.example>", now, lifetime)
	if err != nil {
		t.Fatal(err)
	}
	k, err := ReadPrivate(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSignaturesDependOnContentKeyAndTimeAlone(t *testing.T) {
	t.Parallel()
	var both Keys
	for range 2 {
		private, public, err := New("Acme <k8s@acme.example>", now, 0)
		if err != nil {
			t.Fatal(err)
		}
		k, err := ReadPrivate(private, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := k.Public(); err != nil || !bytes.Equal(got, public) || !k.Created().Equal(now) || !k.Expires(now).IsZero() {
			t.Errorf("%s %v, %v", got, k.Created(), err)
		}
		if _, err := ReadPrivate(public, nil); err == nil {
			t.Error("a public key is taken for a private one")
		}
		both = append(both, k)
	}
	old, text := now.Add(-time.Hour), []byte("a text\n- with a dash\n")
	var signed [2][]byte
	for i := range signed {
		clear, err := both.Clear(t.Context(), text, old, nil)
		if err != nil {
			t.Fatal(err)
		}
		detached, err := both.Sign(t.Context(), text, old, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range both { // each by itself
			if got, err := (Keys{one}).Open(clear); err != nil || !bytes.Equal(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")), text) {
				t.Errorf("%q, %v", got, err)
			}
			if err := (Keys{one}).Check(text, detached); err != nil {
				t.Error(err)
			}
		}
		if err := both.Check([]byte("another"), detached); err == nil {
			t.Error("a signature of another text counts")
		}
		signed[i] = append(clear, detached...)
	}
	if !bytes.Equal(signed[0], signed[1]) {
		t.Error("a second run signed otherwise")
	}
}

// A key that gpg has extended, and that has another user since, signs as before, and its public form is always the same.
func TestChangedKeysSignAsBefore(t *testing.T) {
	t.Parallel()
	needs.Program(t, "gpg")
	made := time.Date(2021, 1, 15, 0, 0, 0, 0, time.UTC)
	private, _, err := New("Acme <k8s@acme.example>", made, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	before, err := ReadPrivate(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	home, file := t.TempDir(), filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, private, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(program string, args ...string) []byte {
		t.Helper()
		cmd := exec.Command(program, append([]string{"--homedir", home}, args...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", cmd, err)
		}
		return out
	}
	t.Cleanup(func() { run("gpgconf", "--kill", "gpg-agent") })
	gpg := func(args ...string) []byte {
		t.Helper()
		always := []string{"--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""}
		always = append(always, "--faked-system-time", "20210601T000000!")
		return run("gpg", append(always, args...)...)
	}
	gpg("--import", file)
	gpg("--quick-set-expire", before.Fingerprint(), "20300101T000000")
	gpg("--quick-add-uid", before.Fingerprint(), "Acme, Inc. <packages@acme.example>")
	after, err := ReadPrivate(gpg("--export-secret-keys"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2021, 6, 1, 0, 0, 0, 0, time.UTC); !before.Changed().Equal(made) || !after.Changed().Equal(want) {
		t.Errorf("changed at %s, then at %s", before.Changed(), after.Changed())
	}
	if after.Expires(made).Year() != 2030 || before.Expires(made).Year() != 2021 {
		t.Errorf("expires at %s, then at %s", before.Expires(made), after.Expires(made))
	}
	first, err1 := before.packets(t.Context(), []byte("a text"), false, made.Add(time.Hour)) // unchecked: it has expired since
	second, err2 := after.Sign(t.Context(), []byte("a text"), made.Add(time.Hour))
	if err1 != nil || err2 != nil || !bytes.Equal(first, second.Packet) {
		t.Errorf("the extended key signs otherwise: %v, %v", err1, err2)
	}
	public, err := after.Public()
	for range 10 {
		if again, err := after.Public(); err != nil || !bytes.Equal(public, again) {
			t.Fatalf("the public key has another form, %v", err)
		}
	}
	if exported, got := gpg("--export"), dearmored(t, public); err != nil || len(exported) != len(got) { // in another order
		t.Errorf("gpg exports a public key of %d bytes, and not of %d, %v", len(exported), len(got), err)
	}
}

func dearmored(t *testing.T, text []byte) []byte {
	t.Helper()
	block, err := armor.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(block.Body)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTextsAreSignedAsTheLibraryDoes(t *testing.T) {
	t.Parallel()
	k := newKey(t, 0)
	for _, text := range []string{"", "\n", "a", "a\n", "a\n\n", "a\n\nb", "a \n\t\n\tb \t\n", "-a\n--\n- b\n"} {
		got, err := Keys{k}.Clear(t.Context(), []byte(text), now, nil)
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		w, err := clearsign.Encode(&want, k.entity.PrivateKey, config(now))
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		if want.WriteByte('\n'); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%q: got\n%s\nwant\n%s", text, got, want.Bytes())
		}
	}
}

// elsewhere returns a key that another one signs for, later with each signature, and how often it was asked.
func elsewhere(t *testing.T, k *Key) (_ *Key, asked *int) {
	t.Helper()
	public, err := k.Public()
	if err != nil {
		t.Fatal(err)
	}
	asked = new(int)
	e, err := Elsewhere(public, func(ctx context.Context, content []byte, text bool) ([]byte, error) {
		*asked++
		return k.packets(ctx, content, text, now.Add(time.Duration(*asked)*time.Second))
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, asked
}

func TestGoodSignaturesStay(t *testing.T) {
	t.Parallel()
	k, other := newKey(t, 0), newKey(t, 0)
	first, asked := elsewhere(t, k)
	text := []byte("a text\n")
	clear, err := Keys{first}.Clear(t.Context(), text, now, nil)
	if err != nil {
		t.Fatal(err)
	}
	detached, err := Keys{first}.Sign(t.Context(), text, now, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Keys{first}).Clear(t.Context(), text, now, nil); err != nil || *asked != 2 {
		t.Errorf("asked %d times for two signatures, %v", *asked, err)
	}
	again, asked := elsewhere(t, k) // as another process has it
	for _, keys := range []Keys{{again}, {again, other}, {other, again}} {
		got, err := keys.Clear(t.Context(), text, now, clear)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := keys.Sign(t.Context(), text, now, detached)
		if err != nil {
			t.Fatal(err)
		}
		if same := bytes.Equal(got, clear) && bytes.Equal(sum, detached); same != (len(keys) == 1) || *asked != 0 {
			t.Errorf("%d keys: the same: %v, asked %d times", len(keys), same, *asked)
		}
		for _, one := range keys {
			if _, err := (Keys{one}).Open(got); err != nil {
				t.Error(err)
			}
		}
	}
	if got, err := (Keys{again}).Clear(t.Context(), []byte("another\n"), now, clear); err != nil || bytes.Equal(got, clear) || *asked != 1 {
		t.Errorf("another text: asked %d times, %v", *asked, err)
	}
	if got, err := (Keys{again}).Clear(t.Context(), text, now, detached); err != nil || bytes.Equal(got, clear) || *asked != 2 {
		t.Errorf("not a signed text: asked %d times, %v", *asked, err)
	}
}

func TestWhatIsNoSignatureIsRefused(t *testing.T) {
	t.Parallel()
	k, other := newKey(t, 0), newKey(t, 0)
	public, err := k.Public()
	if err != nil {
		t.Fatal(err)
	}
	by := func(k *Key, content string, text bool) []byte {
		s, err := k.packets(t.Context(), []byte(content), text, now)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	sha1 := *k.entity.PrivateKey
	weak := &packet.Signature{Version: 4, SigType: packet.SigTypeBinary, PubKeyAlgo: sha1.PubKeyAlgo, Hash: 3, CreationTime: now,
		IssuerKeyId: &sha1.KeyId}
	h, err := weak.PrepareSign(config(now))
	var weakly bytes.Buffer
	if err == nil {
		h.Write([]byte("a"))
		err = errors.Join(weak.Sign(h, &sha1, config(now)), weak.Serialize(&weakly))
	}
	if err != nil {
		t.Fatal(err)
	}
	for what, answer := range map[string][]byte{
		"nothing": nil, "another key's": by(other, "a", false), "another content's": by(k, "b", false), "a text's": by(k, "a", true),
		"half of one": by(k, "a", false)[:100], "of SHA-1": weakly.Bytes(),
	} {
		e, err := Elsewhere(public, func(context.Context, []byte, bool) ([]byte, error) { return answer, nil })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Sign(t.Context(), []byte("a"), now); err == nil {
			t.Errorf("%s is taken for a signature", what)
		}
	}
	e, err := Elsewhere(public, func(context.Context, []byte, bool) ([]byte, error) {
		return append(by(other, "a", false), by(k, "a", false)...), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := e.Sign(t.Context(), []byte("a"), now); err != nil || !bytes.Equal(s.Packet, by(k, "a", false)) || !s.IsRSA {
		t.Errorf("the key's of two signatures: %v, %v", s, err)
	}
}

func TestIndexMayBeDatedToCome(t *testing.T) {
	t.Parallel()
	keys, text, later := Keys{newKey(t, 0)}, []byte("a\n"), time.Now().Add(time.Hour)
	clear, err := keys.Clear(t.Context(), text, later, nil)
	if err != nil {
		t.Fatal(err)
	}
	detached, err := keys.Sign(t.Context(), text, later, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Open(clear); err != nil {
		t.Error(err)
	}
	if err := keys.Check(text, detached); err != nil {
		t.Error(err)
	}
}
