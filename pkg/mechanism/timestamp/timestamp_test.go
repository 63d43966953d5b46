package timestamp_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	library "github.com/digitorus/timestamp"

	"slipway.build/pkg/mechanism/timestamp"
	"slipway.build/pkg/mechanism/timestamp/timestamptest"
)

func rootsOf(t *testing.T, file string) []*x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	roots, err := timestamp.ParseRoots(data)
	if err != nil {
		t.Fatal(err)
	}
	return roots
}

func TestTimestampIsOfOneContentByOneRoot(t *testing.T) {
	t.Parallel()
	server, root := timestamptest.Serve(t)
	_, other := timestamptest.Serve(t)
	content := []byte("signature")
	response, err := timestamp.Fetch(t.Context(), server, content)
	if err != nil {
		t.Fatal(err)
	}
	roots := rootsOf(t, root)
	at, err := timestamp.Verify(response, content, roots)
	if err != nil || time.Since(at).Abs() > time.Minute {
		t.Fatalf("%s, %v", at, err)
	}
	for what, tt := range map[string]struct {
		response, content []byte
		roots             []*x509.Certificate
		want              string
	}{
		"another content":    {response, []byte("Signature"), roots, "it is of another content"},
		"another root":       {response, content, rootsOf(t, other), "certificate signed by unknown authority"},
		"no root":            {response, content, nil, "no root certificate"},
		"nothing":            {nil, content, roots, ""},
		"more than it":       {append(bytes.Clone(response), 0), content, roots, ""},
		"too large":          {make([]byte, timestamp.MaxResponse+1), content, roots, "too large"},
		"nested without end": {bytes.Repeat([]byte{0x30, 0x80}, timestamp.MaxResponse/2), content, roots, ""},
	} {
		if _, err := timestamp.Verify(tt.response, tt.content, tt.roots); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", what, err, tt.want)
		}
	}
	for i := range response {
		changed := bytes.Clone(response)
		changed[i] ^= 1
		if got, err := timestamp.Verify(changed, content, roots); err == nil && !got.Equal(at) {
			t.Errorf("a change at %d makes it of %s", i, got)
		}
	}
}

// issue returns a root certificate, and another that it has issued, for the uses in an extension's value.
func issue(t *testing.T, critical bool, uses ...asn1.ObjectIdentifier) (root, leaf *x509.Certificate, key crypto.Signer) {
	t.Helper()
	make := func(c, by *x509.Certificate, of, with crypto.Signer) *x509.Certificate {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, c, by, of.Public(), with)
		if err != nil {
			t.Fatal(err)
		}
		made, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	var keys [2]crypto.Signer
	for i := range keys {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = k
	}
	value, err := asn1.Marshal(uses)
	if err != nil {
		t.Fatal(err)
	}
	top := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true}
	root = make(top, top, keys[0], keys[0])
	leaf = make(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"},
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: critical, Value: value}},
	}, root, keys[1], keys[0])
	return root, leaf, keys[1]
}

func TestCertificateMustBeForTimestampsAlone(t *testing.T) {
	t.Parallel()
	stamping, code := asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 8}, asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 3}
	content := []byte("signature")
	sum := sha256.Sum256(content)
	for _, tt := range []struct {
		critical bool
		uses     []asn1.ObjectIdentifier
		good     bool
	}{
		{true, []asn1.ObjectIdentifier{stamping}, true},
		{false, []asn1.ObjectIdentifier{stamping}, false},
		{true, []asn1.ObjectIdentifier{stamping, code}, false},
		{true, []asn1.ObjectIdentifier{stamping, {1, 2, 3}}, false},
		{true, []asn1.ObjectIdentifier{code}, false},
	} {
		root, leaf, key := issue(t, tt.critical, tt.uses...)
		stated := library.Timestamp{HashAlgorithm: crypto.SHA256, HashedMessage: sum[:], Time: time.Now(),
			Policy: asn1.ObjectIdentifier{1, 2, 3}, AddTSACertificate: true}
		response, err := stated.CreateResponseWithOpts(leaf, key, crypto.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		_, err = timestamp.Verify(response, content, []*x509.Certificate{root})
		if tt.good != (err == nil) || err != nil && !strings.Contains(err.Error(), "is not one for timestamps alone") {
			t.Errorf("%+v: %v", tt, err)
		}
		stated.Time = time.Now().Add(2 * time.Hour) // when the certificate has expired
		if response, err = stated.CreateResponseWithOpts(leaf, key, crypto.SHA256); err != nil {
			t.Fatal(err)
		}
		if _, err := timestamp.Verify(response, content, []*x509.Certificate{root}); err == nil {
			t.Errorf("%+v: a timestamp is accepted of a time at which its certificate had expired", tt)
		}
	}
}

func TestWrongAnswersAreRefused(t *testing.T) {
	t.Parallel()
	server, _ := timestamptest.Serve(t)
	old, err := timestamp.Fetch(t.Context(), server, []byte("signature"))
	if err != nil {
		t.Fatal(err)
	}
	for what, tt := range map[string]struct {
		status int
		answer []byte
		want   string
	}{
		"an error":                  {http.StatusInternalServerError, nil, "500 Internal Server Error"},
		"no timestamp":              {http.StatusOK, []byte("<html>"), "timestamp by http://"},
		"too much":                  {http.StatusOK, make([]byte, timestamp.MaxResponse+1), "too large"},
		"the answer to another one": {http.StatusOK, old, "it is the answer to another request"},
	} {
		wrong := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			w.Write(tt.answer)
		}))
		if _, err := timestamp.Fetch(t.Context(), wrong.URL, []byte("signature")); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", what, err, tt.want)
		}
		wrong.Close()
	}
}

func FuzzVerify(f *testing.F) {
	f.Add([]byte{0x30, 0x80})
	f.Fuzz(func(t *testing.T, response []byte) {
		if _, err := timestamp.Verify(response, nil, []*x509.Certificate{{}}); err == nil {
			t.Error("accepted")
		}
	})
}
