package signature

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"slipway.build/pkg/mechanism/suggest"
)

// Types of PEM blocks. cosign writes the first, and reads the second of older versions, too.
const (
	encryptedType       = "ENCRYPTED SIGSTORE PRIVATE KEY"
	encryptedCosignType = "ENCRYPTED COSIGN PRIVATE KEY"
	pkcs8Type           = "PRIVATE KEY"
	ecType              = "EC PRIVATE KEY"
	publicType          = "PUBLIC KEY"
)

// maxKey is the size, in bytes, of the largest file that is read as a key.
const maxKey = 64 << 10

// fromVariable begins the name of a key that is in a variable of the environment, as cosign has it.
const fromVariable = "env://"

// ErrPassword says that a password does not open a private key.
var ErrPassword = errors.New("the password does not open the key")

// A Type is that of a key, as users name it.
type Type string

// The types of keys. The digest that ECDSA signs is SHA-256 on both curves: cosign verifies no other without being told.
const (
	P256    Type = "p256" // ECDSA
	P384    Type = "p384" // ECDSA
	Ed25519 Type = "ed25519"
)

// Types lists the types of keys.
func Types() []string { return []string{string(P256), string(P384), string(Ed25519)} }

// A PublicKey checks signatures.
type PublicKey struct{ key crypto.PublicKey } // *ecdsa.PublicKey or ed25519.PublicKey

// Hint returns the key's name in bundles: the SHA-256 of its DER, in base64, as cosign has it.
func (p PublicKey) Hint() string {
	sum := sha256.Sum256(p.der())
	return base64.StdEncoding.EncodeToString(sum[:])
}

// PEM returns the key as a PEM block.
func (p PublicKey) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: publicType, Bytes: p.der()})
}

func (p PublicKey) der() []byte {
	der, err := x509.MarshalPKIXPublicKey(p.key)
	if err != nil {
		panic(err) // no key that asPublic accepts fails
	}
	return der
}

// A PrivateKey signs.
type PrivateKey struct {
	public PublicKey
	signer signer
}

// A signer makes the signature of a message: as ASN.1 if it is of ECDSA.
type signer interface {
	sign(ctx context.Context, data []byte) ([]byte, error)
}

// A local key is in this process.
type local struct{ key crypto.Signer } // *ecdsa.PrivateKey or ed25519.PrivateKey

// sign gives the same signature of the same message each time (RFC 6979, RFC 8032).
func (l local) sign(_ context.Context, data []byte) ([]byte, error) {
	if _, ok := l.key.(ed25519.PrivateKey); ok {
		return l.key.Sign(nil, data, crypto.Hash(0))
	}
	digest := sha256.Sum256(data)
	return l.key.Sign(nil, digest[:], crypto.SHA256)
}

// New makes a key of the type P256.
func New() (PrivateKey, error) { return NewOf(P256) }

// NewOf makes a key.
func NewOf(t Type) (PrivateKey, error) {
	switch t {
	case P256:
		return asPrivate(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	case P384:
		return asPrivate(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	case Ed25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return asPrivate(key, err)
	}
	return PrivateKey{}, suggest.Unknown("type of keys", string(t), Types())
}

// Public returns the key's other half.
func (k PrivateKey) Public() PublicKey { return k.public }

// Encrypted returns the key as a PEM block that a password opens, in the form of cosign.
func (k PrivateKey) Encrypted(password []byte) ([]byte, error) {
	here, ok := k.signer.(local)
	if !ok {
		return nil, errors.New("a program has the key, and keeps it")
	}
	der, err := x509.MarshalPKCS8PrivateKey(here.key)
	if err != nil {
		return nil, err
	}
	data, err := encrypted.Encrypt(der, password)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: encryptedType, Bytes: data}), nil
}

