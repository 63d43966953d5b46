package diff

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"debug/elf"
	"debug/gosym"
	"debug/macho"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// compareBytes compares the contents of two files, as programs if Go made them.
func compareBytes(a, b []byte, f *File) {
	if bytes.Equal(a, b) {
		return
	}
	x, errA := buildinfo.Read(bytes.NewReader(a))
	y, errB := buildinfo.Read(bytes.NewReader(b))
	if errA == nil && errB == nil {
		compareInfo(x, y, f)
		compareFunctions(a, b, f)
	}
	f.add("content", "first at byte %d; %d bytes, and %d", firstDifference(a, b), len(a), len(b))
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// compareFunctions names the functions that only one of two programs has, or that differ in size.
func compareFunctions(a, b []byte, f *File) {
	x, errA := functions(a)
	y, errB := functions(b)
	if err := errors.Join(errA, errB); err != nil {
		f.add("functions", "are not compared: %v", err)
		return
	}
	var onlyA, onlyB, sizes []string
	for _, name := range slices.Sorted(maps.Keys(x)) {
		if other, ok := y[name]; !ok {
			onlyA = append(onlyA, name)
		} else if !slices.Equal(x[name], other) {
			sizes = append(sizes, fmt.Sprintf("%s: %s and %s bytes", name, numbers(x[name]), numbers(other)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(y)) {
		if _, ok := x[name]; !ok {
			onlyB = append(onlyB, name)
		}
	}
	f.addAll("functions", "%d only in A", onlyA)
	f.addAll("functions", "%d only in B", onlyB)
	f.addAll("functions", "%d of another size", sizes)
	if len(onlyA)+len(onlyB)+len(sizes) == 0 {
		f.add("functions", "have the same names and sizes, which does not prove that they do the same")
	}
}

func numbers(sizes []uint64) string { return strings.Trim(fmt.Sprint(sizes), "[]") }

// functions returns the sizes of a program's functions in bytes by name. Functions of one name are sorted by size.
func functions(program []byte) (map[string][]uint64, error) {
	c, err := readCode(program)
	if err != nil {
		return nil, err
	}
	t, err := gosym.NewTable(nil, gosym.NewLineTable(c.table, c.address))
	if err != nil {
		return nil, err
	}
	sizes := map[string][]uint64{}
	for _, fn := range t.Funcs {
		size, err := c.size(fn.Entry, fn.End)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", fn.Name, err)
		}
		sizes[fn.Name] = append(sizes[fn.Name], size)
	}
	for _, s := range sizes {
		slices.Sort(s)
	}
	return sizes, nil
}

// A code is that of a program, with the table of its functions. Programs without symbols have it, too.
type code struct {
	table   []byte
	text    []byte
	address uint64 // of text
	padding []byte // what the linker puts between functions, again and again
}

// int3 is the instruction with which the linker fills gaps in code for x86. For other machines, it fills them with zeros, which are none.
var int3, zeros = []byte{0xCC}, make([]byte, 4)

func readCode(program []byte) (c code, err error) {
	c.padding = zeros
	section := func(name string, address uint64, s interface{ Data() ([]byte, error) }) {
		var failed error
		switch name {
		case ".text", "__text":
			c.address = address
			c.text, failed = s.Data()
		case ".gopclntab", ".data.rel.ro.gopclntab", "__gopclntab":
			c.table, failed = s.Data()
		}
		err = cmp.Or(err, failed)
	}
	if e, err := elf.NewFile(bytes.NewReader(program)); err == nil {
		if e.Machine == elf.EM_386 || e.Machine == elf.EM_X86_64 {
			c.padding = int3
		}
		for _, s := range e.Sections {
			section(s.Name, s.Addr, s)
		}
	} else if m, err := macho.NewFile(bytes.NewReader(program)); err == nil {
		if m.Cpu == macho.Cpu386 || m.Cpu == macho.CpuAmd64 {
			c.padding = int3
		}
		for _, s := range m.Sections {
			section(s.Name, s.Addr, s)
		}
	}
	if err != nil {
		return code{}, err
	}
	if c.table == nil {
		return code{}, errors.New("only those of ELF and Mach-O files are read")
	}
	return c, nil
}

// size returns how large the function between two addresses is without the padding behind it, which depends on the functions beside it.
func (c code) size(entry, end uint64) (uint64, error) {
	if entry < c.address || end < entry || end-c.address > uint64(len(c.text)) {
		return 0, fmt.Errorf("%#x to %#x is not in the program's code", entry, end)
	}
	body := c.text[entry-c.address : end-c.address]
	for bytes.HasSuffix(body, c.padding) {
		body = body[:len(body)-len(c.padding)]
	}
	return uint64(len(body)), nil
}
