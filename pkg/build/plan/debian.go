package plan

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/tree/catalog"
)

// Files beside a base's rootfs: what it needs of Debian, and the exact packages that it has files of.
const (
	debianWish = "packages.txt"
	debianLock = "debian.lock"
)

// hasPackages reports whether a base has files of Debian packages.
func (b *builder) hasPackages(base string) bool {
	if base == "" {
		return false
	}
	_, err := os.Stat(b.abs(slashed("images", base, debianWish)))
	return err == nil
}

// debianPackages plans the files of a base's Debian packages, and returns the tar that they are in. In a tar they are the same on every
// file system: there are names that differ only in case, and links.
func (b *builder) debianPackages(platform catalog.Platform, base string) string {
	out := slashed(stage, "debian", base, platform.Dash()+".tar")
	id := "debian " + platform.String() + " " + base
	if b.planned[id] {
		return out
	}
	b.planned[id] = true
	if b.ofOthers(out) {
		return out
	}
	lock := slashed(sourceDir, "images", base, debianLock)
	b.add(&action.Action{
		ID:      id,
		Phase:   "image",
		Recipe:  []string{Recipe, debian.Recipe, archive.Recipe, platform.String()},
		Inputs:  []string{lock},
		Outputs: []string{out},
		Run: func(ctx context.Context, t *action.Task) error {
			locked, err := b.locked(platform, base)
			if err != nil {
				return err
			}
			t.By(fmt.Sprintf("%d packages of Debian's %s", len(locked.Packages), locked.Suite))
			files, err := debian.Fetch(ctx, b.Settings.DebianMirror, locked.Packages, func(text string) { t.Progress(0, 0, text) })
			if err != nil {
				return err
			}
			entries, err := debian.Unpack(files)
			if err != nil {
				return err
			}
			return write(t.Path(out), func(w *bufio.Writer) error { return archive.Tar(w, entries, time.Time{}) })
		},
	})
	return out
}

// locked reads a base's lock for a platform.
func (b *builder) locked(platform catalog.Platform, base string) (*debian.Lock, error) {
	file := b.abs(slashed(sourceDir, "images", base, debianLock))
	lock, err := debian.ReadLock(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("images/%s has %s and no %s: `make update-debian-locks` makes it, and it belongs into the commit", base, debianWish, debianLock)
	}
	if err != nil {
		return nil, err
	}
	packages := lock.For(platform.Arch)
	if len(packages) == 0 {
		return nil, fmt.Errorf("images/%s/%s has no packages for %s: `make update-debian-locks` takes those of every server platform",
			base, debianLock, debian.Arch(platform.Arch))
	}
	return &debian.Lock{Suite: lock.Suite, Packages: packages}, nil
}

// debianLicenses plans the copyright files of the Debian packages that a platform's images of a set have files of, and returns their
// folder, or "" if there are none.
func (b *builder) debianLicenses(set catalog.Set, platform catalog.Platform) string {
	name := "debian"
	if set == catalog.Test {
		name += "-test"
	}
	var bases []string
	for _, im := range b.Catalog.ImagesFor(set, platform) {
		if b.hasPackages(im.Base) && !slices.Contains(bases, im.Base) {
			bases = append(bases, im.Base)
		}
	}
	if len(bases) == 0 {
		return ""
	}
	dir := slashed(stage, "licenses", name, platform.Dash())
	var inputs []string
	for _, base := range bases {
		inputs = append(inputs, b.debianPackages(platform, base), slashed(sourceDir, "images", base, debianLock))
	}
	b.add(&action.Action{
		ID:      "licenses " + platform.String() + " " + name,
		Phase:   "licenses",
		Recipe:  append([]string{Recipe, debian.Recipe}, bases...),
		Inputs:  inputs,
		Outputs: []string{dir + "/"},
		Run: func(_ context.Context, t *action.Task) error {
			for _, base := range bases {
				if err := b.writeCopyrights(t.Path(dir+"/"), platform, base); err != nil {
					return err
				}
			}
			return nil
		},
	})
	return dir
}

func (b *builder) writeCopyrights(dir string, platform catalog.Platform, base string) error {
	locked, err := b.locked(platform, base)
	if err != nil {
		return err
	}
	entries, err := archive.ReadTar(b.abs(b.debianPackages(platform, base)))
	if err != nil {
		return err
	}
	owed, err := debian.Copyrights(entries, locked.Packages)
	if err != nil {
		return err
	}
	for _, e := range owed {
		file := filepath.Join(dir, filepath.FromSlash(e.Name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, e.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
