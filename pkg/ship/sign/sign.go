package sign

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/trust"
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

// Options say how to sign. The zero value signs what nobody else has signed.
type Options struct {
	Add     bool // beside the signatures by other keys, below release.AddedDir if there are any
	Replace bool // remove the signatures by other keys

	// Timestamp returns a timestamp of a signature, as package timestamp does. It may be nil.
	Timestamp func(ctx context.Context, signature []byte) ([]byte, error)
}

// Folder signs the release in a folder, and returns the names of the files that it wrote, each in one step. The caller has checked that
// the folder holds what its release.json says. The error is a *SignedError if the release is signed by another key and the options do not
// say what becomes of that. Signatures of other content are always removed.
func Folder(ctx context.Context, dir string, key signature.PrivateKey, o Options) ([]string, error) {
	f := folder(dir)
	_, statements, err := f.statements()
	if err != nil {
		return nil, err
	}
	below, err := f.below(key.Public(), release.Signed(), o)
	if err == nil {
		err = f.sweepAdded(o.Replace)
	}
	if err != nil {
		return nil, err
	}
	w := writer{f, below, nil}
	for _, name := range release.Signed() {
		if err := w.sign(ctx, key, name, o); err != nil {
			return nil, err
		}
	}
	if below == "" {
		if err := w.write(release.RootFile, []byte(signature.TrustedRoot)); err != nil {
			return nil, err
		}
	}
	if err := f.sweep(below, statements); err != nil {
		return nil, err
	}
	for _, s := range statements {
		b, err := signature.Attest(ctx, key, s.Content)
		if err == nil {
			err = o.stamp(ctx, b)
		}
		if err != nil {
			return nil, fmt.Errorf("sign %s: %w", s.File, err)
		}
		bundle, err := b.Marshal()
		if err != nil {
			return nil, err
		}
		if err := w.write(s.File, bundle); err != nil {
			return nil, err
		}
	}
	return w.written, nil
}

// Single signs a file that is part of no release, with signatures beside it that have the names of those of a release's files.
func Single(ctx context.Context, file string, key signature.PrivateKey, o Options) ([]string, error) {
	f, name := folder(filepath.Dir(file)), filepath.Base(file)
	below, err := f.below(key.Public(), []string{name}, o)
	if err != nil {
		return nil, err
	}
	w := writer{f, below, nil}
	err = w.sign(ctx, key, name, o)
	return w.written, err
}

// A writer writes signatures into a folder, or below one that is in it.
type writer struct {
	folder
	below   string
	written []string
}

func (w *writer) write(name string, data []byte) error {
	name = path.Join(w.below, name)
	w.written = append(w.written, name)
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteFile(w.path(name), data, 0o644)
}

// sign signs a file as it is.
func (w *writer) sign(ctx context.Context, key signature.PrivateKey, name string, o Options) error {
	data, err := w.read(name)
	if err != nil {
		return err
	}
	b, err := signature.Sign(ctx, key, data)
	if err == nil {
		err = o.stamp(ctx, b)
	}
	if err != nil {
		return fmt.Errorf("sign %s: %w", name, err)
	}
	bundle, err := b.Marshal()
	if err != nil {
		return err
	}
	return errors.Join(w.write(name+release.BundleSuffix, bundle), w.write(name+release.SignatureSuffix, b.Base64()))
}

// stamp adds a timestamp to a bundle.
func (o Options) stamp(ctx context.Context, b *signature.Bundle) error {
	if o.Timestamp == nil {
		return nil
	}
	response, err := o.Timestamp(ctx, b.Signature())
	if err == nil {
		b.AddTimestamp(response)
	}
	return err
}

// below returns the folder in f that a key's signatures of files go to.
func (f folder) below(key signature.PublicKey, names []string, o Options) (string, error) {
	if o.Replace {
		return "", nil
	}
	err := f.otherKey(key, names)
	if _, signed := errors.AsType[*SignedError](err); signed && o.Add {
		return release.AddedDir(key.Hint()), nil
	}
	return "", err
}

