package debian

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
)

// keys are those that sign the Release files of archives.
type keys struct {
	list openpgp.EntityList
	file string
	off  bool // nothing is checked
}

// ErrKeyring says that the keys of Debian's archive are not here.
var ErrKeyring = errors.New("the keys of Debian's archive are not here: install the package debian-archive-keyring, or set " +
	"SLIPWAY_DEBIAN_KEYRING to a file of them, or to off to take what a mirror has unchecked")

// keys reads the keyring that the user names, or else that of a file.
func (s Sources) keys(file string) (keys, error) {
	switch s.Keyring {
	case Off:
		return keys{off: true}, nil
	case "":
	default:
		file = s.Keyring
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return keys{}, fmt.Errorf("%w: %w", ErrKeyring, err)
	}
	list, err := openpgp.ReadKeyRing(bytes.NewReader(data))
	if err != nil {
		list, err = openpgp.ReadArmoredKeyRing(bytes.NewReader(data))
	}
	if err == nil && len(list) == 0 {
		err = errors.New("it has no keys")
	}
	if err != nil {
		return keys{}, fmt.Errorf("%s: not a keyring of OpenPGP: %w", file, err)
	}
	return keys{list: list, file: file}, nil
}

// open returns the text of an InRelease file, which one of the keys has signed.
func (k keys) open(signed []byte) ([]byte, error) {
	block, _ := clearsign.Decode(signed)
	if k.off {
		if block == nil {
			return signed, nil
		}
		return block.Plaintext, nil
	}
	if block == nil {
		return nil, errors.New("it has no signature")
	}
	if _, err := openpgp.CheckDetachedSignature(k.list, bytes.NewReader(block.Bytes), block.ArmoredSignature.Body, nil); err != nil {
		return nil, fmt.Errorf("its signature is by none of the keys in %s: %w", k.file, err)
	}
	return block.Plaintext, nil
}
