package debian

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/atomicfile"
)

// maxPackage is a limit that no package of an image reaches, in bytes.
const maxPackage = 256 << 20

// parallel is the number of packages that are fetched at once.
const parallel = 4

// Fetch returns the files of packages, in their order, below the user's cache folder. Missing and damaged ones are fetched
// from the mirror, or, without one, from the mirrors of this machine's apt.
func Fetch(ctx context.Context, mirror string, packages []Package, progress func(string)) ([]string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	return fetch(ctx, filepath.Join(dir, "slipway", "debian"), packages, progress, func() (*mirrors, error) { return findMirrors(mirror, "/") })
}

func fetch(ctx context.Context, cache string, packages []Package, progress func(string), find func() (*mirrors, error)) ([]string, error) {
	files := make([]string, len(packages))
	var missing []Package
	for i, p := range packages {
		files[i] = filepath.Join(cache, p.SHA256+".deb")
		if sum, err := sumOf(files[i]); err != nil || sum != p.SHA256 {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return files, nil
	}
	first := fmt.Sprintf("the Debian package %s %s is not in %s", missing[0].Name, missing[0].Version, cache)
	m, err := find()
	if err != nil {
		return nil, fmt.Errorf("%s, and there is no mirror to fetch it from: %w", first, err)
	}
	if err := os.MkdirAll(cache, 0o777); err != nil {
		return nil, err
	}
	if progress != nil {
		progress(fmt.Sprintf("fetching %d Debian packages", len(missing)))
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, p := range missing {
		g.Go(func() error { return m.fetch(ctx, cache, p) })
	}
	return files, g.Wait()
}

// fetch puts a package into the cache.
func (m *mirrors) fetch(ctx context.Context, cache string, p Package) error {
	to := filepath.Join(cache, p.SHA256+".deb")
	err := m.get(ctx, p.Path, func(r io.Reader) error {
		err := atomicfile.Write(to, 0o600, func(w io.Writer) error {
			sum := sha256.New()
			if _, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(r, p.Size+1)); err != nil {
				return err
			}
			if got := hex.EncodeToString(sum.Sum(nil)); got != p.SHA256 {
				return fmt.Errorf("its SHA-256 is %s, and debian.lock says %s", got, p.SHA256)
			}
			return nil
		})
		if err != nil && runtime.GOOS == "windows" {
			if sum, _ := sumOf(to); sum == p.SHA256 {
				return nil // another process has made it, and has it open
			}
		}
		return err
	})
	switch {
	case errors.Is(err, errGone):
		return fmt.Errorf("the Debian package %s %s: %w: %w, or the mirror keeps no old versions", p.Name, p.Version, err, ErrLock)
	case err != nil:
		return fmt.Errorf("the Debian package %s %s: %w", p.Name, p.Version, err)
	}
	return nil
}

func sumOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
