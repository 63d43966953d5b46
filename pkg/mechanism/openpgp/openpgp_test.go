package openpgp

import (
	"bytes"
	"testing"
	"time"
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
