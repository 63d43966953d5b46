package relink

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/elf"
	"debug/macho"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/atomicfile"
)

// A Record says what in a program depends on its values, and how.
type Record struct {
	Size    int64   // bytes
	Values  []Value // all long ones
	BuildID []int64 // offsets, bytes
	HostID  int64   // offset of the GNU build ID of an ELF file, or of the UUID of a Mach-O file; 0 if there is none
	Main    string  // the two parts in the middle of the build ID, which are those of the main package
	Action  Action
}

// A Value is a string that -X sets.
type Value struct {
	Name    string // of the variable, with the import path of its package
	Text    string
	Offsets []int64 // bytes; none if the program does not use the variable
}

// An Action is what the go command computes the action ID of a link from, as text, in three parts.
type Action struct {
	Before string
	Flags  []string // for the linker
	After  string
}

func (a Action) id() string {
	h := sha256.New()
	fmt.Fprintf(h, "%slinkflags %q\n%s", a.Before, a.Flags, a.After)
	return idString(h.Sum(nil))
}

// idString returns a digest as a build ID has it: 120 bits in base64 (HashToString in cmd/internal/buildid).
func idString(sum []byte) string { return base64.URLEncoding.EncodeToString(sum[:15]) }

// linked returns the build ID that the linker gets. Its last part stands for the digest of the program, which the go command computes afterwards.
func (r Record) linked() string {
	id := r.Action.id()
	return id + "/" + r.Main + "/" + id
}

// errOther means that a program is not what its record says.
var errOther = errors.New("the program is not that of its record")

