package publish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"slipway.build/pkg/mechanism/apt"
	"slipway.build/pkg/mechanism/deb"
	"slipway.build/pkg/mechanism/openpgp"
	"slipway.build/pkg/mechanism/rpm"
	"slipway.build/pkg/mechanism/yum"
	"slipway.build/pkg/release"
)

// newPackages reads the packages of the release in a folder, and signs its rpms. Their main header and their payload stay.
func newPackages(ctx context.Context, dir string, r *release.Release, q Repositories, c Channel) (*packages, error) {
	rs := &packages{Repositories: q, channel: c, folder: repositoryFolder(r.Version), version: r.Version, date: r.Date,
		base: r.BasePackages}
	for _, a := range r.Artifacts {
		file := filepath.Join(dir, filepath.FromSlash(a.Path))
		p := packageFile{name: path.Base(a.Path), size: a.Size, open: func() (opened, error) { return os.Open(file) }}
		var err error
		switch a.Kind {
		case release.Deb:
			err = rs.addDeb(a.Identity.Arch, p, a.SHA256)
		case release.RPM:
			err = rs.addRPM(ctx, a.Identity.Arch, p, rs.date)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return rs, rs.addKeyring(ctx)
}

// A packageFile is a deb, or an rpm without a signature.
type packageFile struct {
	name string
	size int64 // bytes
	open func() (opened, error)
}

type opened interface {
	io.ReadCloser
	io.ReaderAt
}

func (rs *packages) addDeb(arch string, p packageFile, sum string) error {
	f, err := p.open()
	if err != nil {
		return err
	}
	defer f.Close()
	control, err := deb.Control(f)
	if err != nil {
		return err
	}
	name := path.Join(arch, p.name)
	rs.debs = append(rs.debs, apt.NewEntry(control, name, p.size, sum))
	rs.objects = append(rs.objects, Object{Path: path.Join(rs.folder, "deb", name), Size: p.size, SHA256: sum,
		open: func() (io.ReadCloser, error) { return p.open() }})
	return nil
}

// addRPM signs a copy of an rpm by the first key: rpm reads one signature. A copy at the target with the signature of another key stays, if
// that is one of the keys, or if it is in the index, which one of the keys has signed.
func (rs *packages) addRPM(ctx context.Context, arch string, p packageFile, at time.Time) error {
	f, err := p.open()
	if err != nil {
		return err
	}
	defer f.Close()
	unsigned, err := rpm.Read(f)
	if err != nil {
		return err
	}
	name := path.Join(arch, p.name)
	use, err := signRPM(f, name, p.size, unsigned, rs.Keys[0], at)
	if err != nil {
		return err
	}
	there, exists, err := rs.hasRPM(ctx, use.entry)
	for i := 1; i < len(rs.Keys) && exists && !there && err == nil; i++ {
		var other signedRPM
		if other, err = signRPM(f, name, p.size, unsigned, rs.Keys[i], at); err == nil {
			there, exists, err = rs.hasRPM(ctx, other.entry)
		}
		if there {
			use = other
		}
	}
	if exists && !there && err == nil {
		if use.entry, there, err = rs.listedRPM(ctx, use.entry); there {
			rs.otherKey = append(rs.otherKey, p.name)
		}
	}
	if err != nil {
		return err
	}
	rs.rpms = append(rs.rpms, use.entry)
	rs.objects = append(rs.objects, Object{Path: path.Join(rs.folder, "rpm", name), Size: use.entry.Size, SHA256: use.entry.SHA256,
		open: func() (io.ReadCloser, error) {
			f, err := p.open()
			if err != nil {
				return nil, err
			}
			return struct {
				io.Reader
				io.Closer
			}{use.read(f), f}, nil
		}})
	return nil
}

// hasRPM reports whether the target has an rpm, and whether it has a file of that name.
func (rs *packages) hasRPM(ctx context.Context, e yum.Entry) (there, exists bool, err error) {
	there, err = rs.channel.Head(ctx, path.Join(rs.folder, "rpm", e.Location), e.Size, e.SHA256)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	return there, true, err
}

// listedRPM returns what the index says of an rpm that the target has, with a signature by a key that signs no more. If that is not so, it
// returns the entry that it was given, of which the target has another file.
func (rs *packages) listedRPM(ctx context.Context, e yum.Entry) (_ yum.Entry, there bool, err error) {
	_, entries, err := rs.rpmsBefore(ctx)
	if err != nil {
		return e, false, err
	}
	for _, listed := range entries {
		if listed.Location != e.Location {
			continue
		}
		if there, _, err := rs.hasRPM(ctx, listed); err != nil || there {
			return listed, there, err
		}
	}
	return e, false, nil
}

// A signedRPM is an rpm with a signature: another beginning, and the rest of the unsigned one.
type signedRPM struct {
	begin []byte
	start int64 // of the rest
	entry yum.Entry
}

// signRPM signs an rpm of a size, which has a name in the repository.
func signRPM(f io.ReaderAt, name string, size int64, unsigned *rpm.File, key *openpgp.Key, at time.Time) (signedRPM, error) {
	signature, isRSA, err := key.Sign(unsigned.Header, at)
	if err != nil {
		return signedRPM{}, err
	}
	s := signedRPM{begin: unsigned.Signed(signature, isRSA), start: unsigned.Start}
	begin := int64(len(s.begin))
	s.entry.Size = begin + size - s.start
	sum := sha256.New()
	if _, err := io.Copy(sum, s.read(f)); err != nil {
		return s, err
	}
	signed := *unsigned
	signed.Start, signed.End = begin, begin+unsigned.End-unsigned.Start
	s.entry, err = yum.NewEntry(&signed, name, s.entry.Size, hex.EncodeToString(sum.Sum(nil)))
	return s, err
}

// read reads it, given the unsigned one.
func (s signedRPM) read(unsigned io.ReaderAt) io.Reader {
	return io.MultiReader(bytes.NewReader(s.begin), io.NewSectionReader(unsigned, s.start, s.entry.Size-int64(len(s.begin))))
}
