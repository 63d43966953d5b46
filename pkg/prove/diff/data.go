package diff

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// noFunction is the function of references that are in data.
const noFunction = -1

// A dataDiff is a place where data differs.
type dataDiff struct {
	a, b uint64 // addresses
	what string
}

func (c *comparison) problem(a, b uint64, what string) {
	c.problems = append(c.problems, dataDiff{a, b, what})
}

// explain records that n bytes of A's constants hold an address, which is compared as one.
func (c *comparison) explain(a uint64, n int) {
	for i := range uint64(n) {
		off := a + i - c.a.constants[0].addr
		c.explained[off/64] |= 1 << (off % 64)
	}
}

func (c *comparison) isExplained(a uint64) bool {
	off := a - c.a.constants[0].addr
	return c.explained[off/64]&(1<<(off%64)) != 0
}

// pointerMask runs the garbage collector's program at an address, which marks the words of a section that are pointers. See
// runtime.runGCProg.
func (x *exe) pointerMask(s *section, program uint64) ([]bool, error) {
	bad := fmt.Errorf("%w: its map of pointers in %s is unusual", errUnsupported, s.name)
	words := int(s.size+7) / 8
	mask := make([]bool, 0, words)
	p := x.rodata.at(program)
	varint := func() int {
		v, n := binary.Uvarint(p)
		if n <= 0 || v > uint64(words) {
			return -1
		}
		p = p[n:]
		return int(v)
	}
	for len(p) > 0 {
		op := int(p[0])
		p = p[1:]
		n := op & 0x7F
		switch {
		case op == 0:
			return append(mask, make([]bool, words-len(mask))...), nil
		case op&0x80 == 0: // n bits follow
			if len(p) < (n+7)/8 || len(mask)+n > words+7 {
				return nil, bad
			}
			for i := range n {
				mask = append(mask, p[i/8]&(1<<(i%8)) != 0)
			}
			p = p[(n+7)/8:]
		default: // the last n bits, again and again
			if n == 0 {
				n = varint()
			}
			times := varint()
			if n <= 0 || times < 0 || n > len(mask) || n*times > words-len(mask)+7 {
				return nil, bad
			}
			for range n * times {
				mask = append(mask, mask[len(mask)-n])
			}
		}
		if len(mask) > words {
			mask = mask[:words] // the rest of a byte
		}
	}
	return nil, bad
}

// compareMasks compares what the garbage collector follows in .data and .bss.
func (c *comparison) compareMasks() error {
	for _, m := range []struct {
		a, b *section
		word int
	}{{c.a.data, c.b.data, modGCData}, {c.a.bss, c.b.bss, modGCBSS}} {
		maskA, err := c.a.pointerMask(m.a, c.a.mod[m.word])
		if err != nil {
			return err
		}
		maskB, err := c.b.pointerMask(m.b, c.b.mod[m.word])
		if err != nil {
			return err
		}
		for _, p := range c.pieces[m.a] {
			for off := (p.a + 7) &^ 7; off+8 <= p.a+p.n; off += 8 {
				if to := p.b + off - p.a; to%8 != 0 || maskA[(off-m.a.addr)/8] != maskB[(to-m.b.addr)/8] {
					c.problem(off, to, "")
				}
			}
		}
		if m.a == c.a.data {
			c.mask = maskA
		}
	}
	return nil
}

// compareVariables records the pointers in .data, which the garbage collector's map marks.
func (c *comparison) compareVariables() {
	a, b := c.a.data, c.b.data
	for _, p := range c.pieces[a] {
		for at := (p.a + 7) &^ 7; at+8 <= p.a+p.n; at += 8 {
			wa, wb := a.word(at), b.word(p.b+at-p.a)
			switch {
			case !c.mask[(at-a.addr)/8]:
				continue
			case wa > math.MaxUint32 || wb > math.MaxUint32 || (wa == 0) != (wb == 0):
				c.problem(at, p.b+at-p.a, "")
			case wa != 0:
				c.refers = append(c.refers, ref{uint32(wa), uint32(wb), noFunction, uint32(at)})
			}
			c.numbers[at] = true
		}
	}
}

