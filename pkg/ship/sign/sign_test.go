package sign_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/ship/sign"
	"slipway.build/pkg/ship/trust"
)

// The bundles in testdata/cosign are cosign 3.1.1's, by sign-blob and attest-blob with a key of its own and an empty signing
// configuration.
func TestWhatCosignSignsIsAccepted(t *testing.T) {
	t.Parallel()
	file := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join("testdata", "cosign", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	key, err := signature.ReadPublic(t.Context(), filepath.Join("testdata", "cosign", "cosign.pub"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := signature.New()
	if err != nil {
		t.Fatal(err)
	}
	otherKey := other.Public()
	const message, statement = "release.json", "statement.json"
	indented := func(data []byte) []byte {
		var b bytes.Buffer
		if err := json.Indent(&b, data, "", "  "); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	logged := func(data []byte) []byte { // as with a transparency log, and as cosign 2 wrote it
		text := strings.Replace(string(data), `"publicKey"`, `"tlogEntries":[{"logIndex":"1"}],"timestampVerificationData":{},"publicKey"`, 1)
		return []byte(strings.Replace(text, `"sig":`, `"keyid":"","sig":`, 1))
	}
	as := func(data []byte) []byte { return data }
	for how, tt := range map[string]struct {
		write     func([]byte) []byte
		key       *signature.PublicKey
		message   []byte
		statement []byte
		good      bool
	}{
		"as cosign writes them":   {as, &key, file(message), file(statement), true},
		"indented":                {indented, &key, file(message), file(statement), true},
		"in a log":                {logged, &key, file(message), file(statement), true},
		"without a key":           {as, nil, file(message), file(statement), true},
		"another key":             {as, &otherKey, file(message), file(statement), false},
		"another content":         {as, &key, []byte("{}"), []byte("{}"), false},
		"another content, no key": {as, nil, []byte("{}"), []byte("{}"), false},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			read := func(name string) ([]byte, error) {
				if strings.Contains(name, "/") || !strings.HasSuffix(name, ".sigstore.json") {
					return nil, fs.ErrNotExist
				}
				return tt.write(file(name)), nil
			}
			statements := []sign.Statement{{File: statement + ".sigstore.json", Content: tt.statement}}
			check := &sign.Check{Signed: map[string][]byte{message: tt.message}, Statements: statements, Read: read}
			if tt.key != nil {
				check.Policy = trust.Of(*tt.key)
			}
			found, err := check.Run()
			if err != nil || len(found.Files) != 2 {
				t.Fatalf("%+v, %v", found, err)
			}
			for _, f := range found.Files {
				if good := f.Problem == "" && !f.Missing; good != tt.good {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// With a key on P-384, cosign signs another digest than it verifies.
func TestWhatCosignSignsWithP384IsAccepted(t *testing.T) {
	t.Parallel()
	key, err := signature.ReadPublic(t.Context(), filepath.Join("testdata", "cosign", "p384.pub"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join("testdata", "cosign", "p384.sigstore.json"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := signature.Unmarshal(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Verify(key, []byte("sums\n")); err != nil {
		t.Error(err)
	}
	if err := b.Verify(key, []byte("sumS\n")); err == nil {
		t.Error("another content is accepted")
	}
}
