// Package timestamp asks servers for timestamps of RFC 3161, and checks them: a server states that it has seen some content at a time.
//
// What certificates must be is said here as sigstore's timestamp-authority has it, whose module needs those of three clouds.
//
// What must never be in here: what the content is, and whose servers count.
package timestamp

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"time"

	"github.com/digitorus/pkcs7"
	library "github.com/digitorus/timestamp"
)

// MaxResponse is the size, in bytes, of the largest response that is read. Those of public servers have 2 to 8 KiB.
const MaxResponse = 64 << 10

// patience is how long a server may take to answer.
const patience = 30 * time.Second

// skew is how far a server's clock may be from the clock of this machine.
const skew = 5 * time.Minute

// Fetch asks the server at an address for a timestamp of content, and returns its response. The response must be of this content and
// time, and signed by a certificate that it holds. Whether anybody trusts the certificate is for Verify to say.
func Fetch(ctx context.Context, server string, content []byte) ([]byte, error) {
	fail := func(err error) ([]byte, error) { return nil, fmt.Errorf("timestamp by %s: %w", server, err) }
	nonce, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 128))
	if err != nil {
		return nil, err
	}
	query, err := library.CreateRequest(bytes.NewReader(content), &library.RequestOptions{
		Hash: crypto.SHA256, Certificates: true, Nonce: nonce,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server, bytes.NewReader(query))
	if err != nil {
		return fail(err)
	}
	request.Header.Set("Content-Type", "application/timestamp-query")
	request.Header.Set("User-Agent", "slipway")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fail(err)
	}
	defer answer.Body.Close()
	response, err := io.ReadAll(io.LimitReader(answer.Body, MaxResponse+1))
	switch {
	case err != nil:
		return fail(err)
	case answer.StatusCode/100 != 2: // some say 201
		return fail(errors.New(answer.Status))
	case len(response) > MaxResponse:
		return fail(errTooLarge)
	}
	stated, err := library.ParseResponse(response) // which checks the signature
	if err != nil {
		return fail(err)
	}
	switch {
	case len(stated.Certificates) == 0:
		return fail(errors.New("it holds no certificate to check it by"))
	case stated.Nonce == nil || stated.Nonce.Cmp(nonce) != 0:
		return fail(errors.New("it is the answer to another request"))
	}
	if err := isOf(stated, content); err != nil {
		return fail(err)
	}
	if now := time.Now(); stated.Time.Sub(now).Abs() > skew {
		return fail(fmt.Errorf("its time is %s, and this machine's %s", stated.Time.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339)))
	}
	return response, nil
}

var errTooLarge = errors.New("it is too large for a timestamp")

// Verify returns when the content existed, at the latest, by a response whose certificate one of the roots has issued and which was valid
// at that time.
func Verify(response, content []byte, roots []*x509.Certificate) (time.Time, error) {
	if len(response) > MaxResponse {
		return time.Time{}, errTooLarge
	}
	if len(roots) == 0 {
		return time.Time{}, errors.New("no root certificate of a timestamp server is trusted")
	}
	stated, err := library.ParseResponse(response)
	if err != nil {
		return time.Time{}, err
	}
	token, err := pkcs7.Parse(stated.RawToken)
	if err != nil {
		return time.Time{}, err
	}
	if err := token.Verify(); err != nil {
		return time.Time{}, err
	}
	signer := token.GetOnlySigner()
	if signer == nil {
		return time.Time{}, errors.New("it is not signed by one certificate that it holds")
	}
	if err := isServers(signer); err != nil {
		return time.Time{}, err
	}
	options := x509.VerifyOptions{
		Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: stated.Time,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageTimeStamping},
	}
	for _, c := range roots {
		options.Roots.AddCert(c)
	}
	for _, c := range token.Certificates {
		options.Intermediates.AddCert(c)
	}
	if _, err := signer.Verify(options); err != nil {
		return time.Time{}, err
	}
	return stated.Time, isOf(stated, content)
}

// isOf returns an error unless a timestamp is of some content.
func isOf(stated *library.Timestamp, content []byte) error {
	switch stated.HashAlgorithm {
	case crypto.SHA256, crypto.SHA384, crypto.SHA512:
	default:
		return fmt.Errorf("it names the content by %v, want SHA-256 or a longer digest", stated.HashAlgorithm)
	}
	sum := stated.HashAlgorithm.New()
	sum.Write(content)
	if !bytes.Equal(stated.HashedMessage, sum.Sum(nil)) {
		return errors.New("it is of another content")
	}
	return nil
}

// extendedKeyUsage is the extension of a certificate that says what it is for (RFC 5280).
var extendedKeyUsage = asn1.ObjectIdentifier{2, 5, 29, 37}

// isServers returns an error unless a certificate is for timestamps and nothing else, and says so in a way that nobody may ignore (RFC
// 3161, 2.3).
func isServers(c *x509.Certificate) error {
	if !slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageTimeStamping}) || len(c.UnknownExtKeyUsage) > 0 ||
		!slices.ContainsFunc(c.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(extendedKeyUsage) && e.Critical }) {
		return fmt.Errorf("the certificate of %s is not one for timestamps alone", c.Subject)
	}
	return nil
}

// ParseRoots reads certificates in PEM's form, of which each is to be trusted by itself.
func ParseRoots(data []byte) ([]*x509.Certificate, error) {
	var roots []*x509.Certificate
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("it holds a %q, want certificates", block.Type)
		}
		root, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		roots = append(roots, root)
	}
	if len(roots) == 0 {
		return nil, errors.New("it holds no certificate in PEM's form")
	}
	return roots, nil
}
