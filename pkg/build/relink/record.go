package relink

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"debug/macho"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/atomicfile"
)

// A Record says how a program is made of another one that differs only in its values.
type Record struct {
	Size    int64   // bytes
	BuildID []int64 // offsets, bytes
	Rest    string  // the two parts of the build ID in its middle, which are those of the main package
	HostID  int64   // offset of the GNU build ID of an ELF file, or of the UUID of a Mach-O file; 0 if there is none
	Values  []Value
	Action  Action
}

// A Value is a string that -X sets.
type Value struct {
	Name    string  // of the variable, with the import path of its package
	Length  int     // bytes
	Offsets []int64 // bytes; none if the program does not use the variable
}

// An Action is what the go command computes the action ID of a link from, as text, in three parts.
type Action struct {
	Before string
	Flags  []string // for the linker
	After  string
}

func (a Action) id(flags []string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%slinkflags %q\n%s", a.Before, flags, a.After)
	return idString(h.Sum(nil))
}

// idString returns a digest as a build ID has it: 120 bits in base64 (HashToString in cmd/internal/buildid).
func idString(sum []byte) string { return base64.URLEncoding.EncodeToString(sum[:15]) }

var errOther = errors.New("the program cannot be copied")

// find finds what the linker has written into a program because of a build ID.
func (r *Record) find(data []byte, buildID string) error {
	parts := strings.Split(buildID, "/")
	if len(parts) != 4 {
		return errOther
	}
	r.Rest = parts[1] + "/" + parts[2]
	r.BuildID = offsets(data, buildID)
	if len(r.BuildID) == 0 {
		return errOther
	}
	format, err := formatOf(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	if id := format.hostID(buildID); id != "" {
		at := offsets(data, id)
		if len(at) != 1 {
			return errOther
		}
		r.HostID = at[0]
	}
	return nil
}

// A file is a program that is open for reading and writing.
type file interface {
	io.ReaderAt
	io.WriterAt
}

// with changes a program to the one with these values, by name. They must be all that the record names, in their lengths.
func (r Record) with(f file, values map[string]string) error {
	format, err := formatOf(f, r.Size)
	if err != nil {
		return err
	}
	put := func(at int64, s string) {
		if at < 0 || at > r.Size-int64(len(s)) {
			err = errors.Join(err, fmt.Errorf("%w: there is no offset %d", errOther, at))
			return
		}
		_, failed := f.WriteAt([]byte(s), at)
		err = errors.Join(err, failed)
	}
	flags := slices.Clone(r.Action.Flags)
	for _, v := range r.Values {
		value := values[v.Name]
		if len(value) != v.Length {
			return fmt.Errorf("%w: %s has %d bytes instead of %d", errOther, v.Name, len(value), v.Length)
		}
		for i := 1; i < len(flags); i++ {
			if flags[i-1] == "-X" && strings.HasPrefix(flags[i], v.Name+"=") {
				flags[i] = v.Name + "=" + value
			}
		}
		for _, at := range v.Offsets {
			put(at, value)
		}
	}
	action := r.Action.id(flags)
	linked := action + "/" + r.Rest + "/" + action // what the linker gets
	host := format.hostID(linked)

	// The last part is the digest of a file with zeros where it depends on the build ID (FindAndHash in cmd/internal/buildid).
	zeros := strings.Repeat("\x00", len(linked))
	for _, at := range r.BuildID {
		put(at, zeros)
	}
	put(r.HostID, zeros[:len(host)])
	h := sha256.New()
	for _, part := range []io.Reader{
		io.NewSectionReader(f, 0, format.code),
		bytes.NewReader(make([]byte, format.signature)),
		io.NewSectionReader(f, format.code+format.signature, r.Size-format.code-format.signature),
	} {
		_, failed := io.Copy(h, part)
		err = errors.Join(err, failed)
	}
	id := action + "/" + r.Rest + "/" + idString(h.Sum(nil))
	for _, at := range r.BuildID {
		put(at, id)
	}
	put(r.HostID, host)
	if err != nil {
		return err
	}
	return format.sign(f)
}

// A format is that of a program.
type format struct {
	hostID    func(buildID string) string // see gnuID and uuid
	code      int64                       // bytes until the signature of a Mach-O file, or until the end
	signature int64                       // its bytes
}

func formatOf(f io.ReaderAt, size int64) (format, error) {
	start := make([]byte, 4)
	if _, err := f.ReadAt(start, 0); err != nil {
		return format{}, err
	}
	switch {
	case string(start) == elf.ELFMAG:
		return format{gnuID, size, 0}, nil
	case string(start[:2]) == "MZ":
		return format{func(string) string { return "" }, size, 0}, nil
	}
	program, err := macho.NewFile(f)
	if err != nil {
		return format{}, fmt.Errorf("%w: neither ELF nor Mach-O nor PE", errOther)
	}
	for _, l := range program.Loads {
		const codeSignature = 0x1d
		raw, number := l.Raw(), program.ByteOrder.Uint32
		if number(raw) == codeSignature && len(raw) >= 16 {
			code, signature := int64(number(raw[8:])), int64(number(raw[12:]))
			if code+signature > size {
				return format{}, fmt.Errorf("%w: its signature is cut off", errOther)
			}
			return format{uuid, code, signature}, nil
		}
	}
	return format{uuid, size, 0}, nil
}

// gnuID returns the GNU build ID that the linker derives from Go's (addbuildinfo in cmd/link/internal/ld, Sum32 in cmd/internal/hash).
func gnuID(buildID string) string {
	sum := sha256.Sum256([]byte(buildID))
	sum[0] ^= 0xff
	return string(sum[:20])
}

// uuid returns the UUID that the linker derives from Go's build ID (uuidFromGoBuildId in cmd/link/internal/ld).
func uuid(buildID string) string {
	id := []byte(gnuID(buildID))[:16]
	id[6] = id[6]&0x0f | 0x30 // version 3
	id[8] = id[8]&0x3f | 0xc0 // the variant of RFC 4122
	return string(id)
}

// sign computes the digests of pages in the signature of a Mach-O file. The rest of a signature that the linker has made depends on the size of
// the program, not on its contents (Sign in cmd/internal/codesign). All numbers in it are big-endian.
func (f format) sign(program file) error {
	if f.signature == 0 {
		return nil
	}
	const directory = 20 // offset of the code directory: it follows a header and an index of one entry
	const hashOffset, slots, limit, kind = directory + 16, directory + 28, directory + 32, directory + 36
	start := make([]byte, kind+4)
	if _, err := program.ReadAt(start, f.code); err != nil {
		return err
	}
	number := func(at int) int64 { return int64(binary.BigEndian.Uint32(start[at:])) }
	const page = 4096
	first, n := directory+number(hashOffset), (f.code+page-1)/page
	if number(0) != 0xfade0cc0 || number(directory) != 0xfade0c02 || number(limit) != f.code || number(slots) != n ||
		!bytes.Equal(start[kind:], []byte{sha256.Size, 2, 0, 12}) || first+n*sha256.Size > f.signature {
		return fmt.Errorf("%w: its signature is not the linker's", errOther)
	}
	sums := make([]byte, 0, n*sha256.Size)
	code := bufio.NewReaderSize(io.NewSectionReader(program, 0, f.code), 64*page)
	for range n {
		h := sha256.New()
		if _, err := io.CopyN(h, code, page); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		sums = h.Sum(sums)
	}
	_, err := program.WriteAt(sums, f.code+first)
	return err
}

func readRecord(file string) (Record, error) {
	var r Record
	data, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("the record of a link: %w", err)
	}
	return r, nil
}

func (r Record) write(file string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(file, append(data, '\n'), 0o644)
}
