package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/ship/sign"
)

// maxRebuilds is how many files there may be about rebuilds of a release.
const maxRebuilds = 1000

// unchecked returns the status of a file about a rebuild by somebody whose key is not wanted.
func unchecked(name string, d fs.DirEntry) (File, error) {
	info, err := d.Info()
	switch {
	case err != nil:
		return File{}, err
	case !info.Mode().IsRegular():
		return File{name, Stranger, "is not a regular file"}, nil
	case info.Size() > signature.MaxBundle:
		return File{name, Stranger, "is too large for a bundle"}, nil
	}
	return File{name, Unchecked, ""}, nil
}

// rebuilds adds what is known of rebuilds by the owners of the wanted keys, and a problem if they are too few.
// It returns an error if one of the keys has signed the release itself.
func (r *Report) rebuilds(ctx context.Context, c *content, want Want) error {
	if len(want.RebuilderKeys) == 0 {
		return nil
	}
	at := c.place
	statement, err := readSmall(ctx, at, provenance.File, maxDescription)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, sign.ErrIrregular) {
			return nil // reported as missing or changed
		}
		return err
	}
	seen := map[string]bool{}
	for _, key := range want.RebuilderKeys {
		if seen[key.Hint()] {
			continue
		}
		seen[key.Hint()] = true
		if own, err := c.signedBy(ctx, key); err != nil {
			return err
		} else if own {
			return errOwnKey(key)
		}
		f := File{release.RebuildFile(key.Hint()), OK, ""}
		data, err := readSmall(ctx, at, f.Path, signature.MaxBundle)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, sign.ErrIrregular):
			f.Status, f.Detail = BadSigned, err.Error()
		case err != nil:
			return err
		default:
			if err := checkRebuild(data, statement, key); err != nil {
				f.Status, f.Detail = BadSigned, err.Error()
			} else {
				r.Rebuilders = append(r.Rebuilders, key.Hint())
			}
		}
		r.Files = append(slices.DeleteFunc(r.Files, func(known File) bool { return known.Path == f.Path }), f)
	}
	if len(r.Rebuilders) < want.Rebuilders {
		r.problem(fmt.Sprintf("%d of the wanted %d have rebuilt it", len(r.Rebuilders), want.Rebuilders))
	}
	r.finish()
	return nil
}

// signedBy reports whether the owner of a key has signed the description, with which all of a release is signed.
func (c *content) signedBy(ctx context.Context, key signature.PublicKey) (bool, error) {
	for _, dir := range []string{"", release.AddedDir(key.Hint())} {
		data, err := readSmall(ctx, c.place, path.Join(dir, release.File+release.BundleSuffix), signature.MaxBundle)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, sign.ErrIrregular) {
			continue
		}
		if err != nil {
			return false, err
		}
		b, err := signature.Unmarshal(data)
		if err == nil && b.Verify(key, c.description) == nil {
			return true, nil
		}
	}
	return false, nil
}

// checkRebuild returns an error if a bundle is not what the owner of a key states about a rebuild.
func checkRebuild(data, statement []byte, key signature.PublicKey) error {
	b, err := signature.Unmarshal(data)
	if err != nil {
		return err
	}
	summary := b.Statement()
	if summary == nil {
		return errors.New("it holds no statement")
	}
	if err := b.Verify(key, summary); err != nil {
		return err
	}
	return provenance.CheckSummary(summary, statement)
}
