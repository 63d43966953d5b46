package reapi

import (
	"testing"

	"slipway.build/pkg/mechanism/reapi/internal/wire"
)

// What a server sends is a result with valid digests, or an error.
func FuzzResult(f *testing.F) {
	r := Result{Files: []OutputFile{{"bin/a", DigestOf(nil), true}}, Stdout: []byte("text")}
	f.Add(r.marshal())
	f.Add([]byte{0x12, 0x02, 0x12, 0x00})
	f.Add(wire.AppendBytes(nil, 6, DigestOf([]byte("text")).marshal()))
	f.Fuzz(func(t *testing.T, message []byte) {
		r, stdout, err := parseResult(message)
		if err != nil {
			return
		}
		if stdout != (Digest{}) && !stdout.Valid() {
			t.Errorf("the digest of stdout is %v", stdout)
		}
		again, _, err := parseResult(r.marshal())
		if err != nil || len(again.Files) != len(r.Files) || string(again.Stdout) != string(r.Stdout) {
			t.Errorf("%+v is written and read as %+v, %v", r, again, err)
		}
		for _, file := range r.Files {
			if !file.Digest.Valid() {
				t.Errorf("a file has the digest %v", file.Digest)
			}
		}
	})
}
