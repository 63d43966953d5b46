package signature

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"slipway.build/pkg/mechanism/suggest"
)

// BundleType is the media type of a bundle.
const BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// MaxBundle is the size, in bytes, of the largest bundle that is read.
const MaxBundle = 16 << 20

// TrustedRoot is a file without trusted parties. Clients that require such a file accept it together with a public key.
const TrustedRoot = `{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}` + "\n"

// StatementType is the media type of in-toto statements, which envelopes hold.
const StatementType = "application/vnd.in-toto+json"

// A Bundle is a signature as a file, in sigstore's format (dev.sigstore.bundle.v1.Bundle): either of a message, by its digest, or of a
// statement, in a DSSE envelope. Fields for certificates and transparency logs are ignored. Timestamps are kept, and checked by nobody
// here.
type Bundle struct {
	MediaType    string       `json:"mediaType"`
	Verification verification `json:"verificationMaterial"`
	Message      *message     `json:"messageSignature,omitempty"`
	Envelope     *envelope    `json:"dsseEnvelope,omitempty"`
}

type verification struct {
	PublicKey struct {
		Hint string `json:"hint"`
	} `json:"publicKey"`
	Timestamps *timestamps `json:"timestampVerificationData,omitempty"`
}

type timestamps struct {
	RFC3161 []timestamp `json:"rfc3161Timestamps,omitempty"`
}

type timestamp struct {
	Signed []byte `json:"signedTimestamp"`
}

type message struct {
	Digest struct {
		Algorithm string `json:"algorithm"`
		Digest    []byte `json:"digest"`
	} `json:"messageDigest"`
	Signature []byte `json:"signature"`
}

// An envelope holds what is signed. See https://github.com/secure-systems-lab/dsse.
type envelope struct {
	Payload     []byte         `json:"payload"`
	PayloadType string         `json:"payloadType"`
	Signatures  []envelopeSign `json:"signatures"`
}

type envelopeSign struct {
	Signature []byte `json:"sig"`
}

// encode returns what the signature of an envelope is over.
func (e *envelope) encode() []byte { return dsse.PAE(e.PayloadType, e.Payload) }

// algorithm is sigstore's name of SHA-256.
const algorithm = "SHA2_256"

// algorithms are the digests that name a message, by sigstore's names. cosign takes one by the size of its key.
var algorithms = map[string]crypto.Hash{algorithm: crypto.SHA256, "SHA2_384": crypto.SHA384, "SHA2_512": crypto.SHA512}

// Sign signs data.
func Sign(ctx context.Context, key PrivateKey, data []byte) (*Bundle, error) {
	digest := sha256.Sum256(data)
	b := &Bundle{Message: &message{}}
	b.Message.Digest.Algorithm, b.Message.Digest.Digest = algorithm, digest[:]
	signature, err := b.sign(ctx, key, data)
	b.Message.Signature = signature
	return b, err
}

// Attest signs an in-toto statement.
func Attest(ctx context.Context, key PrivateKey, statement []byte) (*Bundle, error) {
	e := &envelope{Payload: statement, PayloadType: StatementType}
	b := &Bundle{Envelope: e}
	signature, err := b.sign(ctx, key, e.encode())
	e.Signatures = []envelopeSign{{signature}}
	return b, err
}

// sign returns the signature of data, and names the key in the bundle.
func (b *Bundle) sign(ctx context.Context, key PrivateKey, data []byte) ([]byte, error) {
	b.MediaType, b.Verification.PublicKey.Hint = BundleType, key.Public().Hint()
	signature, err := key.signer.sign(ctx, data)
	if err != nil {
		return nil, err
	}
	// What a plugin returns may be by another key, or of another form.
	if err := verify(key.Public(), data, signature); err != nil {
		return nil, fmt.Errorf("the signature that was made is wrong: %w", err)
	}
	return signature, nil
}

// Statement returns the statement in the bundle, or nil if it is of a message. Only Verify checks that it is signed.
func (b *Bundle) Statement() []byte {
	if b.Envelope == nil {
		return nil
	}
	return b.Envelope.Payload
}

// Marshal returns the bundle as a file.
func (b *Bundle) Marshal() ([]byte, error) {
	data, err := json.Marshal(b)
	return append(data, '\n'), err
}

