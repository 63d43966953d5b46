package verify

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// An identity is a server's certificate, which is its own authority, and the private key, both in PEM.
type identity struct{ certificate, key []byte }

// selfSigned makes an identity, valid for an hour, for a server with a name or an IP address.
func selfSigned(host string) (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return identity{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return identity{}, err
	}
	return identity{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

// A request for a certificate is signed once it is approved, and not if it is denied.
func certificates(ctx context.Context, e *env) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: e.namespace}}, key)
	if err != nil {
		return err
	}
	text := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
	approved, denied := "certificatesigningrequest/"+e.namespace+"-approved", "certificatesigningrequest/"+e.namespace+"-denied"
	e.cleanup(func(ctx context.Context) error {
		_, err := e.kubectl(ctx, "delete", approved, denied, "--ignore-not-found")
		return err
	})
	for _, name := range []string{"approved", "denied"} {
		err := e.apply(ctx, `
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: $namespace-$name}
spec: {request: $request, signerName: kubernetes.io/kube-apiserver-client, usages: [client auth], expirationSeconds: 3600}
`, "name", name, "request", text)
		if err != nil {
			return err
		}
	}
	if _, err := e.kubectl(ctx, "certificate", "deny", denied); err != nil {
		return err
	}
	if err := e.is(ctx, approved, "{.status.certificate}", ""); err != nil {
		return fmt.Errorf("before it is approved: %w", err)
	}
	if _, err := e.kubectl(ctx, "certificate", "approve", approved); err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.certificate}", approved); err != nil {
		return err
	}
	encoded, err := e.get(ctx, approved, "{.status.certificate}")
	if err != nil {
		return err
	}
	signed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return err
	}
	block, _ := pem.Decode(signed)
	if block == nil {
		return fmt.Errorf("the certificate is not PEM: %q", signed)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	if got := certificate.Subject.CommonName; got != e.namespace || !key.PublicKey.Equal(certificate.PublicKey) {
		return fmt.Errorf("the certificate is for %q and another key", got)
	}
	return e.is(ctx, denied, "{.status.certificate}", "")
}
