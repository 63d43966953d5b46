// Package sign signs a release, and checks its signatures.
//
// Two files are signed, which between them name all others by digest: release.json and SHA256SUMS. The latter is for people who have
// sha256sum and nothing of slipway's. Each has a bundle, NAME.sigstore.json, and the signature alone, NAME.sig.
//
// What must never be in here: how a release is made; how signatures are made, which is package signature's.
package sign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
)

// Folder signs the release in a folder, and returns the names of the files that it wrote. Each of them is whole or not there. The caller
// has checked that the folder holds what its release.json says.
func Folder(ctx context.Context, dir string, key signature.PrivateKey) ([]string, error) {
	for _, name := range release.Signed() {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		b, err := signature.Sign(ctx, key, data)
		if err != nil {
			return nil, fmt.Errorf("sign %s: %w", name, err)
		}
		bundle, err := b.Marshal()
		if err != nil {
			return nil, err
		}
		for suffix, data := range map[string][]byte{release.BundleSuffix: bundle, release.SignatureSuffix: b.Base64()} {
			if err := atomicfile.WriteFile(filepath.Join(dir, name+suffix), data, 0o644); err != nil {
				return nil, err
			}
		}
	}
	return release.Signatures(), atomicfile.WriteFile(filepath.Join(dir, release.RootFile), []byte(signature.TrustedRoot), 0o644)
}

// A File is what is known of a signature in a folder.
type File struct {
	Name    string
	Missing bool
	Problem string // why it is not what it should be; "" if nothing is wrong with it
}

// Check checks the signatures that are in a folder. Content returns what a signed file has there. With a key, the bundles must be there,
// and be by that key; without one, Check only finds what cannot be right, whoever signed.
func Check(dir string, content func(name string) ([]byte, error), key *signature.PublicKey) ([]File, error) {
	var found []File
	add := func(name string, wanted bool, check func(data []byte) error) error {
		data, err := readSmall(filepath.Join(dir, name))
		f := File{Name: name, Missing: errors.Is(err, fs.ErrNotExist)}
		switch {
		case f.Missing && !wanted:
			return nil
		case err != nil && !f.Missing:
			return err
		case !f.Missing:
			if err := check(data); err != nil {
				f.Problem = err.Error()
			}
		}
		found = append(found, f)
		return nil
	}
	for _, name := range release.Signed() {
		signed, err := content(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		err = add(name+release.BundleSuffix, key != nil, func(data []byte) error { return checkBundle(data, signed, key) })
		if err != nil {
			return nil, err
		}
		err = add(name+release.SignatureSuffix, false, func(data []byte) error {
			if key == nil {
				return nil
			}
			return signature.VerifyBase64(*key, signed, data)
		})
		if err != nil {
			return nil, err
		}
	}
	return found, add(release.RootFile, false, func(data []byte) error {
		if string(data) != signature.TrustedRoot {
			return errors.New("it trusts somebody")
		}
		return nil
	})
}

func checkBundle(data, signed []byte, key *signature.PublicKey) error {
	b, err := signature.Unmarshal(data)
	if err != nil {
		return err
	}
	same, err := b.Marshal()
	switch {
	case err != nil:
		return err
	case !bytes.Equal(same, data): // so that every byte of a release is accounted for
		return errors.New("it is not written as slipway writes it")
	case key != nil:
		return b.Verify(*key, signed)
	case !b.Of(signed):
		return errors.New("it is of another content")
	}
	return nil
}

// readSmall reads a file that somebody else may have put there.
func readSmall(name string) ([]byte, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > signature.MaxBundle {
		return nil, nil // which is no signature
	}
	return os.ReadFile(name)
}
