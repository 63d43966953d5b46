// Package debiantest has small archives of Debian packages for tests, signed by a key of their own.
package debiantest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/ulikunitz/xz"
)

// NewKey makes a key.
func NewKey(t *testing.T) *openpgp.Entity {
	t.Helper()
	e, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// signer is the key of all archives.
var signer = sync.OnceValues(newKey)

func newKey() (*openpgp.Entity, error) {
	return openpgp.NewEntity("test", "", "test@example.com", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
}

// Keyring returns a file of the key of all archives.
func Keyring(t *testing.T) string {
	t.Helper()
	e, err := signer()
	if err != nil {
		t.Fatal(err)
	}
	return KeyringOf(t, e)
}

// KeyringOf returns a file of a key.
func KeyringOf(t *testing.T, e *openpgp.Entity) string {
	t.Helper()
	var b bytes.Buffer
	if err := e.Serialize(&b); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "keyring.gpg")
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// Sign signs a text as an InRelease file.
func Sign(t *testing.T, text string) string {
	t.Helper()
	e, err := signer()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := clearsign.Encode(&b, e.PrivateKey, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Suite returns the files of a suite that has an index of packages for an architecture. Edit changes what its InRelease file says, before
// it is signed; it may be nil.
func Suite(t *testing.T, name, arch, index string, edit func(release string) string) map[string]string {
	t.Helper()
	return suite(t, name, "main/binary-"+arch+"/Packages.xz", index, edit)
}

// SourceSuite returns the files of a suite that has an index of sources.
func SourceSuite(t *testing.T, name, index string) map[string]string {
	t.Helper()
	return suite(t, name, "main/source/Sources.xz", index, nil)
}

func suite(t *testing.T, name, file, index string, edit func(release string) string) map[string]string {
	t.Helper()
	var packed bytes.Buffer
	w, err := xz.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(index)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(packed.Bytes())
	release := fmt.Sprintf("Suite: stable\nCodename: %s\nMD5Sum:\n 00 1 %s\nSHA256:\n %x %d %s\n", name, file, sum, packed.Len(), file)
	if edit != nil {
		release = edit(release)
	}
	at := "dists/" + name + "/" + file
	if strings.Contains(release, "Acquire-By-Hash: yes") {
		at = fmt.Sprintf("%s/by-hash/SHA256/%x", path.Dir(at), sum)
	}
	return map[string]string{at: packed.String(), "dists/" + name + "/InRelease": Sign(t, release)}
}

// Serve serves files by path until the test ends, and counts what it is asked.
func Serve(t *testing.T, files map[string]string) (url string, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		text, ok := files[strings.TrimPrefix(r.URL.Path, "/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}
