package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/tail"
)

// maxPackage is a limit that no package of an image reaches, in bytes.
const maxPackage = 256 << 20

// parallel is the number of packages that are fetched at once.
const parallel = 4

// Sources say where the packages of a lock come from if the user's cache folder lacks them, and what locks are made of. They decide no
// bytes of what a lock names.
type Sources struct {
	Folder   string // is asked first; it has packages under their FileName. "" if there is none
	Mirror   string // SLIPWAY_DEBIAN_MIRROR; without one, the mirrors of this machine's apt are asked
	Security string // SLIPWAY_DEBIAN_SECURITY_MIRROR, the same for security fixes; Off does without them
	Snapshot string // SLIPWAY_DEBIAN_SNAPSHOT, asked last: see CheckSnapshot; "" or Off if there is none
	Keyring  string // SLIPWAY_DEBIAN_KEYRING: the file of the keys that sign archives; Off checks nothing. "" is that of this machine
}

const (
	// Off does without something in [Sources].
	Off = "off"

	// PublicSnapshot is the address of the public archive of Debian's past: https://snapshot.debian.org/.
	PublicSnapshot = "https://snapshot.debian.org/archive/{archive}/{time}"
)

// SourcesFrom reads the variables of an environment.
func SourcesFrom(getenv func(string) string) Sources {
	return Sources{
		Mirror: getenv("SLIPWAY_DEBIAN_MIRROR"), Security: getenv("SLIPWAY_DEBIAN_SECURITY_MIRROR"),
		Snapshot: getenv("SLIPWAY_DEBIAN_SNAPSHOT"), Keyring: getenv("SLIPWAY_DEBIAN_KEYRING"),
	}
}

// Check returns an error if the user has set a variable to what it cannot be.
func (s Sources) Check() error {
	if s.Mirror != "" {
		if err := checkMirror(s.Mirror); err != nil {
			return err
		}
	}
	if s.Security != "" && s.Security != Off {
		if err := checkAddress("SLIPWAY_DEBIAN_SECURITY_MIRROR", s.Security, "http://mirror.example.com/debian-security, or off"); err != nil {
			return err
		}
	}
	if s.Snapshot != "" && s.Snapshot != Off {
		if err := CheckSnapshot(s.Snapshot); err != nil {
			return badrequest.Mark(fmt.Errorf("SLIPWAY_DEBIAN_SNAPSHOT: %w, or off", err))
		}
	}
	return nil
}

// CheckSnapshot returns an error if an address cannot be that of an archive of Debian's past: it needs {archive} for the name of
// an archive, Main or Security, and {time} for the time of a lock.
func CheckSnapshot(address string) error {
	if !isAddress(address) || !strings.Contains(address, "{archive}") || !strings.Contains(address, "{time}") {
		return fmt.Errorf("%q is not an address such as http://snapshot.example.com/{archive}/{time}", tail.Redact(address))
	}
	return nil
}

// FileName returns the name of the package's file in the user's cache folder, and in a folder of [Sources].
func (p Package) FileName() string { return p.SHA256 + ".deb" }

// Fetch returns the files of a lock's packages, in their order, below the user's cache folder. Missing and damaged ones are
// fetched.
func Fetch(ctx context.Context, from Sources, lock *Lock, progress func(string)) ([]string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	cache := filepath.Join(dir, "slipway", "debian")
	return fetch(ctx, cache, from.Folder, lock.Packages, progress, func() (*mirrors, error) { return from.find(lock, "/") })
}

func fetch(ctx context.Context, cache, folder string, packages []Package, progress func(string),
	find func() (*mirrors, error)) ([]string, error) {
	files := make([]string, len(packages))
	var missing []Package
	for i, p := range packages {
		files[i] = filepath.Join(cache, p.FileName())
		if sum, err := checksum.File(files[i]); err == nil && sum == p.SHA256 {
			continue
		}
		found, err := p.copyFrom(folder, cache)
		if err != nil {
			return nil, fmt.Errorf("the Debian package %s %s: %w", p.Name, p.Version, err)
		}
		if !found {
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

// copyFrom copies a package from a folder, which may be "", into the cache, and reports whether the folder has it.
func (p Package) copyFrom(folder, cache string) (found bool, err error) {
	if folder == "" {
		return false, nil
	}
	f, err := os.Open(filepath.Join(folder, p.FileName()))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	if err := os.MkdirAll(cache, 0o777); err != nil {
		return false, err
	}
	if err := p.keep(f, cache); err != nil {
		return false, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return true, nil
}

// keep writes a package into the cache.
func (p Package) keep(r io.Reader, cache string) error {
	return keep(r, filepath.Join(cache, p.FileName()), p.Size, p.SHA256, "debian.lock")
}

// keep writes a file with a size and a SHA-256, which something says it has.
func keep(r io.Reader, to string, size int64, want, says string) error {
	err := atomicfile.Write(to, 0o600, func(w io.Writer) error {
		got, _, err := checksum.SHA256(io.TeeReader(io.LimitReader(r, size+1), w))
		if err == nil && got != want {
			err = fmt.Errorf("its SHA-256 is %s, and %s says %s", got, says, want)
		}
		return err
	})
	if err != nil && runtime.GOOS == "windows" {
		if sum, _ := checksum.File(to); sum == want {
			return nil // another process has made it, and has it open
		}
	}
	return err
}

// fetch puts a package into the cache.
func (m *mirrors) fetch(ctx context.Context, cache string, p Package) error {
	err := m.get(ctx, p.Archive, p.Path, func(r io.Reader) error { return p.keep(r, cache) })
	switch {
	case errors.Is(err, errGone):
		return fmt.Errorf("the Debian package %s %s: %w: %w, or the mirror keeps no old versions", p.Name, p.Version, err, ErrLock)
	case err != nil:
		return fmt.Errorf("the Debian package %s %s: %w", p.Name, p.Version, err)
	}
	return nil
}