// Base64 returns the signature alone, as openssl and older clients take it.
func (b *Bundle) Base64() []byte {
	return append([]byte(base64.StdEncoding.EncodeToString(b.Signature())), '\n')
}

// Signature returns the signature alone.
func (b *Bundle) Signature() []byte {
	if b.Envelope != nil {
		return b.Envelope.Signatures[0].Signature
	}
	return b.Message.Signature
}

// Unmarshal reads a bundle.
func Unmarshal(data []byte) (*Bundle, error) {
	if len(data) > MaxBundle {
		return nil, errors.New("it is too large for a bundle")
	}
	b := &Bundle{}
	if err := json.Unmarshal(data, b); err != nil {
		return nil, fmt.Errorf("it is not a bundle: %w", err)
	}
	switch {
	case b.MediaType != BundleType:
		return nil, fmt.Errorf("it is not a bundle of the form that is supported, %s, but %q", BundleType, b.MediaType)
	case (b.Message == nil) == (b.Envelope == nil):
		return nil, errors.New("it has neither a signature of a message alone nor one of a statement alone")
	case b.Envelope != nil && (b.Envelope.PayloadType != StatementType || len(b.Envelope.Signatures) != 1):
		return nil, fmt.Errorf("it has %d signatures of %q, want one of a statement", len(b.Envelope.Signatures), b.Envelope.PayloadType)
	case b.Message != nil && algorithms[b.Message.Digest.Algorithm] == 0:
		return nil, fmt.Errorf("its digest is by %q, want %s", b.Message.Digest.Algorithm,
			suggest.Enumerate(slices.Sorted(maps.Keys(algorithms)), "or"))
	}
	return b, nil
}

// Of reports whether the bundle claims to be of a message or statement. Only Verify checks the claim.
func (b *Bundle) Of(data []byte) bool {
	if b.Envelope != nil {
		return bytes.Equal(b.Envelope.Payload, data)
	}
	digest := algorithms[b.Message.Digest.Algorithm].New()
	digest.Write(data)
	return bytes.Equal(b.Message.Digest.Digest, digest.Sum(nil))
}

// AddTimestamp adds a response of RFC 3161, which should be of the bundle's Signature.
func (b *Bundle) AddTimestamp(response []byte) {
	if b.Verification.Timestamps == nil {
		b.Verification.Timestamps = &timestamps{}
	}
	b.Verification.Timestamps.RFC3161 = append(b.Verification.Timestamps.RFC3161, timestamp{response})
}

// Timestamps returns the responses of RFC 3161 in the bundle. Nothing of them is checked.
func (b *Bundle) Timestamps() [][]byte {
	var responses [][]byte
	if b.Verification.Timestamps != nil {
		for _, t := range b.Verification.Timestamps.RFC3161 {
			responses = append(responses, t.Signed)
		}
	}
	return responses
}

// Hint returns the [PublicKey.Hint] that the bundle claims. Only Verify checks the claim.
func (b *Bundle) Hint() string { return b.Verification.PublicKey.Hint }

// Verify returns an error if the signature is not the key's, of the message or statement.
func (b *Bundle) Verify(key PublicKey, data []byte) error {
	switch {
	case !b.Of(data):
		return errors.New("it is of another content")
	case b.Hint() != key.Hint():
		return fmt.Errorf("it is by the key %s, want %s", b.Hint(), key.Hint())
	}
	if b.Envelope != nil {
		data = b.Envelope.encode()
	}
	return verify(key, data, b.Signature())
}

// VerifyBase64 is like Verify, of the signature alone, which may end its line.
func VerifyBase64(key PublicKey, data, signature []byte) error {
	text := strings.TrimSuffix(string(signature), "\n")
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return errors.New("it is not one line of base64")
	}
	return verify(key, data, raw)
}

func verify(key PublicKey, data, signature []byte) error {
	good := false
	switch k := key.key.(type) {
	case ed25519.PublicKey:
		good = ed25519.Verify(k, data, signature)
	case *ecdsa.PublicKey:
		digest := sha256.Sum256(data)
		good = ecdsa.VerifyASN1(k, digest[:], signature)
		if !good && k.Curve == elliptic.P384() { // which is what cosign signs with such a key
			digest := sha512.Sum384(data)
			good = ecdsa.VerifyASN1(k, digest[:], signature)
		}
	}
	if !good {
		return fmt.Errorf("it is not by the key %s, or not of this content", key.Hint())
	}
	return nil
}
