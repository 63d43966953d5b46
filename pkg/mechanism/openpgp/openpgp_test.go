package openpgp

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"slipway.build/pkg/mechanism/needs"
)

func TestSignaturesDependOnContentKeyAndTimeAlone(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
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
		if got, err := k.Public(); err != nil || !bytes.Equal(got, public) || !k.Created().Equal(now) || !k.Expires().IsZero() {
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
		clear, err := both.Clear(text, old)
		if err != nil {
			t.Fatal(err)
		}
		detached, err := both.Sign(text, old)
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
	if after.Expires().Year() != 2030 || before.Expires().Year() != 2021 {
		t.Errorf("expires at %s, then at %s", before.Expires(), after.Expires())
	}
	first, _, err1 := before.Sign([]byte("a text"), made.Add(time.Hour))
	second, _, err2 := after.Sign([]byte("a text"), made.Add(time.Hour))
	if err1 != nil || err2 != nil || !bytes.Equal(first, second) {
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
