// Package timestamptest has a timestamp server for tests: openssl's.
package timestamptest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"slipway.build/pkg/mechanism/needs"
)

const configuration = `
[tsa]
serial = serial
signer_cert = tsa.crt
signer_key = tsa.key
certs = tsa.crt
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
accuracy = secs:1
ess_cert_id_alg = sha256
`

// script makes the server's certificate, issued by a root certificate.
const script = `set -e
	new() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -batch "$@" 2>/dev/null; }
	new -x509 -keyout root.key -out root.crt -subj /CN=root -days 30
	new -keyout tsa.key -out tsa.csr -subj /CN=server
	echo extendedKeyUsage=critical,timeStamping >extensions
	openssl x509 -req -in tsa.csr -CA root.crt -CAkey root.key -out tsa.crt -days 30 -extfile extensions 2>/dev/null`

// Serve starts a server, and returns its address and the file with its root certificate.
func Serve(t *testing.T) (address, root string) {
	t.Helper()
	openssl, dir := needs.Program(t, "openssl"), t.TempDir()
	c := exec.Command("sh", "-c", script)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("certificates of a timestamp server: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "configuration"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	var one sync.Mutex // openssl counts in a file
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		query, err := io.ReadAll(r.Body)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "query"), query, 0o600)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		c := exec.CommandContext(r.Context(), openssl, "ts", "-reply", "-config", "configuration", "-section", "tsa", "-queryfile", "query")
		c.Dir = dir
		reply, err := c.Output()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/timestamp-reply")
		w.Write(reply)
	}))
	t.Cleanup(server.Close)
	return server.URL, filepath.Join(dir, "root.crt")
}
