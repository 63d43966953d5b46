//go:build integration

package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A server of a shared cache without TLS and credentials stands behind nginx, as docs/cache.md describes it: everybody may read, CI may
// write by a token, and on another port clients show certificates.
func TestSharedCacheBehindAProxy(t *testing.T) {
	containerLane.join(t) // as TestReleaseOfASharedCache does, which stores the same results in the same server, signed by another key
	need(t, "nginx", "nginx-light")
	front := startNginx(t, cacheServer(t))
	keys := t.TempDir()
	run(t, keys, []string{"COSIGN_PASSWORD="}, slipway(t), "keys", "new", "ci").ok(t)
	settings := []string{
		"SLIPWAY_CACHE=grpcs://" + front.address, "SLIPWAY_CACHE_TLS_CA=" + front.ca, "SLIPWAY_CACHE_KEYS=" + filepath.Join(keys, "ci.pub"),
	}
	store := append(settings[:len(settings):len(settings)],
		"SLIPWAY_CACHE_UPLOAD=true", "SLIPWAY_CACHE_SIGNING_KEY="+filepath.Join(keys, "ci.key"), "COSIGN_PASSWORD=")
	owner := clone(t)
	refused := owner.with(store...).make(t, "kube-log-runner").ok(t)
	if !strings.Contains(refused.stderr, "not stored in the cache: compile linux") {
		t.Errorf("without a token, storing says %v", refused)
	}
	owner.cleanOutput(t)
	stored := owner.with(append(store, "SLIPWAY_CACHE_TOKEN_FILE="+front.token)...).make(t, "kube-log-runner").ok(t)
	if strings.Contains(stored.stderr, "not stored") {
		t.Errorf("with the token, storing says %v", stored)
	}

	reader := clone(t).with(append(settings, "PATH="+withoutGo(t))...) // the targets of make come from the cache, too
	if taken := reader.make(t, "kube-log-runner").ok(t); !strings.Contains(taken.stdout, "1 from the cache") {
		t.Errorf("reading without a token says %v", taken)
	}
	if got, want := reader.sum(t, "_output/bin/kube-log-runner"), owner.sum(t, "_output/bin/kube-log-runner"); got != want {
		t.Errorf("the binary has the SHA-256 %s, want %s", got, want)
	}

	reader.with("SLIPWAY_CACHE_TLS_CA=").slipway(t, "cache", "status").fails(t, 1, "certificate signed by unknown authority")
	certified := reader.with("SLIPWAY_CACHE=grpcs://" + front.certified)
	certified.slipway(t, "cache", "status").fails(t, 1, "400 Bad Request") // nginx wants a certificate
	certified.with("SLIPWAY_CACHE_TLS_CERTIFICATE="+front.certificate, "SLIPWAY_CACHE_TLS_KEY="+front.key).slipway(t, "cache", "status").ok(t)
}

// cacheServer returns the address of a shared cache without TLS and credentials, which all tests use: a bazel-remote; in the soak test
// Debian's buildbox-casd, in a root of Debian packages that takes a minute to make.
func cacheServer(t *testing.T) string {
	t.Helper()
	address, err := cacheAddress()
	if err != nil {
		t.Fatal(err)
	}
	await(t, (&net.Dialer{}).DialContext, address, filepath.Join(sharedCache(), "log"))
	return address
}

func sharedCache() string { return filepath.Join(workspace, "shared-cache") }

var cacheAddress = sync.OnceValues(func() (string, error) {
	if soak {
		server, err := remoteServer()
		if err != nil {
			return "", err
		}
		return server.Address, nil
	}
	address, err := unusedAddress()
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(sharedCache(), 0o755); err != nil {
		return "", err
	}
	stop, err := runBazelRemote(sharedCache(), address)
	if err == nil {
		atEnd(stop)
	}
	return address, err
})

// An nginxFront is nginx in front of a server: one port for tokens, one for certificates.
type nginxFront struct {
	address, certified string // HOST:PORT
	token              string // file with what allows to write
	certificates
}

func startNginx(t *testing.T, server string) nginxFront {
	t.Helper()
	dir := t.TempDir()
	f := nginxFront{
		address: freeAddress(t), certified: freeAddress(t),
		token: filepath.Join(dir, "token"), certificates: certify(t, dir),
	}
	put(t, []byte("sesame\n"), f.token)
	config := os.Expand(`
  client_max_body_size 0; grpc_read_timeout 60s;
  ssl_certificate $certificate; ssl_certificate_key $key;
  map $http_authorization $may_write { default 0; "Bearer sesame" 1; }
  server {
    listen $address ssl http2;
    location / { grpc_pass grpc://$server; }
    location ~ /(UpdateActionResult|BatchUpdateBlobs|Write)$ {
      if ($may_write = 0) { return 403; }
      grpc_pass grpc://$server;
    }
  }
  server {
    listen $certified ssl http2;
    ssl_client_certificate $ca; ssl_verify_client on;
    location / { grpc_pass grpc://$server; }
  }
`, func(name string) string {
		known := map[string]string{
			"certificate": f.certificate, "key": f.key, "ca": f.ca, "address": f.address, "certified": f.certified, "server": server,
		}
		if value, ok := known[name]; ok {
			return value
		}
		return "$" + name
	})
	log := runNginx(t, config)
	await(t, insecure.DialContext, f.address, log)
	return f
}

// runNginx runs nginx with settings for HTTP until the test ends, and returns the file of its errors.
func runNginx(t *testing.T, settings string) (log string) {
	t.Helper()
	dir := t.TempDir()
	log = filepath.Join(dir, "error.log")
	user := "" // root may read what tests make; others have no choice
	if os.Geteuid() == 0 {
		user = "user root; "
	}
	config := strings.ReplaceAll(user+`daemon off; pid $dir/pid; error_log $dir/error.log;
events {}
http {
  access_log off; client_body_temp_path $dir/body; proxy_temp_path $dir/proxy; fastcgi_temp_path $dir/f; uwsgi_temp_path $dir/u; scgi_temp_path $dir/s;
`, "$dir", dir)
	put(t, []byte(config+settings+"}\n"), filepath.Join(dir, "nginx.conf"))
	cmd := exec.Command("nginx", "-c", filepath.Join(dir, "nginx.conf"), "-e", log)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // it was told to end
	})
	return log
}

// insecure connects to a server of a test, whose certificate nobody has to know.
var insecure = tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}

// await waits until a server that writes a log takes connections, such as those of [insecure].
func await(t *testing.T, dial func(ctx context.Context, network, address string) (net.Conn, error), address, log string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		conn, err := dial(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody listens at %s: %v\n%s", address, err, readFile(log))
		}
	}
}

// certificates are files: an authority, and the certificate, with its key, of a server and of a client.
type certificates struct{ ca, certificate, key string }

// certify makes an authority, and a certificate by it for servers on loopback and for clients.
func certify(t *testing.T, dir string) certificates {
	t.Helper()
	f := certificates{ca: filepath.Join(dir, "ca.pem"), certificate: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	sign := func(file string, c, by *x509.Certificate, subject, signer *ecdsa.PrivateKey) {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, c, by, &subject.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		put(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), file)
	}
	authority, own := key(), key()
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	sign(f.ca, ca, ca, authority, authority)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	sign(f.certificate, leaf, ca, own, authority)
	der, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	put(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), f.key)
	return f
}

// freeAddress returns an address of loopback at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := unusedAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func unusedAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
