package diff

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
)

// errUnsupported says of a program that it can be compared byte by byte only.
var errUnsupported = errors.New("can be compared byte by byte only")

// An UnknownGoError says that nothing can be said of a program, because its version of Go may lay out programs in another way.
type UnknownGoError struct{ Version string }

func (e UnknownGoError) Error() string {
	return fmt.Sprintf("compiled by %s, whose tables are not known: only those of %s are", e.Version, strings.Join(goVersions, " and "))
}

// A section is a part of a program that is loaded into memory.
type section struct {
	name string
	addr uint64
	size uint64
	data []byte // nil if it is all zeros
}

// isSlice reports whether the three words of a slice span the section, or are zero if there is no such section.
func (s *section) isSlice(words []uint64, size uint64) bool {
	if s == nil {
		return words[0] == 0 && words[1] == 0 && words[2] == 0
	}
	return words[0] == s.addr && words[1]*size == s.size && words[2] == words[1]
}

func (s *section) end() uint64             { return s.addr + s.size }
func (s *section) has(addr uint64) bool    { return addr >= s.addr && addr < s.end() }
func (s *section) at(addr uint64) []byte   { return s.data[addr-s.addr:] }
func (s *section) word(addr uint64) uint64 { return binary.LittleEndian.Uint64(s.at(addr)) }

// An exe is a Go program whose tables are all known.
type exe struct {
	goVersion string // of the tables: one of goVersions

	machine  elf.Machine
	entry    uint64
	info     *debug.BuildInfo
	sections []*section // by address
	unloaded []*elf.Section
	segments string // what is loaded how, in words; without addresses and sizes
	symbols  []elf.Symbol

	text, rodata, pclntab, module, noptrdata, data, bss, noptrbss *section

	types              *section   // holds types and tables of methods: .rodata in Go 1.26
	values             *section   // holds function values: .rodata in Go 1.26
	typelink, itablink *section   // list types and tables of methods, in Go 1.26
	constants          []*section // all that are read-only and may hold addresses, by address: .rodata and, since Go 1.27, types and values

	mod   []uint64 // words of the runtime's moduledata, at the places that they have in Go 1.26
	lists typeLists
	funcs []function
	paths map[uint32]string // of filetab, by offset
}

// A typeLists says where types and tables of methods are listed in Go 1.27: within types, in bytes from its beginning.
type typeLists struct{ typesEnd, itabs, itabsSize uint64 }

// goVersions are the versions whose tables are known.
var goVersions = []string{"go1.26", "go1.27"}

// Words of moduledata in Go 1.26: see type moduledata in runtime/symtab.go.
const (
	modPCHeader    = 0
	modFuncNames   = 1
	modCUs         = 4
	modFiles       = 7
	modPCTab       = 10
	modPCLn        = 13
	modFTab        = 16
	modFindFunc    = 19
	modMinPC       = 20
	modMaxPC       = 21
	modText        = 22
	modEText       = 23
	modNoptrdata   = 24
	modEnd         = 34
	modGCData      = 35
	modGCBSS       = 36
	modTypes       = 37
	modETypes      = 38
	modRodata      = 39
	modGoFunc      = 40
	modEPCLn       = 41
	modTextSects   = 42
	modTypelinks   = 45
	modItablinks   = 48
	modPtab        = 51
	modInittasks   = 59
	modModuleName  = 62
	modHasMain     = 67
	modWords       = 74
	pclntabMagic   = 0xfffffff1
	textAlignment  = 64      // bytes; nothing in a Go program has a larger alignment than its sections' 64
	maxProgramSize = 1 << 31 // bytes
)

// A function is an entry of the function table.
type function struct {
	name  string
	entry uint64
	end   uint64 // the next function's entry
	info  []byte // runtime._func, and what is behind it
}

