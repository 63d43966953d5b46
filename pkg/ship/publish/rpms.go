package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/openpgp"
	"slipway.build/pkg/mechanism/rpm"
	"slipway.build/pkg/mechanism/yum"
)

// A signedRPM is a copy of an rpm with a signature: another beginning, and the rest of the unsigned one, from the main header on.
type signedRPM struct {
	packageFile // the unsigned one
	unsigned    *rpm.File
	at          time.Time // of the signature
	object      int       // its index in objects

	signature []byte // nil: not signed yet
	stays     bool   // as it is at the target, with the signature of a key that signs no more
	entry     yum.Entry
}

func (rs *packages) addRPM(arch string, p packageFile, at time.Time) error {
	f, err := p.open()
	if err != nil {
		return err
	}
	defer f.Close()
	unsigned, err := rpm.Read(f)
	if err != nil {
		return err
	}
	rs.rpms = append(rs.rpms, &signedRPM{packageFile: p, unsigned: unsigned, at: at, object: len(rs.objects)})
	rs.objects = append(rs.objects, Object{Path: path.Join(rs.folder, "rpm", arch, p.name)})
	return nil
}

// signRPMs signs the rpms that are not at the target, each by the first key: rpm reads one signature. A copy there that another key has
// signed stays if that is one of the keys, or if the index lists the copy, which one of the keys has signed. It returns the names of those
// that stay for the second reason. Objects begin with those of the packages.
func (rs *packages) signRPMs(ctx context.Context, objects []Object) (otherKey []string, err error) {
	_, listed, err := rs.rpmsBefore(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range rs.rpms {
		if o := &objects[r.object]; o.State != There {
			if err := rs.signRPM(ctx, r, o, listed); err != nil {
				return nil, fmt.Errorf("%s: %w", r.name, err)
			}
		}
		if r.stays {
			otherKey = append(otherKey, r.name)
		}
	}
	return otherKey, nil
}

func (rs *packages) signRPM(ctx context.Context, r *signedRPM, o *Object, listed []yum.Entry) error {
	s, found, err := rs.signatureThere(ctx, o.Path, r.unsigned.Header)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(listed, func(e yum.Entry) bool { return path.Join(rs.folder, "rpm", e.Location) == o.Path })
	if !found && i >= 0 {
		e := listed[i]
		there, err := rs.channel.Head(ctx, o.Path, e.Size, e.SHA256)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if there {
			r.stays, r.entry = true, e
			*o = Object{Path: o.Path, Size: e.Size, SHA256: e.SHA256, State: There}
			return nil
		}
	}
	if !found {
		if s, err = rs.Keys[0].Sign(ctx, r.unsigned.Header, r.at); err != nil {
			return err
		}
	}
	if bytes.Equal(s.Packet, r.signature) {
		return nil
	}
	return r.sign(s, o)
}

// signatureThere returns the signature by one of the keys that an rpm at the target has, if its main header is as it should be.
func (rs *packages) signatureThere(ctx context.Context, name string, header []byte) (s openpgp.Signature, found bool, err error) {
	f, err := rs.channel.Open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err != nil {
		return s, false, err
	}
	defer f.Close()
	there, err := rpm.Read(f)
	if err != nil { // something else is there, which is reported later
		return s, false, nil
	}
	s, found = rs.Keys.Find(header, there.Signature())
	return s, found, nil
}

// sign makes the object of the copy with a signature.
func (r *signedRPM) sign(s openpgp.Signature, o *Object) error {
	begin := r.unsigned.Signed(s.Packet, s.IsRSA)
	rest := r.size - r.unsigned.Start
	open := func() (io.ReadCloser, error) {
		f, err := r.open()
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(begin), io.NewSectionReader(f, r.unsigned.Start, rest)), f}, nil
	}
	from, err := open()
	if err != nil {
		return err
	}
	defer from.Close()
	digest, size, err := checksum.SHA256(from)
	if err != nil {
		return err
	}
	*o = Object{Path: o.Path, Size: size, SHA256: digest, open: open}
	signed := *r.unsigned
	signed.Start = int64(len(begin))
	signed.End = signed.Start + int64(len(signed.Header))
	r.signature, r.stays = s.Packet, false
	r.entry, err = yum.NewEntry(&signed, path.Join(path.Base(path.Dir(o.Path)), path.Base(o.Path)), size, digest)
	return err
}

// entries returns the release's rpms as the index has them.
func (rs *packages) entries() (all []yum.Entry) {
	for _, r := range rs.rpms {
		all = append(all, r.entry)
	}
	return all
}