// isBuildInfo reports whether the pointers and lengths are those of the string of build information.
func (c *comparison) isBuildInfo(pa, pb, na, nb uint64) bool {
	return pa == c.holeA.from && pb == c.holeB.from && na == c.holeA.to-c.holeA.from && nb == c.holeB.to-c.holeB.from && na > 0 && nb > 0
}

// compareInitTasks records the functions that initialize packages.
func (c *comparison) compareInitTasks() {
	a, b := c.a, c.b
	for i := range min(a.mod[modInittasks+1], b.mod[modInittasks+1]) {
		pa, pb := a.mod[modInittasks]+8*i, b.mod[modInittasks]+8*i
		ta, tb := a.noptrdata.word(pa), b.noptrdata.word(pb)
		c.numbers[pa] = true
		c.refers = append(c.refers, ref{uint32(ta), uint32(tb), noFunction, uint32(pa)})
		if !a.noptrdata.has(ta) || !b.noptrdata.has(tb) || a.noptrdata.end()-ta < 8 || b.noptrdata.end()-tb < 8 {
			c.problem(pa, pb, "a task of initialization elsewhere")
			continue
		}
		n := uint64(binary.LittleEndian.Uint32(a.noptrdata.at(ta + 4)))
		for k := range n {
			fa, fb := ta+8+8*k, tb+8+8*k
			if !a.noptrdata.has(fa+7) || !b.noptrdata.has(fb+7) {
				c.problem(ta, tb, "a task of initialization that is too long")
				break
			}
			c.numbers[fa] = true
			c.refers = append(c.refers, ref{uint32(a.noptrdata.word(fa)), uint32(b.noptrdata.word(fb)), noFunction, uint32(fa)})
		}
	}
}

// compareNumbers compares what is not a pointer for the garbage collector in .noptrdata or .data, after refs have been sorted by
// address: numbers, and addresses of constants, functions and tables of the linker.
func (c *comparison) compareNumbers(a, b *section) {
	for _, p := range c.pieces[a] {
		for off := (p.a + 7) &^ 7; off+8 <= p.a+p.n; off += 8 {
			wa, wb := a.word(off), b.word(p.b+off-p.a)
			if wa != wb && !c.numbers[off] && c.isHeader(a, b, off, p.b+off-p.a) {
				c.numbers[off] = true
				if a.has(wa) && b.has(wb) {
					c.compareList(wa, wb, a.word(off+8))
				}
			}
		}
	}
	for _, p := range c.pieces[a] {
		for off := p.a; off < p.a+p.n; {
			counterpart := p.b + off - p.a
			if off%8 != 0 || off+8 > p.a+p.n {
				if a.at(off)[0] != b.at(counterpart)[0] {
					c.problem(off, counterpart, "")
				}
				off++
				continue
			}
			wa, wb := a.word(off), b.word(counterpart)
			same := c.numbers[off] || wa == wb && (wa>>32 != 0 || wa < c.a.text.addr) || c.sameNumber(wa, wb) ||
				off > p.a && c.isBuildInfo(a.word(off-8), b.word(counterpart-8), wa, wb)
			if !same {
				c.problem(off, counterpart, "")
			}
			off += 8
		}
	}
}

// sameNumber compares words of .noptrdata that differ, or may be an address.
func (c *comparison) sameNumber(wa, wb uint64) bool {
	if f := c.a.funcAt(wa); f >= 0 && c.a.funcs[f].entry == wa {
		// Compiled packages have tasks of initialization, which are compared as such; assembly has other addresses.
		if wa == wb && (c.a.funcs[f].info[funcFlag]&flagAsm == 0 || !c.b.isEntry(wb)) {
			return true
		}
		return c.corresponds(wa, wb)
	}
	if c.isKnown(wa, wb) || wa != wb && (wa == c.a.module.addr || c.a.leadsSomewhere(wa, 0) && c.b.leadsSomewhere(wb, 0)) {
		return c.corresponds(wa, wb)
	}
	return wa == wb
}

