package diff

import (
	"bytes"
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

// functions returns the sizes of a program's functions in bytes, padding included, by name. Functions of one name are sorted by size.
func functions(program []byte) (map[string][]uint64, error) {
	table, text, err := lineTable(program)
	if err != nil {
		return nil, err
	}
	t, err := gosym.NewTable(nil, gosym.NewLineTable(table, text))
	if err != nil {
		return nil, err
	}
	sizes := map[string][]uint64{}
	for _, fn := range t.Funcs {
		sizes[fn.Name] = append(sizes[fn.Name], fn.End-fn.Entry)
	}
	for _, s := range sizes {
		slices.Sort(s)
	}
	return sizes, nil
}

// lineTable returns the table of a program's functions, and the address of its code. Programs without symbols have it, too.
func lineTable(program []byte) (table []byte, text uint64, err error) {
	if e, err := elf.NewFile(bytes.NewReader(program)); err == nil {
		for _, s := range e.Sections {
			switch s.Name {
			case ".text":
				text = s.Addr
			case ".gopclntab", ".data.rel.ro.gopclntab":
				if table, err = s.Data(); err != nil {
					return nil, 0, err
				}
			}
		}
	} else if m, err := macho.NewFile(bytes.NewReader(program)); err == nil {
		for _, s := range m.Sections {
			switch s.Name {
			case "__text":
				text = s.Addr
			case "__gopclntab":
				if table, err = s.Data(); err != nil {
					return nil, 0, err
				}
			}
		}
	}
	if table == nil {
		return nil, 0, errors.New("only those of ELF and Mach-O files are read")
	}
	return table, text, nil
}
