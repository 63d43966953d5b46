package reapi

import (
	"testing"

	remote "github.com/bazelbuild/remote-apis/build/bazel/remote/execution/v2"
	"google.golang.org/protobuf/proto"
)

// What a server sends is a result with valid digests, or an error.
func FuzzResult(f *testing.F) {
	r := Result{Files: []OutputFile{{"bin/a", DigestOf(nil), true}}, Stdout: []byte("text")}
	f.Add(encode(r.message()))
	f.Add([]byte{0x12, 0x02, 0x12, 0x00})
	f.Fuzz(func(t *testing.T, data []byte) {
		message := new(remote.ActionResult)
		if proto.Unmarshal(data, message) != nil {
			return
		}
		r, err := parseResult(message)
		if err != nil {
			return
		}
		again, err := parseResult(r.message())
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

// Servers keep results under the digests of actions, so the digests stay.
func TestActionsKeepTheirDigests(t *testing.T) {
	d, _ := Action("slipway", "action", "abc")
	if want := "2dd098bdeee65f0e62c7051900d3f411d112b313b2b02795179ac130d3675323/138"; d.String() != want {
		t.Errorf("the digest is %v, want %s", d, want)
	}
}
