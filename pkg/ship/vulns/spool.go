package vulns

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// A spooled file is one of a tarball that is read at any place.
type spooled struct{ *os.File }

// spool writes a file of a tarball to a temporary one, and returns its SHA-256, too.
func spool(from io.Reader) (spooled, string, error) {
	f, err := os.CreateTemp("", "slipway-vulns-")
	if err != nil {
		return spooled{}, "", err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, h), io.LimitReader(from, maxProgram+1))
	if err == nil && n > maxProgram {
		err = fmt.Errorf("it has more than %d bytes", maxProgram)
	}
	if err != nil {
		return spooled{}, "", errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return spooled{f}, hex.EncodeToString(h.Sum(nil)), nil
}

func (s spooled) close() {
	_ = s.File.Close()
	_ = os.Remove(s.Name())
}
