package verify

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// An identity is a server's certificate, which is its own authority, and the private key, both in PEM.
type identity struct{ certificate, key []byte }

// selfSigned makes an identity, valid for an hour, for a server with a name or an IP address.
func selfSigned(host string) identity {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
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
	certificate := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	return identity{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(key))}),
	}
}

// A request for a certificate is signed once it is approved, and neither before nor if it is denied.
func certificates(e *env) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: e.namespace}}
	request := must(x509.CreateCertificateRequest(rand.Reader, template, key))
	text := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
	prefix := "certificatesigningrequest/" + e.namespace
	approved, denied, pending := prefix+"-approved", prefix+"-denied", prefix+"-pending"
	e.cleanup(func() { e.kubectl("delete", approved, denied, pending, "--ignore-not-found") })
	for _, name := range []string{"approved", "denied", "pending"} {
		e.apply(`
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: $namespace-$name}
spec: {request: $request, signerName: kubernetes.io/kube-apiserver-client, usages: [client auth], expirationSeconds: 3600}
`, "name", name, "request", text)
	}
	e.kubectl("certificate", "deny", denied)
	during("before it is approved", func() { e.is(approved, "{.status.certificate}", "") })
	e.kubectl("certificate", "approve", approved)
	e.wait("jsonpath={.status.certificate}", approved)
	signed := must(base64.StdEncoding.DecodeString(e.get(approved, "{.status.certificate}")))
	block, _ := pem.Decode(signed)
	if block == nil {
		fail("the certificate is not PEM: %q", signed)
	}
	certificate := must(x509.ParseCertificate(block.Bytes))
	if got := certificate.Subject.CommonName; got != e.namespace || !key.PublicKey.Equal(certificate.PublicKey) {
		fail("the certificate is for %q and another key", got)
	}
	e.is(denied, "{.status.certificate}", "")
	during("without approval", func() { e.is(pending, "{.status.certificate}", "") })
}
