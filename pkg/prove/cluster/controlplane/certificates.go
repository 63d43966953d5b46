package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
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

// user makes a certificate for a user and its groups, and a kubeconfig with it.
func (a *authority) user(kubeconfig, cluster, server, name, user string, groups ...string) error {
	if err := a.client(name, user, groups...); err != nil {
		return err
	}
	ca, noCA := os.ReadFile(a.file("ca.crt"))
	cert, noCert := os.ReadFile(a.file(name + ".crt"))
	key, noKey := os.ReadFile(a.file(name + ".key"))
	type object = map[string]any
	config, err := json.MarshalIndent(object{ // JSON is YAML
		"apiVersion": "v1", "kind": "Config", "current-context": cluster,
		"clusters": []object{{"name": cluster, "cluster": object{"server": server, "certificate-authority-data": ca}}},
		"users":    []object{{"name": name, "user": object{"client-certificate-data": cert, "client-key-data": key}}},
		"contexts": []object{{"name": cluster, "context": object{"cluster": cluster, "user": name}}},
	}, "", "  ")
	if err := errors.Join(noCA, noCert, noKey, err); err != nil {
		return err
	}
	return atomicfile.WriteFile(kubeconfig, config, 0o600)
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
	keyDER, err := x509.MarshalECPrivateKey(key) // the key that signs service accounts' tokens must not be PKCS #8
	if err != nil {
		return err
	}
	return errors.Join(a.write(name+".key", "EC PRIVATE KEY", keyDER), a.write(name+".crt", "CERTIFICATE", der))
}

func (a *authority) write(name, kind string, der []byte) error {
	return atomicfile.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }
