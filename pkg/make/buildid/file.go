package buildid

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"debug/macho"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrFormat is in the errors about files that no linker of Go has made so.
var ErrFormat = errors.New("not a program of Go's linker")

// A Layout says where a program depends on its build ID.
type Layout struct {
	Size      int64   // of the program, bytes
	IDs       []int64 // offsets of the build ID
	Host      int64   // offset of the GNU build ID of an ELF file, or of the UUID of a Mach-O file
	HostSize  int64   // bytes; 0 if there is none
	Code      int64   // bytes until the signature of a Mach-O file, or until the end
	Signature int64   // its bytes
	uuid      bool    // whether the host's ID is a UUID
}

// A File is a program that is open.
type File interface {
	io.ReaderAt
	io.WriterAt
}

// FormatOf returns the layout of a program without the places that [Find] finds.
func FormatOf(f io.ReaderAt, size int64) (Layout, error) {
	l := Layout{Size: size, Code: size}
	start := make([]byte, 4)
	if _, err := f.ReadAt(start, 0); err != nil {
		return l, err
	}
	switch {
	case string(start) == elf.ELFMAG:
		l.HostSize = 20
		return l, nil
	case string(start[:2]) == "MZ":
		return l, nil
	}
	program, err := macho.NewFile(f)
	if err != nil {
		return l, fmt.Errorf("%w: neither ELF nor Mach-O nor PE", ErrFormat)
	}
	l.HostSize, l.uuid = 16, true
	for _, load := range program.Loads {
		const codeSignature = 0x1d
		raw, number := load.Raw(), program.ByteOrder.Uint32
		if number(raw) == codeSignature && len(raw) >= 16 {
			l.Code, l.Signature = int64(number(raw[8:])), int64(number(raw[12:]))
			if l.Code+l.Signature > size {
				return l, fmt.Errorf("%w: its signature is cut off", ErrFormat)
			}
			break
		}
	}
	return l, nil
}

// Find returns where a program depends on the build ID that the linker got.
func Find(data []byte, id string) (Layout, error) {
	l, err := FormatOf(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return l, err
	}
	if l.IDs = Offsets(data, id); len(l.IDs) == 0 {
		return l, fmt.Errorf("%w: it lacks its build ID", ErrFormat)
	}
	if host := l.HostID(id); host != "" {
		at := Offsets(data, host)
		if len(at) != 1 {
			return l, fmt.Errorf("%w: it has %d IDs for the host, not one", ErrFormat, len(at))
		}
		l.Host = at[0]
	}
	return l, nil
}

// Offsets returns where data has a string that is not empty.
func Offsets(data []byte, s string) []int64 {
	var found []int64
	for at := 0; ; at += len(s) {
		i := bytes.Index(data[at:], []byte(s))
		if i < 0 {
			return found
		}
		at += i
		found = append(found, int64(at))
	}
}

// HostID returns what the linker derives from Go's build ID: nothing in a PE file, the GNU build ID in an ELF file (addbuildinfo in
// cmd/link/internal/ld, Sum32 in cmd/internal/hash), and the UUID in a Mach-O file (uuidFromGoBuildId).
func (l Layout) HostID(buildID string) string {
	sum := sha256.Sum256([]byte(buildID))
	sum[0] ^= 0xff
	id := sum[:l.HostSize]
	if l.uuid {
		id[6] = id[6]&0x0f | 0x30 // version 3
		id[8] = id[8]&0x3f | 0xc0 // the variant of RFC 4122
	}
	return string(id)
}

// Identify writes what depends on a program's content into it: the build ID, what the linker derived from the one that it got, and the
// signature.
func (l Layout) Identify(f File, linked, content string) error {
	var failed []error
	write := func(text string, offsets ...int64) {
		for _, at := range offsets {
			_, err := f.WriteAt([]byte(text), at)
			failed = append(failed, err)
		}
	}
	if host := l.HostID(linked); host != "" {
		write(host, l.Host)
	}
	write(WithContent(linked, content), l.IDs...)
	if err := errors.Join(failed...); err != nil {
		return err
	}
	sums, at, err := l.Sign(f)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(sums, at)
	return err
}

// Sign computes the digests of pages that the signature of a Mach-O file has, and returns their offset. The rest of a signature that the
// linker has made depends on the size of the program, not on its contents (Sign in cmd/internal/codesign). All numbers in it are
// big-endian.
func (l Layout) Sign(program io.ReaderAt) (sums []byte, at int64, err error) {
	if l.Signature == 0 {
		return nil, 0, nil
	}
	const directory = 20 // offset of the code directory: it follows a header and an index of one entry
	const hashOffset, slots, limit, kind = directory + 16, directory + 28, directory + 32, directory + 36
	start := make([]byte, kind+4)
	if _, err := program.ReadAt(start, l.Code); err != nil {
		return nil, 0, err
	}
	number := func(at int) int64 { return int64(binary.BigEndian.Uint32(start[at:])) }
	const page = 4096
	first, n := directory+number(hashOffset), (l.Code+page-1)/page
	if number(0) != 0xfade0cc0 || number(directory) != 0xfade0c02 || number(limit) != l.Code || number(slots) != n ||
		!bytes.Equal(start[kind:], []byte{sha256.Size, 2, 0, 12}) || first+n*sha256.Size > l.Signature {
		return nil, 0, fmt.Errorf("%w: its signature is not the linker's", ErrFormat)
	}
	code := bufio.NewReaderSize(io.NewSectionReader(program, 0, l.Code), 64*page)
	for range n {
		h := sha256.New()
		if _, err := io.CopyN(h, code, page); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		sums = h.Sum(sums)
	}
	return sums, l.Code + first, nil
}

// CompleteProgram writes the content ID into a program, in place of the last part of the build ID that the linker got, as the go command
// does after a link: a digest of the program with zeros where it depends on the build ID (FindAndHash in cmd/internal/buildid).
func CompleteProgram(file, linked string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	l, err := Find(data, linked)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, at := range l.IDs {
		clear(data[at : at+int64(len(linked))])
	}
	clear(data[l.Host : l.Host+l.HostSize])
	clear(data[l.Code : l.Code+l.Signature])
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(l.Identify(f, linked, digest(string(data))), f.Close())
}

// CompletePackage returns a compiled package with its content ID, in place of the last part of the build ID that the compiler got.
func CompletePackage(archive []byte, compiled string) (data []byte, id string) {
	sum := sha256.Sum256(bytes.ReplaceAll(archive, []byte(compiled), make([]byte, len(compiled))))
	id = WithContent(compiled, hashString(sum[:]))
	return bytes.ReplaceAll(archive, []byte(compiled), []byte(id)), id
}
