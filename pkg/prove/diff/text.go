package diff

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// A ref is a pair of addresses to which the same place in both programs refers.
type ref struct {
	a, b uint32
	fn   int32  // the function of A that refers, or noFunction
	from uint32 // where in A's data, if no function does
}

// A textDiff is the first place where the instructions of two functions differ.
type textDiff struct {
	off  int // bytes from the functions' entries
	what string
}

// A textComparer compares instructions. One goroutine uses it.
type textComparer struct {
	refs []ref
	fn   int32
}

func (c *textComparer) refer(a, b uint64) {
	c.refs = append(c.refs, ref{uint32(a), uint32(b), c.fn, 0})
}

// branch compares two targets of branches in functions of n bytes at pa and pb. It reports whether they can be the same, and
// records targets outside the function.
func (c *textComparer) branch(ta, tb, pa, pb uint64, n int) bool {
	inA, inB := ta-pa < uint64(n), tb-pb < uint64(n)
	if inA || inB {
		return inA && inB && ta-pa == tb-pb
	}
	c.refer(ta, tb)
	return true
}

// compareX86 compares the instructions of two functions at pa and pb.
func (c *textComparer) compareX86(ca, cb []byte, pa, pb uint64) *textDiff {
	le := binary.LittleEndian
	n := len(ca)
	for i := 0; i < n; {
		in, ok := decodeX86(ca[i:])
		if !ok {
			return &textDiff{i, "an unknown instruction"}
		}
		if i+in.size > len(cb) {
			return &textDiff{i, ""}
		}
		a, b := ca[i:i+in.size], cb[i:i+in.size]
		same := func(from, to int) bool { return bytes.Equal(a[from:to], b[from:to]) }
		end := uint64(i + in.size)
		switch {
		case in.rel != 0:
			if !same(0, in.rel) {
				return &textDiff{i, ""}
			}
			var da, db int64
			if in.relSize == 1 {
				da, db = int64(int8(a[in.rel])), int64(int8(b[in.rel]))
			} else {
				da, db = int64(int32(le.Uint32(a[in.rel:]))), int64(int32(le.Uint32(b[in.rel:])))
			}
			if !c.branch(pa+end+uint64(da), pb+end+uint64(db), pa, pb, n) {
				return &textDiff{i, ""}
			}
		case in.disp != 0 && (in.rip || in.absolute):
			if !same(0, in.disp) || !same(in.disp+4, in.size) {
				return &textDiff{i, ""}
			}
			da, db := uint64(int64(int32(le.Uint32(a[in.disp:])))), uint64(int64(int32(le.Uint32(b[in.disp:]))))
			switch {
			case in.rip:
				if !c.branch(pa+end+da, pb+end+db, pa, pb, n) {
					return &textDiff{i, ""}
				}
			case da != db: // no register: the assembler never makes an address of it
				return &textDiff{i, ""}
			}
		case !bytes.Equal(a, b):
			return &textDiff{i, ""}
		}
		i += in.size
	}
	if len(cb) != n {
		return &textDiff{n, fmt.Sprintf("%d and %d bytes of instructions", n, len(cb))}
	}
	return nil
}

// Instructions of arm64, by mask and value.
func isBranch26(w uint32) bool { return w&0x7C000000 == 0x14000000 } // B, BL
func isBranch19(w uint32) bool { return w&0xFF000000 == 0x54000000 || w&0x7E000000 == 0x34000000 }
func isBranch14(w uint32) bool { return w&0x7E000000 == 0x36000000 } // TBZ, TBNZ
func isADR(w uint32) bool      { return w&0x9F000000 == 0x10000000 }
func isADRP(w uint32) bool     { return w&0x9F000000 == 0x90000000 }
func isLiteral(w uint32) bool  { return w&0x3B000000 == 0x18000000 } // LDR from a literal pool

// field returns the signed field of n bits from bit lo of w.
func field(w uint32, lo, n int) int64 { return int64(int32(w<<(32-lo-n)) >> (32 - n)) }

// adrImmediate returns the immediate of ADR and ADRP.
func adrImmediate(w uint32) int64 { return field(w, 5, 19)<<2 | int64(w>>29&3) }

