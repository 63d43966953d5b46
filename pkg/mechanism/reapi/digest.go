package reapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// A Digest names a content.
type Digest struct {
	SHA256 string // in lower-case hexadecimal
	Size   int64  // bytes
}

// DigestOf returns the digest of data.
func DigestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest{hex.EncodeToString(sum[:]), int64(len(data))}
}

func (d Digest) String() string { return fmt.Sprintf("%s/%d", d.SHA256, d.Size) }

// Valid reports whether the digest could be of a content.
func (d Digest) Valid() bool {
	sum, err := hex.DecodeString(d.SHA256)
	return err == nil && len(sum) == sha256.Size && hex.EncodeToString(sum) == d.SHA256 && d.Size >= 0
}
