package rpm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A File is an rpm that was read: its headers, and where they are.
type File struct {
	Start, End int64 // of the main header, bytes
	Header     []byte

	lead       []byte
	signatures []tag
	tags       map[uint32]tag
}

// maxHeader bounds a header, in bytes.
const maxHeader = 64 << 20

// Read reads the headers of an rpm, and nothing after them.
func Read(r io.Reader) (*File, error) {
	f := &File{lead: make([]byte, 96), tags: map[uint32]tag{}}
	if _, err := io.ReadFull(r, f.lead); err != nil || !bytes.HasPrefix(f.lead, []byte{0xed, 0xab, 0xee, 0xdb}) {
		return nil, errors.New("it is not an rpm")
	}
	signature, tags, err := readHeader(r)
	if err != nil {
		return nil, fmt.Errorf("the header of digests: %w", err)
	}
	f.signatures = tags
	f.Start = int64(96 + len(signature) + -len(signature)&7)
	if _, err := io.CopyN(io.Discard, r, int64(-len(signature)&7)); err != nil {
		return nil, err
	}
	if f.Header, tags, err = readHeader(r); err != nil {
		return nil, fmt.Errorf("the header: %w", err)
	}
	f.End = f.Start + int64(len(f.Header))
	for _, t := range tags {
		f.tags[t.id] = t
	}
	return f, nil
}

// readHeader reads a header, and the tags in it without that of the region.
func readHeader(r io.Reader) (data []byte, tags []tag, err error) {
	preamble := make([]byte, 16)
	if _, err := io.ReadFull(r, preamble); err != nil {
		return nil, nil, err
	}
	count, size := int64(binary.BigEndian.Uint32(preamble[8:])), int64(binary.BigEndian.Uint32(preamble[12:]))
	if !bytes.HasPrefix(preamble, []byte{0x8e, 0xad, 0xe8, 1}) || count*16 > maxHeader || size > maxHeader {
		return nil, nil, errors.New("it is malformed")
	}
	rest := make([]byte, count*16+size)
	if _, err := io.ReadFull(r, rest); err != nil {
		return nil, nil, err
	}
	values := rest[count*16:]
	for i := range count {
		e := rest[i*16:]
		t := tag{id: binary.BigEndian.Uint32(e), kind: binary.BigEndian.Uint32(e[4:]), count: binary.BigEndian.Uint32(e[12:])}
		if t.id == signatureRegion || t.id == mainRegion {
			continue
		}
		offset := int64(binary.BigEndian.Uint32(e[8:]))
		if offset > size {
			return nil, nil, errors.New("a value is outside of it")
		}
		if t.data, err = t.value(values[offset:]); err != nil {
			return nil, nil, err
		}
		tags = append(tags, t)
	}
	return append(preamble, rest...), tags, nil
}

// value returns the bytes of a tag's value, of all that follows.
func (t tag) value(data []byte) ([]byte, error) {
	size := int64(t.count)
	switch t.kind {
	case typeInt16:
		size *= 2
	case typeInt32:
		size *= 4
	case typeString, typeStringArray, typeI18N:
		size = 0
		for range t.count {
			n := bytes.IndexByte(data[size:], 0)
			if n < 0 {
				return nil, errors.New("a text has no end")
			}
			size += int64(n) + 1
		}
	}
	if size > int64(len(data)) {
		return nil, errors.New("a value is outside of it")
	}
	return data[:size], nil
}

// texts returns the texts of a tag.
func (f *File) texts(id uint32) []string {
	data := f.tags[id].data
	if len(data) == 0 {
		return nil
	}
	var all []string
	for text := range bytes.SplitSeq(data[:len(data)-1], []byte{0}) {
		all = append(all, string(text))
	}
	return all
}

// text returns the first text of a tag, or "".
func (f *File) text(id uint32) string {
	if all := f.texts(id); len(all) > 0 {
		return all[0]
	}
	return ""
}

// numbers returns the numbers of a tag.
func (f *File) numbers(id uint32) []uint32 {
	t := f.tags[id]
	var all []uint32
	for data := t.data; len(data) >= 2; {
		if t.kind == typeInt16 {
			all, data = append(all, uint32(binary.BigEndian.Uint16(data))), data[2:]
			continue
		}
		all, data = append(all, binary.BigEndian.Uint32(data)), data[4:]
	}
	return all
}

