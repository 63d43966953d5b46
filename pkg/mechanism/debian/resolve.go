package debian

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ulikunitz/xz"
	"golang.org/x/sync/errgroup"
)

// Resolve asks Debian's archives for the packages of requests and their dependencies, for some architectures by Go's names. It returns a
// lock for each request.
//
// A suite is asked for in the main archive and, as SUITE-security, in that of security fixes; of each package, the newest version counts.
// The archives' indexes are checked against their Release files, and these by the keys of Debian's archive. What cannot be checked, or
// asked for fixes, is an error, unless [Sources] say otherwise.
func Resolve(ctx context.Context, from Sources, requests []*PackageRequest, goarchs []string) ([]*Lock, error) {
	return resolve(ctx, from, requests, goarchs, "/")
}

func resolve(ctx context.Context, from Sources, requests []*PackageRequest, goarchs []string, root string) ([]*Lock, error) {
	m, err := from.findMirrors(root)
	if err != nil {
		return nil, err
	}
	keys, err := from.keys(filepath.Join(root, filepath.FromSlash(keyring)))
	if err != nil {
		return nil, err
	}
	at := time.Now().UTC()
	r := resolver{mirrors: m, keys: keys, at: at, fixes: from.Security != Off}
	locks := make([]*Lock, len(requests))
	for _, suite := range suitesOf(requests) {
		indexes, err := r.indexes(ctx, suite, goarchs)
		if err != nil {
			return nil, err
		}
		for i, request := range requests {
			if request.Suite != suite {
				continue
			}
			locks[i] = &Lock{Suite: suite, Time: at.Format(timeFormat)}
			for j, in := range indexes {
				packages, err := request.closure(in)
				if err != nil {
					return nil, fmt.Errorf("%s of %s: %w", Arch(goarchs[j]), suite, err)
				}
				locks[i].Packages = append(locks[i].Packages, packages...)
			}
		}
	}
	return locks, nil
}

func suitesOf(requests []*PackageRequest) []string {
	var suites []string
	for _, request := range requests {
		suites = append(suites, request.Suite)
	}
	slices.Sort(suites)
	return slices.Compact(suites)
}

// A resolver reads the indexes of archives.
type resolver struct {
	*mirrors
	keys  keys
	at    time.Time
	fixes bool // the archive of security fixes is asked
}

// ErrSecurity says that nothing names an archive of security fixes.
var ErrSecurity = errors.New("nothing says where Debian's security fixes are: set SLIPWAY_DEBIAN_SECURITY_MIRROR to a mirror of them, " +
	"or to off to do without")

// indexes returns the packages of a suite, for each architecture.
func (r *resolver) indexes(ctx context.Context, suite string, goarchs []string) ([]*index, error) {
	parts := []part{{r, Main, suite, nil}}
	if r.fixes && suite != "sid" { // which gets fixes directly
		if len(r.now[Security]) == 0 {
			return nil, ErrSecurity
		}
		parts = append(parts, part{r, Security, suite + "-security", nil})
	}
	for i := range parts {
		if err := parts[i].readRelease(ctx); err != nil {
			return nil, err
		}
	}
	found := make([]*index, len(goarchs))
	all, ctx := errgroup.WithContext(ctx)
	for i, goarch := range goarchs {
		all.Go(func() (err error) { // to unpack an index takes seconds
			var packages [][]indexed
			for _, p := range parts {
				more, err := p.packages(ctx, Arch(goarch))
				if err != nil {
					return err
				}
				packages = append(packages, more)
			}
			found[i], err = newest(packages...)
			return err
		})
	}
	return found, all.Wait()
}

// A part is a suite of an archive.
type part struct {
	*resolver
	archive, suite string
	release        textproto.MIMEHeader // its Release file
}

func (p part) file(name string) string { return "dists/" + p.suite + "/" + name }

func (p *part) readRelease(ctx context.Context) error {
	name := p.file("InRelease")
	data, err := p.read(ctx, p.archive, name)
	if err != nil {
		return err
	}
	text, err := p.keys.open(data)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if p.release, err = fieldsIn(bytes.NewReader(text)).ReadMIMEHeader(); err != nil && err != io.EOF {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := p.check(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// check returns an error if the Release file is of another suite, or too old: a mirror could hold back fixes with it.
func (p *part) check() error {
	if fields := p.release; fields.Get("Codename") != p.suite && fields.Get("Suite") != p.suite {
		return fmt.Errorf("it is of the suite %q, codename %q", fields.Get("Suite"), fields.Get("Codename"))
	} else if until := fields.Get("Valid-Until"); until != "" && !p.keys.off {
		if at, err := time.Parse(time.RFC1123, until); err != nil {
			return fmt.Errorf("Valid-Until: %w", err)
		} else if p.at.After(at) {
			return fmt.Errorf("it was valid until %s: the mirror is not up to date, or the clock of this machine is wrong", until)
		}
	}
	return nil
}

// packages returns the packages of an architecture, as the index that the Release file names has them.
func (p part) packages(ctx context.Context, arch string) ([]indexed, error) {
	name := "main/binary-" + arch + "/Packages.xz"
	plain, err := p.index(ctx, name)
	if err != nil {
		return nil, err
	}
	packages, err := readIndex(p.archive, arch, plain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.file(name), err)
	}
	return packages, nil
}

// index returns an index that the Release file names, unpacked.
func (p part) index(ctx context.Context, short string) (io.Reader, error) {
	name := p.file(short)
	sum := p.sum(short)
	if sum == "" {
		return nil, fmt.Errorf("%s names no %s", p.file("InRelease"), short)
	}
	data, err := []byte(nil), errGone
	if p.release.Get("Acquire-By-Hash") == "yes" { // so an index fits, however a mirror or a proxy caches it
		data, err = p.read(ctx, p.archive, p.file(path.Dir(short)+"/by-hash/SHA256/"+sum))
	}
	if errors.Is(err, errGone) { // as with apt: some mirrors keep no indexes by their hash
		data, err = p.read(ctx, p.archive, name)
	}
	if err != nil {
		return nil, err
	}
	if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("%s: its SHA-256 is %x, and that in InRelease is %s; the mirror may be changing: try again", name, got, sum)
	}
	plain, err := xz.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return plain, nil
}

// maxIndex is a limit that no file of a suite reaches, in bytes.
const maxIndex = 256 << 20

func (m *mirrors) read(ctx context.Context, archive, path string) (data []byte, err error) {
	err = m.get(ctx, archive, path, func(r io.Reader) error {
		data, err = io.ReadAll(io.LimitReader(r, maxIndex))
		return err
	})
	return data, err
}

// sum returns the SHA-256 of a file that the Release file names, or "".
func (p part) sum(name string) string {
	for file := range slices.Chunk(strings.Fields(p.release.Get("SHA256")), 3) { // sum, size, name
		if file[len(file)-1] == name {
			return file[0]
		}
	}
	return ""
}
