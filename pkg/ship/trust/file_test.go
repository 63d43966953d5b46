package trust

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/signature"
)

// quoted returns a new public key as a string of JSON.
func quoted(t *testing.T) string {
	t.Helper()
	key, err := signature.New()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(string(key.Public().PEM()))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What a file says and slipway does not understand may be a restriction, so it is refused.
func TestFilesAreReadStrictly(t *testing.T) {
	t.Parallel()
	a, b := quoted(t), quoted(t)
	for _, tt := range []struct{ text, want string }{
		{`{"version": 1, "threshold": 1, "keys": [{"pem": A}]}`, ""},
		{`{"version": 7, "threshold": 2, "keys": [{"pem": A, "from": "2026-01-01T00:00:00Z", "until": "2027-01-01T00:00:00Z"},
			{"pem": B, "revoked": {"since": "2026-06-01T00:00:00Z", "reason": "stolen"}}], "expires": "2027-01-01T00:00:00Z"}`, ""},
		{``, "not a file of trusted keys"},
		{`{"version": 1, "threshold": 1, "keys": [{"pem": A}]} {}`, "there is more after it"},
		{`{"version": 0, "threshold": 1, "keys": [{"pem": A}]}`, "its version is 0"},
		{`{"version": 1, "keys": [{"pem": A}]}`, "0 keys must have signed"},
		{`{"version": 1, "threshold": 2, "keys": [{"pem": A}]}`, "2 keys must have signed, but there are 1"},
		{`{"version": 1, "threshold": 2, "keys": [{"pem": A}, {"pem": A}]}`, "is named twice"},
		{`{"version": 1, "threshold": 1, "keys": [{"pem": A, "til": "2027-01-01T00:00:00Z"}]}`, "unknown field"},
		{`{"version": 1, "threshold": 1, "keys": [{"pem": A, "until": "2027-01-01"}]}`, "parsing time"},
		{`{"version": 1, "threshold": 1, "keys": [{"pem": A, "from": "2027-01-01T00:00:00Z", "until": "2027-01-01T00:00:00Z"}]}`,
			"is valid at no time"},
		{`{"version": 1, "threshold": 1, "keys": [{"pem": A, "revoked": {}}]}`, "is revoked without a reason"},
		{`{"version": 1, "threshold": 1, "keys": [{"pem": "x"}]}`, "key 1: it is not a key in PEM's form"},
		{`{"version": 1, "threshold": 1, "keys": [{"pem": A}], "timestampRoots": ["x"]}`, "timestamp root 1: it holds no certificate"},
	} {
		f, err := Parse([]byte(strings.NewReplacer(`: A`, ": "+a, `: B`, ": "+b).Replace(tt.text)))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.text, err, tt.want)
		}
		if err != nil {
			continue
		}
		text, err := f.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(text)
		if err != nil || again.Version != f.Version || again.Threshold != f.Threshold || len(again.Keys) != len(f.Keys) {
			t.Errorf("%s is written as %s: %v", tt.text, text, err)
		}
	}
}

func TestFileExpires(t *testing.T) {
	t.Parallel()
	f, err := Parse([]byte(`{"version": 1, "threshold": 1, "keys": [{"pem": ` + quoted(t) + `}], "expires": "2027-01-01T00:00:00Z"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Policy(f.Expires.Add(-time.Second)); err != nil {
		t.Error(err)
	}
	if _, err := f.Policy(*f.Expires); err == nil || !strings.Contains(err.Error(), "version 1 of it has expired") {
		t.Errorf("error %v", err)
	}
}
