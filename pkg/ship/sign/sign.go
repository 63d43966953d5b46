package sign

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
)

// A SignedError reports that a release is signed by another key, whose signatures would be replaced.
type SignedError struct {
	File string // the signature
	Key  string // its hint; "" if nothing says whose it is
}

func (e *SignedError) Error() string {
	by := "another key"
	if e.Key != "" {
		by = "the key " + e.Key
	}
	return fmt.Sprintf("%s is a signature by %s: without it, those who have only that key could not verify the release", e.File, by)
}

// A folder has a release.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

func (f folder) read(name string) ([]byte, error) { return os.ReadFile(f.path(name)) }

// statements returns the release, and what is said about it.
func (f folder) statements() (*release.Release, []Statement, error) {
	description, err := f.read(release.File)
	if err != nil {
		return nil, nil, err
	}
	r, err := release.Unmarshal(description)
	if err != nil {
		return nil, nil, err
	}
	statements, err := Statements(r, description, f.read)
	return r, statements, err
}

// Folder signs the release in a folder, and returns the names of the files that it wrote, each in one step. The caller has checked that
// the folder holds what its release.json says. The error is a *SignedError if the release is signed by another key and replace is false.
// Signatures of other content are always replaced.
func Folder(ctx context.Context, dir string, key signature.PrivateKey, replace bool) ([]string, error) {
	f := folder(dir)
	_, statements, err := f.statements()
	if err != nil {
		return nil, err
	}
	if !replace {
		if err := f.otherKey(key.Public()); err != nil {
			return nil, err
		}
	}
	var written []string
	write := func(name string, data []byte) error {
		written = append(written, name)
		return atomicfile.WriteFile(f.path(name), data, 0o644)
	}
	for _, name := range release.Signed() {
		data, err := f.read(name)
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
		if err := errors.Join(write(name+release.BundleSuffix, bundle), write(name+release.SignatureSuffix, b.Base64())); err != nil {
			return nil, err
		}
	}
	if err := write(release.RootFile, []byte(signature.TrustedRoot)); err != nil {
		return nil, err
	}
	if err := f.sweep(statements); err != nil {
		return nil, err
	}
	for _, s := range statements {
		b, err := signature.Attest(ctx, key, s.Content)
		if err != nil {
			return nil, fmt.Errorf("sign %s: %w", s.File, err)
		}
		bundle, err := b.Marshal()
		if err != nil {
			return nil, err
		}
		if err := write(s.File, bundle); err != nil {
			return nil, err
		}
	}
	return written, nil
}

// otherKey returns a *SignedError if a file that is signed as it is has a signature that is not by a key.
func (f folder) otherKey(key signature.PublicKey) error {
	for _, name := range release.Signed() {
		content, err := f.read(name)
		if err != nil {
			return err
		}
		data, err := f.read(name + release.BundleSuffix)
		switch {
		case err == nil:
			b, err := signature.Unmarshal(data)
			if err == nil && b.Of(content) && b.Verify(key, content) != nil {
				return &SignedError{name + release.BundleSuffix, b.Hint()}
			}
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		data, err = f.read(name + release.SignatureSuffix) // alone, as openssl makes it
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil && signature.VerifyBase64(key, content, data) != nil {
			return &SignedError{name + release.SignatureSuffix, ""}
		}
	}
	return nil
}

// Sweep removes from a release's folder what a killed Folder has left: temporary files.
func Sweep(dir string) error {
	return errors.Join(atomicfile.Sweep(dir), atomicfile.Sweep(filepath.Join(dir, release.Attestations)))
}

// sweep makes the folder of attestations, and removes those of an earlier release from it.
func (f folder) sweep(statements []Statement) error {
	if err := os.MkdirAll(f.path(release.Attestations), 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(f.path(release.Attestations))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := release.Attestations + "/" + e.Name()
		if !slices.ContainsFunc(statements, func(s Statement) bool { return s.File == name }) {
			if err := os.Remove(f.path(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// A File is the result of checking a signature in a folder.
type File struct {
	Name    string
	Missing bool
	Problem string // why it is wrong; "" if it is not
}

// ErrIrregular says that a file is not a regular one, or is too large.
var ErrIrregular = errors.New("it is not a regular file, or too large")

// Check checks the signatures of a release. Signed holds the contents of signed files by name, and read returns the content of a signature.
// With a key, the bundles must exist and be signed by that key. Without one, Check finds what is wrong with any key.
func Check(signed map[string][]byte, statements []Statement, read func(name string) ([]byte, error),
	key *signature.PublicKey) ([]File, error) {
	var found []File
	add := func(name string, wanted bool, check func(data []byte) error) error {
		data, err := read(name)
		f := File{Name: name, Missing: errors.Is(err, fs.ErrNotExist)}
		switch {
		case f.Missing && !wanted:
			return nil
		case errors.Is(err, ErrIrregular):
			f.Problem = err.Error()
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
	for _, name := range slices.Sorted(maps.Keys(signed)) {
		content := signed[name]
		err := add(name+release.BundleSuffix, key != nil, func(data []byte) error { return checkBundle(data, content, key) })
		if err != nil {
			return nil, err
		}
		err = add(name+release.SignatureSuffix, false, func(data []byte) error {
			if key == nil {
				return nil
			}
			return signature.VerifyBase64(*key, content, data)
		})
		if err != nil {
			return nil, err
		}
	}
	for _, s := range statements {
		if err := add(s.File, key != nil, func(data []byte) error { return checkBundle(data, s.Content, key) }); err != nil {
			return nil, err
		}
	}
	if len(statements) == 0 {
		return found, nil
	}
	return found, add(release.RootFile, false, func(data []byte) error {
		if string(data) != signature.TrustedRoot {
			return errors.New("it names trusted parties, and slipway writes one without")
		}
		return nil
	})
}

// checkBundle checks what a bundle means, not how it is written: cosign, with the same key, writes no final newline and adds entries of a
// transparency log.
func checkBundle(data, signed []byte, key *signature.PublicKey) error {
	b, err := signature.Unmarshal(data)
	switch {
	case err != nil:
		return err
	case key != nil:
		return b.Verify(*key, signed)
	case !b.Of(signed):
		return errors.New("it is of another content")
	}
	return nil
}