// sweepAdded removes signatures of other content that were added, or all that were.
func (f folder) sweepAdded(all bool) error {
	added, err := Added(os.DirFS(string(f)))
	for _, dir := range added {
		if all || f.stale(dir, release.File) {
			err = errors.Join(err, os.RemoveAll(f.path(dir)))
		}
	}
	return err
}

// stale reports whether a folder's signature of a file is not of what the file holds.
func (f folder) stale(dir, name string) bool {
	content, err := f.read(name)
	if err != nil {
		return false
	}
	data, err := f.read(path.Join(dir, name+release.BundleSuffix))
	if err != nil {
		return false
	}
	b, err := signature.Unmarshal(data)
	return err != nil || !b.Of(content)
}

// Added lists the folders of signatures by more keys in a release's folder, relative to it.
func Added(in fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(in, release.Added)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, path.Join(release.Added, e.Name()))
		}
	}
	return dirs, nil
}

// otherKey returns a *SignedError if a file of some names has a signature that is not by a key.
func (f folder) otherKey(key signature.PublicKey, names []string) error {
	for _, name := range names {
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
	added, err := Added(os.DirFS(dir))
	for _, below := range append([]string{""}, added...) {
		below := filepath.Join(dir, filepath.FromSlash(below))
		err = errors.Join(err, atomicfile.Sweep(below), atomicfile.Sweep(filepath.Join(below, release.Attestations)))
	}
	return err
}

// sweep removes attestations of an earlier release from a folder in f.
func (f folder) sweep(below string, statements []Statement) error {
	dir := path.Join(below, release.Attestations)
	entries, err := os.ReadDir(f.path(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !slices.ContainsFunc(statements, func(s Statement) bool { return s.File == release.Attestations+"/"+e.Name() }) {
			if err := os.Remove(f.path(path.Join(dir, e.Name()))); err != nil {
				return err
			}
		}
	}
	return nil
}

// A File is the result of checking a signature in a folder.
type File struct {
	Name      string
	Missing   bool
	Problem   string // why it is wrong; "" if it is not
	Unchecked bool   // it does not count: nobody asks for its key, or enough others have signed; Problem may say why
}

// ErrIrregular says that a file is not a regular one, or is too large.
var ErrIrregular = errors.New("it is not a regular file, or too large")

// A Check checks signatures.
type Check struct {
	Signed     map[string][]byte // contents of signed files, by name
	Statements []Statement
	Read       func(name string) ([]byte, error) // the content of a signature
	Added      []string                          // folders of signatures by more keys that are known to be there

	// Policy says whose signatures count. Without one, none do, and Run finds what is wrong with any key.
	Policy *trust.Policy
}

// A Result is what is found by a Check.
type Result struct {
	Files   []File
	Signers []signature.PublicKey // who has signed all that is to be signed, of the policy's keys
}

// OK reports whether a policy is satisfied.
func (r *Result) OK(p *trust.Policy) bool { return len(r.Signers) >= p.Threshold }

// Run checks. If the policy is satisfied, signatures by others are Unchecked, and so are those by keys of the policy that do not count. If
// it is not, all that is missing or wrong of its keys' signatures is a problem.
func (c *Check) Run() (*Result, error) {
	r := &Result{}
	looked := map[string]bool{}
	bad := map[string][]File{} // what does not count, by folder
	look := func(dir string, key trust.Key) error {
		looked[dir] = true
		files, err := c.set(dir, &key)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(files, func(f File) bool { return f.Missing || f.Problem != "" }) {
			bad[dir] = files
			return nil
		}
		r.Files, r.Signers = append(r.Files, files...), append(r.Signers, key.PublicKey)
		return nil
	}
	if p := c.Policy; p != nil {
		for _, key := range p.Keys {
			dir, there, err := c.dir(key.PublicKey)
			if err == nil && there {
				err = look(dir, key)
			}
			if err != nil {
				return nil, err
			}
		}
		if !r.OK(p) && !looked[""] { // so that what another key has signed, or nobody, is named
			if err := look("", p.Keys[0]); err != nil {
				return nil, err
			}
		}
		if !r.OK(p) {
			for _, dir := range slices.Sorted(maps.Keys(bad)) {
				r.Files = append(r.Files, bad[dir]...)
			}
			bad = nil
		}
	}
	for _, dir := range append([]string{""}, c.Added...) {
		if looked[dir] && bad[dir] == nil {
			continue
		}
		files, err := c.set(dir, nil)
		if err != nil {
			return nil, err
		}
		for i, f := range files {
			because := slices.IndexFunc(bad[dir], func(b File) bool { return b.Name == f.Name })
			if f.Unchecked && because >= 0 {
				files[i].Problem = bad[dir][because].Problem
			}
		}
		r.Files = append(r.Files, files...)
	}
	return r, nil
}

// dir returns where the signatures by a key are, and whether there are any.
func (c *Check) dir(key signature.PublicKey) (string, bool, error) {
	name := slices.Sorted(maps.Keys(c.Signed))[0] + release.BundleSuffix
	for _, dir := range []string{"", release.AddedDir(key.Hint())} {
		data, err := c.Read(path.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, ErrIrregular):
		case err != nil:
			return "", false, err
		}
		if b, err := signature.Unmarshal(data); dir != "" || err == nil && b.Hint() == key.Hint() {
			return dir, true, nil
		}
	}
	return "", false, nil
}

// set checks the signatures in a folder. With a key, the bundles must exist and be signed by that key. Without one, they do not count, and
// must be of the right contents.
func (c *Check) set(dir string, key *trust.Key) ([]File, error) {
	var found []File
	add := func(name string, wanted bool, check func(data []byte) error) error {
		data, err := c.Read(path.Join(dir, name))
		f := File{Name: path.Join(dir, name), Missing: errors.Is(err, fs.ErrNotExist), Unchecked: key == nil}
		switch {
		case f.Missing && !wanted:
			return nil
		case errors.Is(err, ErrIrregular):
			f.Problem, f.Unchecked = err.Error(), false
		case err != nil && !f.Missing:
			return err
		case !f.Missing:
			if err := check(data); err != nil {
				f.Problem, f.Unchecked = err.Error(), false
			}
		}
		found = append(found, f)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.Signed)) {
		content := c.Signed[name]
		err := add(name+release.BundleSuffix, key != nil, func(data []byte) error { return c.bundle(data, content, key) })
		if err != nil {
			return nil, err
		}
		err = add(name+release.SignatureSuffix, false, func(data []byte) error {
			if key == nil {
				return nil
			}
			return signature.VerifyBase64(key.PublicKey, content, data)
		})
		if err != nil {
			return nil, err
		}
	}
	for _, s := range c.Statements {
		if err := add(s.File, key != nil, func(data []byte) error { return c.bundle(data, s.Content, key) }); err != nil {
			return nil, err
		}
	}
	if len(c.Statements) == 0 || dir != "" {
		return found, nil
	}
	err := add(release.RootFile, false, func(data []byte) error {
		if string(data) != signature.TrustedRoot {
			return errors.New("it names trusted parties, and slipway writes one without")
		}
		return nil
	})
	return found, err
}

// bundle checks what a bundle means, not how it is written: cosign, with the same key, writes no final newline and adds entries of a
// transparency log.
func (c *Check) bundle(data, signed []byte, key *trust.Key) error {
	b, err := signature.Unmarshal(data)
	switch {
	case err != nil:
		return err
	case key != nil:
		return c.Policy.Verify(b, *key, signed)
	case !b.Of(signed):
		return errors.New("it is of another content")
	}
	return nil
}