// pageOffset returns what the instruction after an ADRP to register reg, an ADD or a load or store, adds to the address. It returns
// false for any other instruction.
func pageOffset(w, reg uint32) (off uint64, mask uint32, ok bool) {
	const immediate = 0xFFF << 10
	if w>>5&31 != reg {
		return 0, 0, false
	}
	switch {
	case w&0xFFC00000 == 0x91000000: // ADD, 64 bits, no shift
		return uint64(w >> 10 & 0xFFF), immediate, true
	case w&0x3B000000 == 0x39000000: // load or store, unsigned offset
		scale := w >> 30
		if w&0x04800000 == 0x04800000 && scale == 0 {
			scale = 4 // of 128 bits
		}
		return uint64(w>>10&0xFFF) << scale, immediate, true
	}
	return 0, 0, false
}

// compareARM64 compares the instructions of two functions at pa and pb.
func (c *textComparer) compareARM64(ca, cb []byte, pa, pb uint64) *textDiff {
	n := len(ca)
	if n%4 != 0 && bytes.Equal(ca, cb) {
		return nil // a mark of the linker
	}
	if len(cb) != n || n%4 != 0 {
		return &textDiff{firstDifference(ca, cb) &^ 3, fmt.Sprintf("%d and %d bytes of instructions", n, len(cb))}
	}
	le := binary.LittleEndian
	var pool map[int]bool // offsets of words that are not instructions
	for i := 0; i < n; i += 4 {
		a, b := le.Uint32(ca[i:]), le.Uint32(cb[i:])
		pcA, pcB := pa+uint64(i), pb+uint64(i)
		diff := &textDiff{i, ""}
		immediate := func(mask uint32, lo, bits int) *textDiff {
			ta, tb := pcA+uint64(field(a, lo, bits)*4), pcB+uint64(field(b, lo, bits)*4)
			if a&^mask != b&^mask || !c.branch(ta, tb, pa, pb, n) {
				return diff
			}
			return nil
		}
		var d *textDiff
		switch {
		case pool[i]:
			if a != b {
				d = diff
			}
		case isBranch26(a):
			d = immediate(1<<26-1, 0, 26)
		case isBranch19(a):
			d = immediate((1<<19-1)<<5, 5, 19)
		case isBranch14(a):
			d = immediate((1<<14-1)<<5, 5, 14)
		case isLiteral(a):
			at := i + int(field(a, 5, 19)*4)
			if a != b || at < 0 || at >= n {
				d = diff
				break
			}
			if pool == nil {
				pool = map[int]bool{}
			}
			for k := range 4 { // a literal has at most 16 bytes; all that is behind the code is literals
				if at > i && (k < 1 || k < 2 && a>>30 != 0 || a>>30 == 2 && a&(1<<26) != 0) {
					pool[at+4*k] = true
				}
			}
		case isADR(a):
			const mask = 3<<29 | (1<<19-1)<<5
			if a&^mask != b&^mask || !c.branch(pcA+uint64(adrImmediate(a)), pcB+uint64(adrImmediate(b)), pa, pb, n) {
				d = diff
			}
		case isADRP(a):
			const mask = 3<<29 | (1<<19-1)<<5
			if a&^mask != b&^mask || i+8 > n {
				d = diff
				break
			}
			a2, b2 := le.Uint32(ca[i+4:]), le.Uint32(cb[i+4:])
			offA, used, ok := pageOffset(a2, a&31)
			offB, _, ok2 := pageOffset(b2, b&31)
			switch {
			case !ok || !ok2:
				d = &textDiff{i, "an address of unknown use"}
			case a2&^used != b2&^used:
				d = &textDiff{i + 4, ""}
			default:
				ta, tb := pcA&^0xFFF+uint64(adrImmediate(a)<<12)+offA, pcB&^0xFFF+uint64(adrImmediate(b)<<12)+offB
				if !c.branch(ta, tb, pa, pb, n) {
					d = diff
				}
				i += 4
			}
		case a != b:
			d = diff
		}
		if d != nil {
			return d
		}
	}
	return nil
}

// firstDifference returns the index of the first byte that differs, or the length of the shorter slice.
func firstDifference(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// isPadding reports whether code holds only bytes with which a linker fills up functions.
func isPadding(code []byte) bool {
	for _, c := range code {
		if c != 0xCC && c != 0 {
			return false
		}
	}
	return true
}
