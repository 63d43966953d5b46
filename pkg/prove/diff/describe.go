package diff

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"
)

// report adds all differences to the File.
func (c *comparison) report() {
	var functions, lines, data []string
	flagged := map[int32]bool{}
	for _, i := range slices.Sorted(maps.Keys(c.text)) {
		flagged[i] = true
		functions = append(functions, c.describeText(i, c.text[i]))
	}
	for _, i := range slices.Sorted(maps.Keys(c.meta)) {
		if !flagged[i] {
			lines = append(lines, fmt.Sprintf("%s: %s", c.a.funcs[i].name, c.meta[i]))
		}
	}
	var elsewhere []string
	moved := false
	for _, r := range c.refers {
		a, b := uint64(r.a), uint64(r.b)
		if c.corresponds(a, b) {
			continue
		}
		switch {
		case r.fn == noFunction:
			c.problems = append(c.problems, dataDiff{uint64(r.from), 0, fmt.Sprintf("leads to %s; in B to %s", place(c.a, a), place(c.b, b))})
		case !flagged[r.fn]:
			flagged[r.fn] = true
			elsewhere = append(elsewhere, fmt.Sprintf("%s refers to %s; in B to %s", c.a.funcs[r.fn].name, place(c.a, a), place(c.b, b)))
		}
	}
	c.file.addAll(Different, "functions", "%d with other instructions", functions)
	c.file.addAll(Different, "functions", "%d that refer to something else", elsewhere)
	c.file.addAll(Different, "functions", "%d with other lines or tables for the runtime", lines)
	slices.SortStableFunc(c.problems, func(x, y dataDiff) int { return cmp.Compare(x.a, y.a) })
	for i, d := range c.problems {
		if i > 0 && d.a <= c.problems[i-1].a+8 && d.what == "" {
			continue // the same object, most likely
		}
		data = append(data, c.describeData(d))
	}
	c.file.addAll(Different, "data", "%d places", data)

	for i, j := range c.match {
		moved = moved || j >= 0 && c.a.funcs[i].entry != c.b.funcs[j].entry
	}
	var shifted []string
	for _, s := range c.a.sections {
		for _, p := range c.pieces[s] {
			if p.a != p.b {
				shifted = append(shifted, s.name)
				break
			}
		}
	}
	if moved {
		c.file.add(Equivalent, "addresses", "functions moved")
	}
	if len(shifted) > 0 {
		c.file.add(Equivalent, "addresses", "%s moved", strings.Join(shifted, " "))
	}
	c.reportPaths()
	for _, s := range c.a.sections {
		if t := c.other[s]; strings.HasPrefix(s.name, ".note.") && !bytes.Equal(s.data, t.data) {
			c.file.add(Equivalent, "build id", "%s", s.name)
		}
	}
}

// reportPaths checks that each source file has exactly one counterpart.
func (c *comparison) reportPaths() {
	to, from := map[string]string{}, map[string]string{}
	var bad, others []string
	for _, pair := range slices.SortedFunc(maps.Keys(c.paths), func(x, y [2]string) int {
		return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]))
	}) {
		a, b := pair[0], pair[1]
		t, okA := to[a]
		f, okB := from[b]
		if okA && t != b || okB && f != a || path.Base(a) != path.Base(b) {
			bad = append(bad, fmt.Sprintf("%s and %s", a, b))
		} else if a != b {
			others = append(others, fmt.Sprintf("%s and %s", a, b))
		}
		to[a], from[b] = b, a
	}
	c.file.addAll(Different, "paths", "%d files have no counterpart of the same name in B", bad)
	c.file.addAll(Equivalent, "paths", "%d source files are recorded with another path", others)
}

// describeText shows the first instruction that differs.
func (c *comparison) describeText(i int32, d *textDiff) string {
	f, g := &c.a.funcs[i], &c.b.funcs[c.match[i]]
	what := fmt.Sprintf("%s+%#x: ", f.name, d.off)
	if d.what != "" {
		what += d.what + ": "
	}
	return what + fmt.Sprintf("A: %s\nB: %s", c.a.disassemble(f, d.off), c.b.disassemble(g, d.off))
}

// describeData shows the object that a place is in, if a reference to its beginning is known.
func (c *comparison) describeData(d dataDiff) string {
	if d.what != "" {
		return place(c.a, d.a) + " " + d.what
	}
	const near = 64 // bytes
	used := ""
	if i, _ := slices.BinarySearchFunc(c.refers, uint32(d.a)+1, func(r ref, a uint32) int { return cmp.Compare(r.a, a) }); i > 0 {
		start := c.refers[i-1].a
		for k := i - 1; k >= 0 && c.refers[k].a == start && used == ""; k-- {
			if fn := c.refers[k].fn; fn != noFunction {
				used = ", used by " + c.a.funcs[fn].name
			}
		}
		if back := d.a - uint64(start); back < near {
			d.a, d.b = d.a-back, d.b-back
		}
	}
	return fmt.Sprintf("%s; in B %s%s", place(c.a, d.a), place(c.b, d.b), used)
}

// place describes an address.
func place(x *exe, addr uint64) string {
	if i := x.funcAt(addr); i >= 0 {
		f := &x.funcs[i]
		if addr == f.entry {
			return f.name
		}
		return fmt.Sprintf("%s+%#x", f.name, addr-f.entry)
	}
	s := x.section(addr)
	if s == nil {
		return fmt.Sprintf("%#x", addr)
	}
	for _, sym := range x.symbols {
		if addr-sym.Value < sym.Size && elf.ST_TYPE(sym.Info) == elf.STT_OBJECT {
			return fmt.Sprintf("%s+%#x (%s)", sym.Name, addr-sym.Value, at(s, addr))
		}
	}
	return fmt.Sprintf("%s+%#x (%s)", s.name, addr-s.addr, at(s, addr))
}

func at(s *section, addr uint64) string {
	if s.data == nil {
		return "zeros"
	}
	d := s.at(addr)
	return preview(d[:min(len(d), 16)])
}

// disassemble shows the instruction at an offset of a function, in Go's syntax.
func (x *exe) disassemble(f *function, off int) string {
	code := x.code(f)
	if off >= len(code) {
		return "the end"
	}
	code = code[off:]
	pc := f.entry + uint64(off)
	name := func(addr uint64) (string, uint64) {
		if i := x.funcAt(addr); i >= 0 {
			return x.funcs[i].name, x.funcs[i].entry
		}
		return "", 0
	}
	if x.machine == elf.EM_X86_64 {
		if in, err := x86asm.Decode(code, 64); err == nil {
			return x86asm.GoSyntax(in, pc, name)
		}
		return fmt.Sprintf("% x", code[:min(len(code), 15)])
	}
	if in, err := arm64asm.Decode(code); err == nil {
		return arm64asm.GoSyntax(in, pc, name, nil)
	}
	return fmt.Sprintf("% x", code[:min(len(code), 4)])
}