// find finds what the linker has written into a program because of a build ID.
func (r *Record) find(data []byte, buildID string) error {
	parts := strings.Split(buildID, "/")
	if len(parts) != 4 {
		return errOther
	}
	r.Main = parts[1] + "/" + parts[2]
	r.BuildID = offsets(data, buildID)
	if len(r.BuildID) == 0 || r.linked() != buildID {
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

// with returns the record of the program with other values, by name: they must be those that the record names, in their lengths.
func (r Record) with(values map[string]string) (Record, error) {
	if len(values) != len(r.Values) {
		return r, fmt.Errorf("%w: it has %d values, not %d", errOther, len(r.Values), len(values))
	}
	r.Values, r.Action.Flags = slices.Clone(r.Values), slices.Clone(r.Action.Flags)
	for i := range r.Values {
		v := &r.Values[i]
		value, ok := values[v.Name]
		at := slices.Index(r.Action.Flags, v.Name+"="+v.Text)
		if !ok || len(value) != len(v.Text) || at < 1 || r.Action.Flags[at-1] != "-X" {
			return r, fmt.Errorf("%w: it has no value of %d bytes for %s", errOther, len(value), v.Name)
		}
		v.Text = value
		r.Action.Flags[at] = v.Name + "=" + value
	}
	return r, nil
}

// A file is a program that is open.
type file interface {
	io.ReaderAt
	io.WriterAt
}

// verify compares a program with its record: every byte, by the digest in its build ID, and all that with depends on.
func (r Record) verify(f io.ReaderAt) error {
	format, err := formatOf(f, r.Size)
	if err != nil {
		return err
	}
	sum, _, err := r.copyTo(io.Discard, f, format, r)
	if err != nil {
		return err
	}
	return r.check(f, format, sum)
}

// check compares a program with its record, given its digest.
func (r Record) check(f io.ReaderAt, format format, sum string) error {
	if len(r.BuildID) == 0 {
		return fmt.Errorf("%w: it has no build ID", errOther)
	}
	linked := r.linked()
	texts := map[string][]int64{linked[:strings.LastIndexByte(linked, '/')+1] + sum: r.BuildID}
	if host := format.hostID(linked); host != "" {
		texts[host] = []int64{r.HostID}
	}
	for _, v := range r.Values {
		texts[v.Text] = append(texts[v.Text], v.Offsets...)
	}
	for text, offsets := range texts {
		for _, at := range offsets {
			found := make([]byte, len(text))
			if _, err := f.ReadAt(found, at); err != nil {
				return err
			}
			if string(found) != text {
				return fmt.Errorf("%w: offset %d", errOther, at)
			}
		}
	}
	sums, at, err := format.sign(f)
	if err != nil {
		return err
	}
	found := make([]byte, len(sums))
	if _, err := f.ReadAt(found, at); err != nil {
		return err
	}
	if !bytes.Equal(found, sums) {
		return fmt.Errorf("%w: its signature", errOther)
	}
	return nil
}

// identify writes what depends on a program's digest into it: the build ID, what the linker derives from that, and the signature.
func (r Record) identify(f file, format format, sum string) error {
	var failed []error
	write := func(text string, offsets ...int64) {
		for _, at := range offsets {
			_, err := f.WriteAt([]byte(text), at)
			failed = append(failed, err)
		}
	}
	linked := r.linked()
	if host := format.hostID(linked); host != "" {
		write(host, r.HostID)
	}
	write(linked[:strings.LastIndexByte(linked, '/')+1]+sum, r.BuildID...)
	if err := errors.Join(failed...); err != nil {
		return err
	}
	sums, at, err := format.sign(f)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(sums, at)
	return err
}

// copyTo copies a program with the values of another record, which differs in nothing else. It returns the last part of the build ID of both: the
// digest of a program with zeros where it depends on the build ID (FindAndHash in cmd/internal/buildid). The copy keeps the old bytes there; identify overwrites them.
func (r Record) copyTo(w io.Writer, f io.ReaderAt, format format, other Record) (sum, otherSum string, err error) {
	type piece struct {
		at, size int64
		text     string // of a value, in the copy; "" stands for zeros
	}
	pieces := []piece{{at: format.code, size: format.signature}, {at: r.HostID, size: int64(len(format.hostID("")))}}
	for _, at := range r.BuildID {
		pieces = append(pieces, piece{at: at, size: int64(len(r.linked()))})
	}
	for i, v := range r.Values {
		if text := other.Values[i].Text; text != v.Text {
			for _, at := range v.Offsets {
				pieces = append(pieces, piece{at, int64(len(text)), text})
			}
		}
	}
	pieces = slices.DeleteFunc(pieces, func(p piece) bool { return p.size == 0 })
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Compare(a.at, b.at) })
	h := sha256.New()
	otherHash := h // until a byte differs
	both := func() io.Writer {
		if otherHash == h {
			return h
		}
		return io.MultiWriter(h, otherHash)
	}
	end, buffer := int64(0), make([]byte, 128<<10)
	for _, p := range append(pieces, piece{at: r.Size}) {
		if p.at < end || p.at+p.size > r.Size {
			return "", "", fmt.Errorf("%w: offset %d", errOther, p.at)
		}
		if _, err := io.CopyBuffer(io.MultiWriter(w, both()), io.NewSectionReader(f, end, p.at-end), buffer); err != nil {
			return "", "", err
		}
		end = p.at + p.size
		found := make([]byte, p.size)
		if _, err := f.ReadAt(found, p.at); err != nil && p.size > 0 { // the last piece is the end
			return "", "", err
		}
		if p.text == "" {
			if _, err := w.Write(found); err != nil {
				return "", "", err
			}
			both().Write(make([]byte, p.size))
			continue
		}
		if otherHash == h {
			clone, err := h.(hash.Cloner).Clone()
			if err != nil {
				return "", "", err
			}
			otherHash = clone
		}
		if _, err := io.WriteString(w, p.text); err != nil {
			return "", "", err
		}
		h.Write(found)
		io.WriteString(otherHash, p.text)
	}
	return idString(h.Sum(nil)), idString(otherHash.Sum(nil)), nil
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

// sign computes the digests of pages that the signature of a Mach-O file has, and returns their offset. The rest of a signature that the linker
// has made depends on the size of the program, not on its contents (Sign in cmd/internal/codesign). All numbers in it are big-endian.
func (f format) sign(program io.ReaderAt) (sums []byte, at int64, err error) {
	if f.signature == 0 {
		return nil, 0, nil
	}
	const directory = 20 // offset of the code directory: it follows a header and an index of one entry
	const hashOffset, slots, limit, kind = directory + 16, directory + 28, directory + 32, directory + 36
	start := make([]byte, kind+4)
	if _, err := program.ReadAt(start, f.code); err != nil {
		return nil, 0, err
	}
	number := func(at int) int64 { return int64(binary.BigEndian.Uint32(start[at:])) }
	const page = 4096
	first, n := directory+number(hashOffset), (f.code+page-1)/page
	if number(0) != 0xfade0cc0 || number(directory) != 0xfade0c02 || number(limit) != f.code || number(slots) != n ||
		!bytes.Equal(start[kind:], []byte{sha256.Size, 2, 0, 12}) || first+n*sha256.Size > f.signature {
		return nil, 0, fmt.Errorf("%w: its signature is not the linker's", errOther)
	}
	code := bufio.NewReaderSize(io.NewSectionReader(program, 0, f.code), 64*page)
	for range n {
		h := sha256.New()
		if _, err := io.CopyN(h, code, page); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		sums = h.Sum(sums)
	}
	return sums, f.code + first, nil
}

// ReadRecord reads a record that a link has written.
func ReadRecord(file string) (Record, error) {
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
