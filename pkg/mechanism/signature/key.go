package signature

import (
	"context"
	"crypto"
	"crypto/ecdsa"
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

// A PublicKey checks signatures.
type PublicKey struct{ key *ecdsa.PublicKey }

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
		panic(err) // no point on P-256 fails
	}
	return der
}

// A PrivateKey signs.
type PrivateKey struct {
	public PublicKey
	signer signer
}

// A signer makes the signature of a message, as ASN.1.
type signer interface {
	sign(ctx context.Context, data []byte) ([]byte, error)
}

// A local key is in this process.
type local struct{ key *ecdsa.PrivateKey }

// sign gives the same signature of the same message each time (RFC 6979).
func (l local) sign(_ context.Context, data []byte) ([]byte, error) {
	digest := sha256.Sum256(data)
	return l.key.Sign(nil, digest[:], crypto.SHA256)
}

// New makes a key.
func New() (PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return PrivateKey{}, err
	}
	return ofP256(key, nil)
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
	key, err := parsePublic(data)
	if err != nil {
		return PublicKey{}, fmt.Errorf("%s: %w", name, err)
	}
	return key, nil
}

func parsePublic(data []byte) (PublicKey, error) {
	block, err := decode(data)
	if err != nil {
		return PublicKey{}, err
	}
	if block.Type != publicType {
		return PublicKey{}, fmt.Errorf("it holds a %s, not a public key", strings.ToLower(block.Type))
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return PublicKey{}, err
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return PublicKey{}, errKind
	}
	return PublicKey{key}, nil
}

var errKind = errors.New("it is not a key of ECDSA on the curve P-256")

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
		key, err := x509.ParseECPrivateKey(der)
		return ofP256(key, err)
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
	return ofP256(x509.ParsePKCS8PrivateKey(der))
}

func ofP256(key any, err error) (PrivateKey, error) {
	if err != nil {
		return PrivateKey{}, err
	}
	k, ok := key.(*ecdsa.PrivateKey)
	if !ok || k.Curve != elliptic.P256() {
		return PrivateKey{}, errKind
	}
	return PrivateKey{PublicKey{&k.PublicKey}, local{k}}, nil
}
