package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/openpgp"
	"slipway.build/pkg/mechanism/rpm"
	"slipway.build/pkg/mechanism/yum"
	"slipway.build/pkg/release"
)

// A signedRPM is a copy of an rpm with a signature: another beginning, and the rest of the unsigned one, from the main header on.
type signedRPM struct {
	file     string // the unsigned one
	size     int64  // of that
	unsigned *rpm.File
	object   int // its index in objects

	signature []byte // nil: not signed yet
	entry     yum.Entry
}

func (rs *packages) addRPM(a release.Artifact, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	unsigned, err := rpm.Read(f)
	if err != nil {
		return err
	}
	rs.rpms = append(rs.rpms, &signedRPM{file: file, size: a.Size, unsigned: unsigned, object: len(rs.objects)})
	rs.objects = append(rs.objects, Object{Path: path.Join(rs.folder, "rpm", a.Identity.Arch, path.Base(a.Path))})
	return nil
}

// signRPMs signs the rpms that are not at the target, each by the first key: rpm reads one signature. A copy there that one of the keys has
// signed stays. Objects begin with those of the packages.
func (rs *packages) signRPMs(ctx context.Context, objects []Object) error {
	for _, r := range rs.rpms {
		o := &objects[r.object]
		if o.State == There {
			continue
		}
		s, ok, err := rs.signatureThere(ctx, o.Path, r.unsigned.Header)
		if err == nil && !ok {
			s, err = rs.Keys[0].Sign(ctx, r.unsigned.Header, rs.date)
		}
		if err == nil && !bytes.Equal(s.Packet, r.signature) {
			err = r.sign(s, o)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.file, err)
		}
	}
	return nil
}

// signatureThere returns the signature by one of the keys that an rpm at the target has, if its main header is as it should be.
func (rs *packages) signatureThere(ctx context.Context, name string, header []byte) (s openpgp.Signature, ok bool, err error) {
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
	s, ok = rs.Keys.Find(header, there.Signature())
	return s, ok, nil
}

// sign makes the object of the copy with a signature.
func (r *signedRPM) sign(s openpgp.Signature, o *Object) error {
	begin := r.unsigned.Signed(s.Packet, s.IsRSA)
	rest := r.size - r.unsigned.Start
	open := func() (io.ReadCloser, error) {
		f, err := os.Open(r.file)
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
	r.signature = s.Packet
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
