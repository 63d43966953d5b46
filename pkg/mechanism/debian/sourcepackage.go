package debian

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/checksum"
)

// A SourcePackage is a version of what packages are built from: a .dsc file, and the files that it names.
type SourcePackage struct {
	Name, Version string
	Archive       string // that has it: Main or Security
	Files         []SourceFile
	Packages      []string // that are built from it: NAME_VERSION_ARCHITECTURE

	guessed bool // Version is that of a package, as the lock names none of the source
}

var rebuilt = regexp.MustCompile(`\+b\d+$`)

// is reports whether it has a version. If it is only known what a package has, versions that Debian makes of the source's count, too: when
// a package is built again, +b1 is added, and a package may have an epoch where its source has none.
func (s SourcePackage) is(version string) bool {
	if !s.guessed {
		return s.Version == version
	}
	plain := rebuilt.ReplaceAllString(s.Version, "")
	_, noEpoch, _ := strings.Cut(plain, ":")
	return version == s.Version || version == plain || version == noEpoch
}

// A SourceFile is a file of a source package.
type SourceFile struct {
	Path   string // below the archive's root
	Size   int64  // bytes
	SHA256 string // in hex
	File   string // on this machine
}

// FetchSources returns the source packages that a lock's packages are built from, sorted, with their files below the user's cache folder.
//
// The index of sources of each archive says which files these are, and their sums. It is checked as Resolve checks indexes. A version
// that mirrors no longer list is looked for in an archive of the past, at the lock's time.
func FetchSources(ctx context.Context, from Sources, lock *Lock, progress func(string)) ([]SourcePackage, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	return fetchSources(ctx, from, lock, progress, filepath.Join(dir, "slipway", "debian"), "/")
}

func fetchSources(ctx context.Context, from Sources, lock *Lock, progress func(string), cache, root string) ([]SourcePackage, error) {
	m, err := from.find(lock, root)
	if err != nil {
		return nil, err
	}
	keys, err := from.keys(filepath.Join(root, filepath.FromSlash(keyring)))
	if err != nil {
		return nil, err
	}
	found := SourcesOf(lock)
	if err := m.listSources(ctx, lock, keys, found); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cache, 0o777); err != nil {
		return nil, err
	}
	progress(fmt.Sprintf("fetching the sources of %d Debian packages", len(lock.Packages)))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i := range found {
		s := &found[i]
		for j := range s.Files {
			f := &s.Files[j]
			f.File = filepath.Join(cache, f.SHA256+".source")
			if sum, err := checksum.File(f.File); err == nil && sum == f.SHA256 {
				continue
			}
			g.Go(func() error {
				err := m.get(ctx, s.Archive, f.Path, func(r io.Reader) error { return keep(r, f.File, f.Size, f.SHA256, "the index of sources") })
				if err != nil {
					return fmt.Errorf("the Debian source package %s %s: %w", s.Name, s.Version, err)
				}
				progress(path.Base(f.Path))
				return nil
			})
		}
	}
	return found, g.Wait()
}

// SourcesOf returns the source packages that a lock names, without files.
func SourcesOf(lock *Lock) []SourcePackage {
	type key struct{ archive, name, version string }
	byKey := map[key]*SourcePackage{}
	for _, p := range lock.Packages {
		k := key{p.Archive, p.Source(), cmp.Or(p.SourceVersion, p.Version)}
		if byKey[k] == nil {
			byKey[k] = &SourcePackage{Name: k.name, Version: k.version, Archive: k.archive, guessed: p.SourceVersion == ""}
		}
		name := strings.TrimSuffix(path.Base(p.Path), ".deb")
		if s := byKey[k]; !slices.Contains(s.Packages, name) { // one for all architectures is listed for each
			s.Packages = append(s.Packages, name)
		}
	}
	var all []SourcePackage
	for _, s := range byKey {
		slices.Sort(s.Packages)
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b SourcePackage) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version), strings.Compare(a.Archive, b.Archive))
	})
	return all
}