// isHeader reports whether the words at a and b are addresses, of the same thing, at the beginning of the header of a string or a
// slice that was not empty when it was compiled.
func (c *comparison) isHeader(s, t *section, a, b uint64) bool {
	if a+16 > s.end() || b+16 > t.end() || !c.corresponds(s.word(a), t.word(b)) {
		return false
	}
	n := s.word(a + 8)
	in := c.a.section(s.word(a))
	return n > 0 && n == t.word(b+8) && in != nil && in != c.a.text && n <= in.end()-s.word(a)
}

// compareList compares n addresses in .noptrdata, if the first is one.
func (c *comparison) compareList(a, b, n uint64) {
	s, t := c.a.noptrdata, c.b.noptrdata
	for i := range n {
		at, bt := a+8*i, b+8*i
		if !s.has(at+7) || !t.has(bt+7) || !c.corresponds(s.word(at), t.word(bt)) {
			return
		}
		c.numbers[at] = true
	}
}

// leadsSomewhere reports whether an address that only data refers to, like that of a dictionary of a generic function, is that of
// a type, a function value, or of another such address.
func (x *exe) leadsSomewhere(addr uint64, depth int) bool {
	const deepest = 8
	s := x.constant(addr, 8)
	if depth == deepest || addr%8 != 0 || s == nil {
		return false
	}
	if x.plausibleType(addr) {
		return true
	}
	to := s.word(addr)
	if f := x.funcAt(to); f >= 0 {
		return x.funcs[f].entry == to
	}
	return x.leadsSomewhere(to, depth+1)
}

// isKnown reports whether something refers to what is at an address of A, and something to what is at an address of B.
func (c *comparison) isKnown(a, b uint64) bool {
	if a>>32 != 0 || b>>32 != 0 {
		return false
	}
	_, inA := slices.BinarySearchFunc(c.refers, uint32(a), func(r ref, a uint32) int { return cmp.Compare(r.a, a) })
	_, inB := slices.BinarySearch(c.targetsB, uint32(b))
	return inA && inB
}

// compareConstants compares a section of constants, after refs have been sorted by address.
func (c *comparison) compareConstants(a *section) {
	b := c.other[a]
	for _, p := range c.pieces[a] {
		if p.b+p.n > b.end() || p.b < b.addr {
			c.problem(p.a, p.b, "objects that do not fit")
			continue
		}
		da, db := a.at(p.a)[:p.n], b.at(p.b)[:p.n]
		aligned := (p.a-p.b)%8 == 0
		for i := 0; i < len(da); {
			at := p.a + uint64(i)
			if at%8 != 0 || i+8 > len(da) {
				if da[i] != db[i] && !c.isExplained(at) && !c.inHole(at, p.b+uint64(i), da[i], db[i]) {
					c.problem(at, p.b+uint64(i), "")
				}
				i++
				continue
			}
			wa, wb := binary.LittleEndian.Uint64(da[i:]), binary.LittleEndian.Uint64(db[i:])
			if wa != wb || wa>>32 == 0 && wa >= c.a.text.addr {
				if !c.sameConstant(a, at, p.b+uint64(i), wa, wb, aligned) {
					first := uint64(bits.TrailingZeros64(wa^wb)) / 8 % 8
					c.problem(at+first, p.b+uint64(i)+first, "")
				}
			}
			i += 8
		}
	}
}

