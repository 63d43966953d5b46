package verify

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/sign"
	"slipway.build/pkg/ship/trust"
)

// Trusted reads a file of trusted keys, which must be signed as roots want it. Kept is a folder in which the versions that were seen are
// kept, by the roots' keys: an older one is refused, and so is another content with the same version.
func Trusted(ctx context.Context, file string, roots *trust.Policy, kept string) (*trust.Policy, error) {
	if err := roots.Check(); err != nil {
		return nil, err
	}
	at, name := folder(filepath.Dir(file)), filepath.Base(file)
	data, err := readSmall(ctx, at, name, trust.MaxFile)
	if err != nil {
		return nil, err
	}
	check := &sign.Check{Signed: map[string][]byte{name: data}, Policy: roots, Read: func(name string) ([]byte, error) {
		return readSmall(ctx, at, name, signature.MaxBundle)
	}}
	found, err := check.Run()
	if err != nil {
		return nil, err
	}
	if !found.OK(roots) {
		for _, f := range found.Files {
			switch {
			case f.Missing:
				return nil, fmt.Errorf("%s is not signed: there is no %s", file, at.name(f.Name))
			case f.Problem != "":
				return nil, fmt.Errorf("%s is not to be trusted: %s: %s", file, f.Name, f.Problem)
			}
		}
		return nil, fmt.Errorf("%s is not to be trusted: %s", file, tooFew(len(found.Signers), roots))
	}
	parsed, err := trust.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	policy, err := parsed.Policy(roots.Now)
	if err == nil {
		err = keep(kept, roots, parsed.Version, data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return policy, nil
}

// keep notes a version of what the owners of some keys have signed. There is a file for each, so that it does not matter who writes first.
func keep(dir string, roots *trust.Policy, version int, data []byte) error {
	sum := fmt.Sprintf("%x\n", sha256.Sum256(data))
	for _, root := range roots.Keys {
		versions := filepath.Join(dir, filepath.Base(release.AddedDir(root.Hint())))
		newest, err := newestIn(versions)
		if err != nil {
			return err
		}
		if newest > version {
			return fmt.Errorf("it is version %d, and %s has seen version %d", version, versions, newest)
		}
		file := filepath.Join(versions, strconv.Itoa(version))
		seen, err := os.ReadFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := os.MkdirAll(versions, 0o755); err != nil {
				return err
			}
			if err := atomicfile.WriteFile(file, []byte(sum), 0o644); err != nil {
				return err
			}
		case err != nil:
			return err
		case string(seen) != sum:
			return fmt.Errorf("it is version %d, and has another content than the version %d that %s has seen", version, version, versions)
		}
	}
	return nil
}

// newestIn returns the highest version that was seen, or 0.
func newestIn(versions string) (int, error) {
	entries, err := os.ReadDir(versions)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	newest := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // a killed process has left it
			continue
		}
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			return 0, fmt.Errorf("%s: it is no version: remove it", filepath.Join(versions, e.Name()))
		}
		newest = max(newest, n)
	}
	return newest, nil
}