// listSources fills in the files of source packages: first those that archives have now, then those of the past.
func (m *mirrors) listSources(ctx context.Context, lock *Lock, keys keys, wanted []SourcePackage) error {
	var errs []error
	lists := func(some *mirrors, at time.Time) {
		for archive, suite := range map[string]string{Main: lock.Suite, Security: lock.Suite + "-security"} {
			lacks := func(s SourcePackage) bool { return s.Archive == archive && len(s.Files) == 0 }
			if !slices.ContainsFunc(wanted, lacks) || len(some.now[archive])+len(some.past[archive]) == 0 {
				continue
			}
			p := part{&resolver{mirrors: some, keys: keys, at: at}, archive, suite, nil}
			if err := p.listSources(ctx, wanted); err != nil {
				errs = append(errs, err)
			}
		}
	}
	now := *m
	now.past = nil
	lists(&now, time.Now().UTC())
	if at, err := time.Parse(timeFormat, lock.Time); err == nil {
		for i := range m.past[Main] { // each time by itself: an index fits the Release file of its time alone
			then := *m
			then.now, then.past = nil, map[string][]string{Main: m.past[Main][i : i+1], Security: m.past[Security][i : i+1]}
			lists(&then, at)
		}
	}
	var missing []string
	for _, s := range wanted {
		if len(s.Files) == 0 {
			missing = append(missing, fmt.Sprintf("%s %s (of %s)", s.Name, s.Version, s.Archive))
		}
	}
	if len(missing) == 0 {
		return nil // what failed was not needed
	}
	return errors.Join(append([]error{fmt.Errorf("no index of sources lists %s: the mirrors keep no old versions, and no archive of the past "+
		"has them: %w", strings.Join(missing, ", "), ErrLock)}, errs...)...)
}

// listSources fills in the files of those source packages that an archive lists.
func (p part) listSources(ctx context.Context, wanted []SourcePackage) error {
	if err := p.readRelease(ctx); err != nil {
		return err
	}
	const name = "main/source/Sources.xz"
	plain, err := p.index(ctx, name)
	if err != nil {
		return err
	}
	for r := fieldsIn(io.LimitReader(plain, maxUnpacked)); ; {
		fields, err := r.ReadMIMEHeader()
		if err != nil && err != io.EOF {
			return fmt.Errorf("%s: %w", p.file(name), err)
		}
		for i := range wanted {
			s := &wanted[i]
			if s.Archive != p.archive || s.Name != fields.Get("Package") || !s.is(fields.Get("Version")) || len(s.Files) > 0 {
				continue
			}
			s.Version = fields.Get("Version")
			var bad error
			if s.Files, bad = sourceFiles(fields.Get("Directory"), fields.Get("Checksums-Sha256")); bad != nil {
				return fmt.Errorf("%s: %s %s: %w", p.file(name), s.Name, s.Version, bad)
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// sourceFiles reads the files of an entry of an index of sources: for each its SHA-256, size and name.
func sourceFiles(folder, sums string) ([]SourceFile, error) {
	var files []SourceFile
	for words := range slices.Chunk(strings.Fields(sums), 3) {
		if len(words) < 3 {
			return nil, fmt.Errorf("Checksums-Sha256 ends with %q", words)
		}
		size, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil || len(words[0]) != 64 || path.Base(words[2]) != words[2] || path.Clean("/"+folder) != "/"+folder {
			return nil, fmt.Errorf("%q in %q is not a file with its SHA-256 and size", words, folder)
		}
		files = append(files, SourceFile{Path: path.Join(folder, words[2]), Size: size, SHA256: words[0]})
	}
	if !slices.ContainsFunc(files, func(f SourceFile) bool { return path.Ext(f.Path) == ".dsc" }) {
		return nil, errors.New("it has no .dsc file")
	}
	slices.SortFunc(files, func(a, b SourceFile) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}