// ReadPrivate reads a private key from the file with a name, or, if the name is env://VARIABLE, from a variable of the environment. It is a
// PEM block: cosign's encrypted form, for which password is asked, PKCS #8, or openssl's form. A file that others can read is refused.
// The key of any other NAME://ID stays in a plugin, the program sigstore-kms-NAME, which is asked for each signature.
func ReadPrivate(ctx context.Context, name string, password func() ([]byte, error)) (PrivateKey, error) {
	if p, ok := asPlugin(name); ok {
		public, err := p.public(ctx)
		return PrivateKey{public, p}, err
	}
	data, mode, err := read(name)
	if err != nil {
		return PrivateKey{}, err
	}
	block, err := decode(data)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("%s: %w", name, err)
	}
	if block.Type != publicType && mode&0o077 != 0 && runtime.GOOS != "windows" {
		return PrivateKey{}, fmt.Errorf("%s: others can read or write this private key (mode %#o): chmod 600 %[1]s", name, mode)
	}
	key, err := parsePrivate(block, password)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("%s: %w", name, err)
	}
	return key, nil
}

// ReadPublic reads a public key, a PEM block, from where ReadPrivate reads private ones.
func ReadPublic(ctx context.Context, name string) (PublicKey, error) {
	if p, ok := asPlugin(name); ok {
		return p.public(ctx)
	}
	data, _, err := read(name)
	if err != nil {
		return PublicKey{}, err
	}
	key, err := ParsePublic(data)
	if err != nil {
		return PublicKey{}, fmt.Errorf("%s: %w", name, err)
	}
	return key, nil
}

// ParsePublic reads a public key, a PEM block.
func ParsePublic(data []byte) (PublicKey, error) {
	block, err := decode(data)
	if err != nil {
		return PublicKey{}, err
	}
	if block.Type != publicType {
		return PublicKey{}, fmt.Errorf("what it holds is no public key: %s", strings.ToLower(block.Type))
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return PublicKey{}, err
	}
	return asPublic(parsed)
}

func asPublic(key crypto.PublicKey) (PublicKey, error) {
	switch k := key.(type) {
	case ed25519.PublicKey:
		return PublicKey{k}, nil
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() || k.Curve == elliptic.P384() {
			return PublicKey{k}, nil
		}
	}
	return PublicKey{}, errKind
}

var errKind = errors.New("it is not a key of ECDSA on the curve P-256 or P-384, nor of Ed25519")

// read returns a key's text, and the permissions of its file.
func read(name string) ([]byte, fs.FileMode, error) {
	if variable, ok := strings.CutPrefix(name, fromVariable); ok {
		text := os.Getenv(variable)
		if text == "" {
			return nil, 0, fmt.Errorf("%s: the variable is not set", name)
		}
		return []byte(text), 0, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err == nil && len(data) > maxKey {
		err = fmt.Errorf("%s: it is too large for a key", name)
	}
	return data, info.Mode().Perm(), err
}

// decode returns the only PEM block of a file.
func decode(data []byte) (*pem.Block, error) {
	block, rest := pem.Decode(data)
	for block != nil && block.Type == "EC PARAMETERS" { // openssl writes them before the key
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, errors.New("it is not a key in PEM's form")
	}
	if another, _ := pem.Decode(rest); another != nil {
		return nil, errors.New("it holds more than one key")
	}
	return block, nil
}

func parsePrivate(block *pem.Block, password func() ([]byte, error)) (PrivateKey, error) {
	der := block.Bytes
	switch block.Type {
	case ecType:
		return asPrivate(x509.ParseECPrivateKey(der))
	case pkcs8Type:
	case encryptedType, encryptedCosignType:
		secret, err := password()
		if err != nil {
			return PrivateKey{}, err
		}
		if der, err = encrypted.Decrypt(der, secret); err != nil {
			return PrivateKey{}, ErrPassword
		}
	case publicType:
		return PrivateKey{}, errors.New("it is a public key: signing needs the private one")
	default:
		return PrivateKey{}, fmt.Errorf("it holds a %s, which is not supported: cosign import-key-pair makes a key of it that is",
			strings.ToLower(block.Type))
	}
	return asPrivate(x509.ParsePKCS8PrivateKey(der))
}

func asPrivate(key any, err error) (PrivateKey, error) {
	if err != nil {
		return PrivateKey{}, err
	}
	k, ok := key.(crypto.Signer)
	if !ok {
		return PrivateKey{}, errKind
	}
	public, err := asPublic(k.Public())
	return PrivateKey{public, local{k}}, err
}
