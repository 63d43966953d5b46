package module

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// maxTable is the size, in bytes, of the largest table of functions that is read. That of kube-apiserver is a fifth.
const maxTable = 256 << 20

// Packages lists the import paths of the packages that a program holds functions of, also those that are inlined, sorted. They are read
// from the table that the program itself needs for its stack traces, so it may be stripped. A main package is "main". The form of the table
// is that of Go 1.20 and later: see runtime/symtab.go.
func Packages(r io.ReaderAt) ([]string, error) {
	table, order, err := functionTable(r)
	if err != nil {
		return nil, err
	}
	names, err := functionNames(table, order)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for name := range bytes.SplitSeq(names, []byte{0}) {
		if pkg := packageOf(string(name)); pkg != "" {
			found[pkg] = true
		}
	}
	if len(found) == 0 {
		return nil, errNoTable
	}
	return slices.Sorted(maps.Keys(found)), nil
}

var errNoTable = errors.New("it has no table of Go functions")

// magic begins the table, in the byte order of the program.
const magic = 0xfffffff1

// functionTable returns the part of a program that begins with its table of functions.
func functionTable(r io.ReaderAt) ([]byte, binary.ByteOrder, error) {
	if f, err := elf.NewFile(r); err == nil {
		for _, s := range f.Sections {
			if strings.HasSuffix(s.Name, ".gopclntab") {
				data, err := readTable(s.Open(), s.Size)
				return data, f.ByteOrder, err
			}
		}
		return nil, nil, errNoTable
	}
	if f, err := macho.NewFile(r); err == nil {
		if s := f.Section("__gopclntab"); s != nil {
			data, err := readTable(s.Open(), s.Size)
			return data, f.ByteOrder, err
		}
		return nil, nil, errNoTable
	}
	if f, err := pe.NewFile(r); err == nil {
		// There it has no section of its own.
		for _, s := range f.Sections {
			if s.Name != ".rdata" {
				continue
			}
			data, err := readTable(s.Open(), uint64(s.Size))
			if err != nil {
				return nil, nil, err
			}
			start := binary.LittleEndian.AppendUint32(nil, magic)
			for at := bytes.Index(data, start); at >= 0; {
				if _, err := functionNames(data[at:], binary.LittleEndian); err == nil {
					return data[at:], binary.LittleEndian, nil
				}
				next := bytes.Index(data[at+1:], start)
				if next < 0 {
					break
				}
				at += 1 + next
			}
		}
		return nil, nil, errNoTable
	}
	return nil, nil, errors.New("it is no program for Linux, Windows or macOS")
}

func readTable(r io.Reader, size uint64) ([]byte, error) {
	if size > maxTable {
		return nil, fmt.Errorf("its table of functions has %d bytes, more than any program's", size)
	}
	return io.ReadAll(io.LimitReader(r, int64(size)))
}

// functionNames returns the names of a table of functions, each with a zero at its end.
func functionNames(table []byte, order binary.ByteOrder) ([]byte, error) {
	const head = 8 // magic, two zeros, the least size of an instruction, the size of a word
	if len(table) < head || order.Uint32(table) != magic || table[4] != 0 || table[5] != 0 {
		return nil, errNoTable
	}
	size := int(table[7])
	if size != 4 && size != 8 || len(table) < head+8*size {
		return nil, errNoTable
	}
	word := func(i int) uint64 {
		at := table[head+i*size:]
		if size == 4 {
			return uint64(order.Uint32(at))
		}
		return order.Uint64(at)
	}
	from, to := word(3), word(4) // names, compilation units
	if from >= to || to > uint64(len(table)) {
		return nil, errNoTable
	}
	return table[from:to], nil
}

// packageOf returns the import path of the package that a function's name begins with, or "".
func packageOf(function string) string {
	for _, synthetic := range []string{"type:", "go:"} { // the compiler's own
		if strings.HasPrefix(function, synthetic) {
			return ""
		}
	}
	name, _, _ := strings.Cut(function, "[") // arguments of types
	folder := strings.LastIndexByte(name, '/') + 1
	last, _, ok := strings.Cut(name[folder:], ".")
	if !ok {
		return ""
	}
	// In the last element, the compiler escapes dots.
	path, err := url.PathUnescape(name[:folder] + last)
	if err != nil {
		return ""
	}
	return path
}