// openExe reads a program. The error is an UnknownGoError for another version of Go, and errUnsupported for another kind of program.
func openExe(data []byte) (*exe, error) {
	if len(data) > maxProgramSize {
		return nil, fmt.Errorf("%w: it is larger than %d bytes", errUnsupported, maxProgramSize)
	}
	info, err := buildinfo.Read(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: no build information of Go: %v", errUnsupported, err)
	}
	i := slices.IndexFunc(goVersions, func(v string) bool {
		return info.GoVersion == v || strings.HasPrefix(info.GoVersion, v+".") || strings.HasPrefix(info.GoVersion, v+" ")
	})
	if i < 0 {
		return nil, UnknownGoError{info.GoVersion}
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: not an ELF file", errUnsupported)
	}
	x := &exe{goVersion: goVersions[i], machine: f.Machine, entry: f.Entry, info: info, paths: map[uint32]string{}}
	switch {
	case f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 && f.Machine != elf.EM_AARCH64:
		return nil, fmt.Errorf("%w: instructions of %s are not known", errUnsupported, f.Machine)
	case f.Type != elf.ET_EXEC:
		return nil, fmt.Errorf("%w: not linked at a fixed address", errUnsupported)
	}
	if err := x.addSections(f, data); err != nil {
		return nil, err
	}
	if err := x.readModule(); err != nil {
		return nil, err
	}
	if err := x.readFunctions(); err != nil {
		return nil, err
	}
	return x, nil
}

func (x *exe) addSections(f *elf.File, file []byte) error {
	known := map[string]**section{
		".text": &x.text, ".rodata": &x.rodata, ".gopclntab": &x.pclntab, ".go.module": &x.module, ".noptrdata": &x.noptrdata,
		".data": &x.data, ".bss": &x.bss, ".noptrbss": &x.noptrbss,
	}
	if x.goVersion == "go1.26" {
		known[".typelink"], known[".itablink"] = &x.typelink, &x.itablink
	} else {
		known[".go.type"], known[".go.func"] = &x.types, &x.values
	}
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_ALLOC == 0 {
			if s.Type != elf.SHT_NULL {
				x.unloaded = append(x.unloaded, s)
			}
			continue
		}
		n := &section{name: s.Name, addr: s.Addr, size: s.Size}
		if s.Type != elf.SHT_NOBITS {
			if s.Offset > uint64(len(file)) || s.Size > uint64(len(file))-s.Offset {
				return fmt.Errorf("section %s: %w", s.Name, io.ErrUnexpectedEOF)
			}
			n.data = file[s.Offset:][:s.Size:s.Size]
		}
		x.sections = append(x.sections, n)
		if p := known[s.Name]; p != nil {
			if *p != nil {
				return fmt.Errorf("section %s exists twice", s.Name)
			}
			*p = n
		}
	}
	if err := x.addSegments(f); err != nil {
		return err
	}
	slices.SortStableFunc(x.sections, func(a, b *section) int { return int(int64(a.addr) - int64(b.addr)) })
	for i := 1; i < len(x.sections); i++ {
		if a, b := x.sections[i-1], x.sections[i]; a.end() > b.addr || b.end() > maxProgramSize {
			return fmt.Errorf("%w: sections %s and %s overlap", errUnsupported, a.name, b.name)
		}
	}
	for name, p := range known {
		if *p == nil {
			return fmt.Errorf("%w: no section %s", errUnsupported, name)
		}
		if bss := strings.HasSuffix(name, "bss"); bss != ((*p).data == nil) && (*p).size > 0 {
			return fmt.Errorf("%w: section %s is of an unusual kind", errUnsupported, name)
		}
	}
	if x.types == nil {
		x.types, x.values, x.constants = x.rodata, x.rodata, []*section{x.rodata}
	} else {
		x.constants = []*section{x.rodata, x.types, x.values}
	}
	if !slices.IsSortedFunc(x.constants, func(a, b *section) int { return cmp.Compare(a.addr, b.addr) }) {
		return fmt.Errorf("%w: its sections are in an unusual order", errUnsupported)
	}
	x.symbols, _ = f.Symbols() // none, if it is stripped
	return nil
}

