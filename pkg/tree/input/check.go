package input

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/checksum"
)

// Contents is what [Check] found in a tarball.
type Contents struct {
	Version []byte // the file with the version of the tree: see package stamp
}

// A MembersError says what is wrong with members of a tarball, one after the other.
type MembersError []string

func (e MembersError) Error() string { return strings.Join(e, "\n") }

// ErrCutShort says that the end of a tarball is missing.
var ErrCutShort = errors.New("cut short")

// versionFile is the name of the file with a tree's version, which package stamp reads.
const versionFile = "version"

// Check compares the members of a tarball with the sums in it. The error is a MembersError if some differ; what it found is not nil even
// so. Errors do not name the file.
func Check(ctx context.Context, file string) (*Contents, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return check(ctx, f)
}

func check(ctx context.Context, from io.Reader) (*Contents, error) {
	c := &Contents{}
	var list []byte
	got := map[string]string{}
	last := ""
	for r := tar.NewReader(from); ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, damaged(err, last)
		}
		last = h.Name
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if _, twice := got[h.Name]; twice {
			return nil, MembersError{h.Name + " is in it twice"}
		}
		sum := sha256.New()
		var kept bytes.Buffer
		content := io.TeeReader(r, sum)
		if h.Name == Sums || h.Name == versionFile {
			content = io.TeeReader(content, &kept)
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			return nil, damaged(err, h.Name)
		}
		switch h.Name {
		case Sums:
			list = kept.Bytes()
			continue
		case versionFile:
			c.Version = kept.Bytes()
		}
		got[h.Name] = hex.EncodeToString(sum.Sum(nil))
	}
	if list == nil {
		return nil, fmt.Errorf("%w before %s, or no %s", ErrCutShort, Sums, Tarball)
	}
	want, err := checksum.Parse(list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Sums, err)
	}
	return c, compare(got, want)
}

// damaged returns the error of a tarball that cannot be read behind a member's name.
func damaged(err error, member string) error {
	where := "after " + member
	if member == "" {
		where = "before its first member"
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w %s", ErrCutShort, where)
	}
	return fmt.Errorf("%s: %w", where, err)
}

func compare(got, want map[string]string) error {
	var differ MembersError
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch sum, ok := got[name]; {
		case !ok:
			differ = append(differ, name+" is missing")
		case sum != want[name]:
			differ = append(differ, name+" has changed: its SHA-256 is "+sum+", want "+want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			differ = append(differ, name+" is not in "+Sums)
		}
	}
	if differ == nil {
		return nil
	}
	return differ
}

// Version returns the file with the version of the tree in a tarball, without reading more than it has to.
func Version(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err != nil {
			return nil, fmt.Errorf("%s: no file %s: %w", file, versionFile, err)
		}
		if h.Name == versionFile {
			return io.ReadAll(r)
		}
	}
}