func (f *File) number(id uint32) int64 {
	if all := f.numbers(id); len(all) > 0 {
		return int64(all[0])
	}
	return 0
}

// Info is what a header says of a package, as metadata of repositories have it.
type Info struct {
	Name, Version, Release, Arch                                         string
	Summary, Description, Packager, URL, License, Group, Host, SourceRPM string
	Changes                                                              string // in this version
	Built, Installed, Unpacked                                           int64  // seconds since 1970, bytes, bytes

	Provides, Requires, Conflicts, Recommends []Dependency

	Files []Path
}

// A Dependency names packages by a name and a range of versions.
type Dependency struct {
	Name, Flags, Version, Release string

	Before bool // what has it must be there before the package is installed
}

// A Path is a file or a folder of a package.
type Path struct {
	Name   string
	Folder bool
}

// Info returns what the header says. What only rpm itself has to provide is left out.
func (f *File) Info() Info {
	i := Info{
		Name: f.text(1000), Version: f.text(1001), Release: f.text(1002), Arch: f.text(1022),
		Summary: f.text(1004), Description: f.text(1005), Packager: f.text(1015), URL: f.text(1020),
		License: f.text(1014), Group: f.text(1016), Host: f.text(1007),
		SourceRPM: f.text(1044), Changes: f.text(1082),
		Built: f.number(1006), Installed: f.number(1009),
		Provides: f.dependencies(1047, 1112, 1113), Requires: f.dependencies(1049, 1048, 1050),
		Conflicts: f.dependencies(1054, 1053, 1055), Recommends: f.dependencies(5046, 5048, 5047),
	}
	for _, t := range f.signatures {
		if t.id == 1007 && len(t.data) == 4 {
			i.Unpacked = int64(binary.BigEndian.Uint32(t.data))
		}
	}
	dirs, of, modes := f.texts(1118), f.numbers(1116), f.numbers(1030)
	for n, base := range f.texts(1117) {
		if n < len(of) && n < len(modes) && int(of[n]) < len(dirs) {
			i.Files = append(i.Files, Path{dirs[of[n]] + base, modes[n]&linkBits == 0})
		}
	}
	return i
}

func (f *File) dependencies(name, flags, version uint32) []Dependency {
	ofFlags, versions := f.numbers(flags), f.texts(version)
	var all []Dependency
	for i, n := range f.texts(name) {
		d := Dependency{Name: n}
		if i >= len(ofFlags) || i >= len(versions) || ofFlags[i]&ofRPM != 0 {
			continue
		}
		d.Flags = map[uint32]string{
			less: "LT", less | equal: "LE", equal: "EQ", greater | equal: "GE", greater: "GT",
		}[ofFlags[i]&(less|greater|equal)]
		d.Version, d.Release, _ = strings.Cut(versions[i], "-") // a version has no minus
		d.Before = ofFlags[i]&(ofScript|ofScript<<1) != 0
		if !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all
}

// Signed returns what comes before the main header in a copy of the file that is signed: the lead, and a header of digests with a
// signature of the main header. The rest of the file stays. IsRSA says of which kind the signature is.
func (f *File) Signed(signature []byte, isRSA bool) []byte {
	id := uint32(ofOther)
	if isRSA {
		id = ofRSA
	}
	return f.begin(tag{id, typeBinary, uint32(len(signature)), signature})
}

// Signature returns the signature of the main header in the file, or nil if there is none.
func (f *File) Signature() []byte {
	for _, t := range f.signatures {
		if t.id == ofOther || t.id == ofRSA {
			return t.data
		}
	}
	return nil
}

// Unsigned returns what comes before the main header in the file that Signed had a copy of.
func (f *File) Unsigned() []byte { return f.begin() }

// Tags of signatures of the main header, by EdDSA and others, and by RSA.
const (
	ofOther = 267
	ofRSA   = 268
)

// begin returns the lead, and a header of digests with other signatures.
func (f *File) begin(signatures ...tag) []byte {
	tags := signatures
	for _, t := range f.signatures {
		if t.id != ofOther && t.id != ofRSA {
			tags = append(tags, t)
		}
	}
	h := header(signatureRegion, tags)
	return append(append(bytes.Clone(f.lead), h...), make([]byte, -len(h)&7)...)
}