// addSegments checks that sections are loaded at their addresses.
func (x *exe) addSegments(f *elf.File) error {
	for _, p := range f.Progs {
		x.segments += fmt.Sprintf("%s %s %d\n", p.Type, p.Flags, p.Align)
	}
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		loaded := slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool {
			inMemory := s.Addr >= p.Vaddr && s.Size <= p.Memsz && s.Addr-p.Vaddr <= p.Memsz-s.Size
			inFile := s.Type == elf.SHT_NOBITS || s.Offset-p.Off == s.Addr-p.Vaddr && s.Addr-p.Vaddr+s.Size <= p.Filesz
			return p.Type == elf.PT_LOAD && inMemory && inFile
		})
		if !loaded {
			return fmt.Errorf("%w: section %s is not loaded at its address", errUnsupported, s.Name)
		}
		if s.Type == elf.SHT_NOBITS { // zeros follow the file's part of the segment
			for _, p := range f.Progs {
				if p.Type == elf.PT_LOAD && s.Addr < p.Vaddr+p.Filesz && s.Addr+s.Size > p.Vaddr {
					return fmt.Errorf("%w: section %s is not zero", errUnsupported, s.Name)
				}
			}
		}
	}
	return nil
}

// section returns the section that addr is in, or nil.
func (x *exe) section(addr uint64) *section {
	i, ok := slices.BinarySearchFunc(x.sections, addr, func(s *section, addr uint64) int {
		switch {
		case addr < s.addr:
			return 1
		case addr >= s.end():
			return -1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return x.sections[i]
}

// constant returns the section of constants that contains the n bytes at addr, or nil.
func (x *exe) constant(addr, n uint64) *section {
	for _, s := range x.constants {
		if s.has(addr) && n <= s.end()-addr {
			return s
		}
	}
	return nil
}

// readModule reads moduledata, and checks it against the sections.
func (x *exe) readModule() error {
	words := modWords
	if x.goVersion != "go1.26" {
		words -= 3 // three more between the addresses, and two slices less
	}
	if x.module.size != uint64(words)*8 {
		return fmt.Errorf("%w: .go.module has %d bytes, want %d", errUnsupported, x.module.size, words*8)
	}
	for i := range words {
		x.mod = append(x.mod, binary.LittleEndian.Uint64(x.module.data[i*8:]))
	}
	if x.goVersion != "go1.26" {
		n := x.mod // types, typedesclen, etypes, itaboffset, itabsize, rodata, and so on
		x.lists = typeLists{n[modTypes+1], n[modTypes+3], n[modTypes+4]}
		x.mod = slices.Concat(n[:modTypes+1], n[modTypes+2:modTypes+3], n[modTypes+5:modTypes+11], make([]uint64, 6), n[modTypes+11:])
		if l := x.lists; l.typesEnd > l.itabs || l.itabs > x.types.size || l.itabsSize > x.types.size-l.itabs {
			return fmt.Errorf("%w: its lists of types are unusual", errUnsupported)
		}
	}
	m := x.mod
	for _, s := range []struct {
		word int // of a slice in .gopclntab
		size uint64
	}{{modFuncNames, 1}, {modCUs, 4}, {modFiles, 1}, {modPCTab, 1}, {modPCLn, 1}, {modFTab, 8}} {
		from, n := m[s.word], m[s.word+1]
		if n != m[s.word+2] || n > x.pclntab.size || from < x.pclntab.addr || from+n*s.size > x.pclntab.end() {
			return fmt.Errorf("%w: word %d of moduledata", errUnsupported, s.word)
		}
	}
	zero := append(slices.Clone(m[modPtab:modInittasks]), m[modModuleName:modHasMain]...)
	zero = append(zero, m[modHasMain+1:]...)
	switch {
	case m[modPCHeader] != x.pclntab.addr, m[modEPCLn] != x.pclntab.end(), !x.pclntab.has(m[modFindFunc]), !x.pclntab.has(m[modGoFunc]),
		binary.LittleEndian.Uint32(x.pclntab.data) != pclntabMagic,
		m[modText] != x.text.addr, m[modMinPC] != x.text.addr, m[modEText] > x.text.end(), m[modMaxPC] > m[modEText], m[modMaxPC] <= m[modMinPC],
		m[modTypes] != x.types.addr, m[modRodata] != x.rodata.addr, m[modETypes] != x.types.end(),
		!x.rodata.has(m[modGCData]), !x.rodata.has(m[modGCBSS]),
		!x.typelink.isSlice(m[modTypelinks:], 4), !x.itablink.isSlice(m[modItablinks:], 8),
		m[modTextSects+1] != 1, m[modTextSects+2] != 1, !x.rodata.has(m[modTextSects]), !x.rodata.has(m[modTextSects] + 23),
		m[modInittasks+1] != m[modInittasks+2], m[modInittasks+1] > x.noptrdata.size,
		m[modInittasks] < x.noptrdata.addr, m[modInittasks]+m[modInittasks+1]*8 > x.noptrdata.end(),
		slices.ContainsFunc(zero, func(w uint64) bool { return w != 0 }):
		return fmt.Errorf("%w: its moduledata is unusual", errUnsupported)
	}
	if t := m[modTextSects]; x.rodata.word(t) != 0 || x.rodata.word(t+8) != x.text.size || x.rodata.word(t+16) != m[modText] {
		return fmt.Errorf("%w: its table of text sections is unusual", errUnsupported)
	}
	return nil
}

// readFunctions reads the function table, and checks that the index into it is right.
func (x *exe) readFunctions() error {
	m, le := x.mod, binary.LittleEndian
	n := int(m[modFTab+1]) - 1 // the last entry is only an end
	table, infos := x.pclntab.at(m[modFTab]), x.pclntab.at(m[modPCLn])[:m[modPCLn+1]]
	names := x.pclntab.at(m[modFuncNames])[:m[modFuncNames+1]]
	bad := func(i int) error { return fmt.Errorf("%w: function %d has an unusual entry", errUnsupported, i) }
	for i := range n {
		entry, off, end := le.Uint32(table[i*8:]), le.Uint32(table[i*8+4:]), le.Uint32(table[i*8+8:])
		if end <= entry || m[modText]+uint64(end) > m[modMaxPC] || uint64(off)+funcSize > uint64(len(infos)) {
			return bad(i)
		}
		info := infos[off:]
		size := funcSize + 4*(int(le.Uint32(info[funcNPCData:]))+int(info[funcNFuncData]))
		if le.Uint32(info) != entry || size > len(info) || size < funcSize {
			return bad(i)
		}
		name, ok := cString(names, le.Uint32(info[funcName:]))
		if !ok {
			return bad(i)
		}
		x.funcs = append(x.funcs, function{name, m[modText] + uint64(entry), m[modText] + uint64(end), info[:size]})
	}
	if n < 1 || x.funcs[0].entry != m[modMinPC] || x.funcs[n-1].end != m[modMaxPC] {
		return fmt.Errorf("%w: functions are not all of the text", errUnsupported)
	}
	return x.checkIndex()
}

// checkIndex checks the runtime's index of functions by address, which must point to the right function or to one before it.
func (x *exe) checkIndex() error {
	const bucket, sub, size = 4096, 256, 20 // bytes of text, of text, of the index
	index := x.pclntab.at(x.mod[modFindFunc])
	for pc := x.mod[modMinPC]; pc < x.mod[modMaxPC]; pc += sub {
		off := pc - x.mod[modText]
		b := int(off/bucket) * size
		k := b + 4 + int(off%bucket/sub)
		if k >= len(index) {
			return fmt.Errorf("%w: its index of functions is cut", errUnsupported)
		}
		i := int(binary.LittleEndian.Uint32(index[b:])) + int(index[k])
		if i >= len(x.funcs) || x.funcs[i].entry > pc && i > 0 {
			return fmt.Errorf("%w: its index of functions is wrong at %#x", errUnsupported, pc)
		}
	}
	return nil
}

// funcAt returns the index of the function that addr is in, or -1.
func (x *exe) funcAt(addr uint64) int {
	if addr < x.mod[modMinPC] || addr >= x.mod[modMaxPC] {
		return -1
	}
	i, ok := slices.BinarySearchFunc(x.funcs, addr, func(f function, addr uint64) int {
		switch {
		case addr < f.entry:
			return 1
		case addr >= f.end:
			return -1
		}
		return 0
	})
	if !ok {
		return -1
	}
	return i
}

// isEntry reports whether a function starts at addr.
func (x *exe) isEntry(addr uint64) bool {
	i := x.funcAt(addr)
	return i >= 0 && x.funcs[i].entry == addr
}

func (x *exe) code(f *function) []byte { return x.text.at(f.entry)[:f.end-f.entry] }

// cString returns the text at an offset, up to a zero byte.
func cString(data []byte, off uint32) (string, bool) {
	if uint64(off) >= uint64(len(data)) {
		return "", false
	}
	n := bytes.IndexByte(data[off:], 0)
	if n < 0 {
		return "", false
	}
	return string(data[off:][:n]), true
}