// sameConstant compares words of a section at a and b that differ, or may be an address.
func (c *comparison) sameConstant(s *section, a, b, wa, wb uint64, aligned bool) bool {
	differ := false
	for i := range uint64(8) {
		x, y := byte(wa>>(8*i)), byte(wb>>(8*i))
		differ = differ || x != y && !c.isExplained(a+i) && !c.inHole(a+i, b+i, x, y)
	}
	if !differ && (wa != wb || c.isExplained(a)) {
		return true // addresses that are compared as what they are
	}
	if !aligned || wa>>32 != 0 {
		return !differ
	}
	if f := c.a.funcAt(wa); f >= 0 {
		// A jump table is referred to by its function. The same number in both may be an address in function values only.
		isEntry := c.a.funcs[f].entry == wa && (differ || c.valuesA.has(a))
		if !isEntry && !c.refersTo(a, int32(f)) {
			return !differ
		}
	} else if !c.isKnown(wa, wb) && !(differ && c.isHeader(s, c.other[s], a, b)) &&
		!(differ && c.a.leadsSomewhere(wa, 0) && c.b.leadsSomewhere(wb, 0)) {
		return !differ
	}
	return c.corresponds(wa, wb)
}

// inHole reports whether bytes x at a and y at b are of holes that are laid over each other, or of the padding behind the
// shorter one.
func (c *comparison) inHole(a, b uint64, x, y byte) bool {
	inA, inB := c.holeA.has(a), c.holeB.has(b)
	return inA && inB || inA && y == 0 || inB && x == 0
}

// refersTo reports whether function fn refers to the object at or before an address.
func (c *comparison) refersTo(a uint64, fn int32) bool {
	i, _ := slices.BinarySearchFunc(c.refers, uint32(a)+1, func(r ref, a uint32) int { return cmp.Compare(r.a, a) })
	for k := i - 1; k >= 0 && c.refers[k].a == c.refers[i-1].a; k-- {
		if c.refers[k].fn == fn {
			return true
		}
	}
	return false
}

// checkFIPS checks the sum with which a program in FIPS mode checks itself, and which covers addresses: see
// cmd/link/internal/ld/fips140.go.
func (x *exe) checkFIPS() error {
	const sumAt, size = 16, 120
	i := slices.IndexFunc(x.sections, func(s *section) bool { return s.name == ".go.fipsinfo" })
	if i < 0 {
		return nil
	}
	s := x.sections[i]
	if s.size != size || s.data == nil || s.word(s.addr+48) != s.addr {
		return fmt.Errorf("%w: its .go.fipsinfo is unusual", errUnsupported)
	}
	h := hmac.New(sha256.New, make([]byte, 32))
	h.Write([]byte("go fips object v1\n"))
	for at := s.addr + 56; at < s.addr+size; at += 16 {
		from, to := s.word(at), s.word(at+8)
		in := x.section(from)
		if in == nil || in.data == nil || to < from || to > in.end() {
			return fmt.Errorf("%w: its .go.fipsinfo is unusual", errUnsupported)
		}
		h.Write(binary.BigEndian.AppendUint64(nil, to-from))
		h.Write(in.at(from)[:to-from])
	}
	if !bytes.Equal(h.Sum(nil), s.data[sumAt:][:32]) {
		return fmt.Errorf("%w: the FIPS sum in it is wrong", errUnsupported)
	}
	return nil
}

// compareFIPS compares the header of the FIPS sums, which checkFIPS has verified.
func (c *comparison) compareFIPS() {
	find := func(x *exe) *section {
		for _, s := range x.sections {
			if s.name == ".go.fipsinfo" {
				return s
			}
		}
		return nil
	}
	a, b := find(c.a), find(c.b)
	if a == nil || b == nil {
		return // the lists of sections are compared
	}
	if !bytes.Equal(a.data[:16], b.data[:16]) {
		c.problem(a.addr, b.addr, "")
	}
}

// preview returns a short form of data, as text if possible, else in hexadecimal.
func preview(data []byte) string {
	const most = 48 // bytes
	cut := data[:min(len(data), most)]
	text := strings.TrimRight(string(cut), "\x00")
	if len(text) >= 4 && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) {
		return fmt.Sprintf("%d bytes %q", len(data), text)
	}
	return fmt.Sprintf("%d bytes % x", len(data), data[:min(len(data), 16)])
}
