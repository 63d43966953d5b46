package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"slipway.build/pkg/mechanism/atomicfile"
)

// lifetime is that of certificates. It is long for a cluster that does not outlive the machine's next boot.
const lifetime = 365 * 24 * time.Hour

// An authority signs certificates. Its own is ca.crt, with the key ca.key.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
}

// newAuthority makes an authority in a folder that only its owner can read.
func newAuthority(dir string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	a := &authority{dir: dir}
	self := &x509.Certificate{
		Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	return a, a.sign("ca", self)
}

// server makes a certificate, NAME.crt and NAME.key, for a program that listens on loopback and connects to its peers.
func (a *authority) server(name string, dns ...string) error {
	return a.sign(name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    append(dns, "localhost"),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}, // the latter is the Service kubernetes
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// client makes a certificate for a user and its groups.
func (a *authority) client(name, user string, groups ...string) error {
	return a.sign(name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// sign makes a key and its certificate. The first one is the authority's own.
func (a *authority) sign(name string, c *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return err
	}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(lifetime)
	if a.cert == nil {
		a.cert, a.key = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	if c == a.cert {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			return err
		}
	}
	if err := writeKey(filepath.Join(a.dir, name+".key"), key); err != nil {
		return err
	}
	return writePEM(filepath.Join(a.dir, name+".crt"), "CERTIFICATE", der)
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key) // the key that signs service accounts' tokens must not be PKCS #8
	if err != nil {
		return err
	}
	return writePEM(file, "EC PRIVATE KEY", der)
}

func writePEM(file, kind string, der []byte) error {
	return atomicfile.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
