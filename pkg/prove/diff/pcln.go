package diff

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// The parts of runtime._func, by offset in bytes.
const (
	funcName      = 4
	funcArgs      = 8
	funcDeferRet  = 12
	funcPCSP      = 16
	funcPCFile    = 20
	funcPCLn      = 24
	funcNPCData   = 28
	funcCU        = 32
	funcStartLine = 36
	funcID        = 40
	funcFlag      = 41
	funcNFuncData = 43
	funcSize      = 44 // arrays of pcdata and funcdata follow

	flagAsm = 4
)

// Kinds of pcdata and funcdata: see internal/abi/symtab.go.
const (
	pcdataInlTree = 2
	pcdataArgLive = 3

	funcdataArgs        = 0
	funcdataLocals      = 1
	funcdataObjects     = 2
	funcdataInlTree     = 3
	funcdataDefer       = 4
	funcdataArgInfo     = 5
	funcdataArgLiveInfo = 6
	funcdataWrapInfo    = 7

	argInfoEnd, argInfoTooLarge = 0xFF, 0xFB
)

func (f *function) u32(off int) uint32 { return binary.LittleEndian.Uint32(f.info[off:]) }

func (f *function) pcdata(i int) uint32 { return f.u32(funcSize + 4*i) }

func (f *function) funcdata(i int) uint32 { return f.u32(funcSize + 4*(int(f.u32(funcNPCData))+i)) }

// A pcStep is one step of a table of values by program counter: value is valid from the end of the step before up to pc.
type pcStep struct {
	pc    uint32 // bytes from the function's entry
	value int32
}

// pcTable decodes a table in pctab. The result is kept in buf.
func (x *exe) pcTable(off uint32, buf []pcStep) ([]pcStep, bool) {
	buf = buf[:0]
	if off == 0 {
		return buf, true
	}
	if uint64(off) >= x.mod[modPCTab+1] {
		return nil, false
	}
	table := x.pclntab.at(x.mod[modPCTab])[:x.mod[modPCTab+1]][off:]
	quantum := uint64(x.pclntab.data[6])
	value, pc := int32(-1), uint64(0)
	for first := true; ; first = false {
		v, n := binary.Uvarint(table)
		if n <= 0 {
			return nil, false
		}
		if v == 0 && !first {
			return buf, true
		}
		d, m := binary.Uvarint(table[n:])
		if m <= 0 {
			return nil, false
		}
		table = table[n+m:]
		value += int32(uint32(v>>1) ^ -uint32(v&1))
		if pc += d * quantum; pc > math.MaxUint32 {
			return nil, false
		}
		buf = append(buf, pcStep{uint32(pc), value})
	}
}

// codeSize returns how many bytes of f are instructions rather than padding.
func (x *exe) codeSize(f *function, buf []pcStep) (int, bool) {
	for _, table := range []int{funcPCSP, funcPCLn, funcPCFile} {
		if off := f.u32(table); off != 0 {
			steps, ok := x.pcTable(off, buf)
			if !ok || len(steps) == 0 || uint64(steps[len(steps)-1].pc) > f.end-f.entry {
				return 0, false
			}
			return int(steps[len(steps)-1].pc), true
		}
	}
	return int(f.end - f.entry), true
}

// path returns the name of a file of f's compilation unit.
func (x *exe) path(f *function, file int32) (string, bool) {
	i := uint64(f.u32(funcCU)) + uint64(uint32(file))
	if file < 0 || i >= x.mod[modCUs+1] {
		return "", false
	}
	off := binary.LittleEndian.Uint32(x.pclntab.at(x.mod[modCUs])[4*i:])
	return cString(x.pclntab.at(x.mod[modFiles])[:x.mod[modFiles+1]], off)
}

// A metaComparer compares the entries of the function table. One goroutine uses it.
type metaComparer struct {
	*comparison
	bufA, bufB []pcStep
	paths      map[[2]string]int // functions, by the two paths of a file
	last       [2]string         // the pair of paths counted last
}

// compare returns what differs in the function table's entries of two functions, or "".
func (c *metaComparer) compare(i, j int) string {
	f, g := &c.a.funcs[i], &c.b.funcs[j]
	for _, field := range []struct {
		off  int
		name string
	}{{funcStartLine, "first line"}, {funcArgs, "size of arguments"}, {funcDeferRet, "place of deferred calls"}} {
		if a, b := int32(f.u32(field.off)), int32(g.u32(field.off)); a != b {
			return fmt.Sprintf("%s: %d and %d", field.name, a, b)
		}
	}
	if f.info[funcID] != g.info[funcID] || f.info[funcFlag] != g.info[funcFlag] {
		return fmt.Sprintf("kind: %d/%d and %d/%d", f.info[funcID], f.info[funcFlag], g.info[funcID], g.info[funcFlag])
	}
	if !c.sameSteps(f.u32(funcPCSP), g.u32(funcPCSP)) {
		return "stack depth by instruction"
	}
	if !c.sameSteps(f.u32(funcPCLn), g.u32(funcPCLn)) {
		return "line numbers"
	}
	if what := c.compareFiles(f, g); what != "" {
		return what
	}
	n := f.u32(funcNPCData)
	if n != g.u32(funcNPCData) || f.info[funcNFuncData] != g.info[funcNFuncData] {
		return "number of tables"
	}
	for k := range int(n) {
		if !c.sameSteps(f.pcdata(k), g.pcdata(k)) {
			return fmt.Sprintf("values by instruction (pcdata %d)", k)
		}
	}
	for k := range int(f.info[funcNFuncData]) {
		if !c.sameFuncdata(f, g, k) {
			return fmt.Sprintf("stack maps or inlining (funcdata %d)", k)
		}
	}
	return ""
}

// sameSteps compares two tables of values by program counter.
func (c *metaComparer) sameSteps(a, b uint32) bool {
	if a == 0 || b == 0 {
		return a == b
	}
	n, m := c.a.mod[modPCTab+1], c.b.mod[modPCTab+1]
	if uint64(a) >= n || uint64(b) >= m {
		return false
	}
	ta, tb := c.a.pclntab.at(c.a.mod[modPCTab])[:n][a:], c.b.pclntab.at(c.b.mod[modPCTab])[:m][b:]
	for i := 0; ; { // pairs of varints; a zero ends them, unless it is the first
		va, na := binary.Uvarint(ta[i:])
		vb, nb := binary.Uvarint(tb[min(i, len(tb)):])
		if va != vb || na != nb || na <= 0 {
			return false
		}
		if va == 0 && i > 0 {
			return true
		}
		i += na
		va, na = binary.Uvarint(ta[i:])
		vb, nb = binary.Uvarint(tb[i:])
		if va != vb || na != nb || na <= 0 {
			return false
		}
		i += na
	}
}

// compareFiles compares the source files of instructions. Paths may differ, but a file must be one file on the other side.
func (c *metaComparer) compareFiles(f, g *function) string {
	var okA, okB bool
	c.bufA, okA = c.a.pcTable(f.u32(funcPCFile), c.bufA)
	c.bufB, okB = c.b.pcTable(g.u32(funcPCFile), c.bufB)
	if !okA || !okB || len(c.bufA) != len(c.bufB) {
		return "source files"
	}
	for k, a := range c.bufA {
		b := c.bufB[k]
		if a.pc != b.pc {
			return "source files"
		}
		if a.value < 0 && a.value == b.value {
			continue
		}
		pa, ok := c.a.path(f, a.value)
		pb, ok2 := c.b.path(g, b.value)
		if !ok || !ok2 {
			return "source files"
		}
		if pair := [2]string{pa, pb}; pair != c.last {
			c.paths[pair]++
			c.last = pair
		}
	}
	return ""
}

// sameFuncdata compares the k-th table of two functions by its meaning.
func (c *metaComparer) sameFuncdata(f, g *function, k int) bool {
	a, b := f.funcdata(k), g.funcdata(k)
	if a == math.MaxUint32 || b == math.MaxUint32 {
		return a == b
	}
	da, db := c.a.funcdataAt(a), c.b.funcdataAt(b)
	le := binary.LittleEndian
	same := func(n uint64) bool {
		return n <= uint64(len(da)) && n <= uint64(len(db)) && bytes.Equal(da[:n], db[:n])
	}
	switch k {
	case funcdataArgs, funcdataLocals:
		if !same(8) {
			return false
		}
		n, bits := uint64(le.Uint32(da)), uint64(le.Uint32(da[4:]))
		return same(8 + n*((bits+7)/8))
	case funcdataObjects:
		if !same(8) {
			return false
		}
		n := le.Uint64(da)
		if n > uint64(len(da))/16 || n > uint64(len(db))/16 {
			return false
		}
		for i := range n {
			at := 8 + 16*i
			if at+16 > uint64(len(da)) || at+16 > uint64(len(db)) || !bytes.Equal(da[at:at+12], db[at:at+12]) {
				return false
			}
			c.refer(c.a.mod[modRodata]+uint64(le.Uint32(da[at+12:])), c.b.mod[modRodata]+uint64(le.Uint32(db[at+12:])))
		}
		return true
	case funcdataInlTree:
		return c.sameInlining(f, da, db)
	case funcdataDefer:
		_, n := binary.Uvarint(da)
		if n <= 0 {
			return false
		}
		_, m := binary.Uvarint(da[n:])
		return m > 0 && same(uint64(n+m))
	case funcdataArgInfo:
		return same(argInfoSize(da))
	case funcdataArgLiveInfo:
		return same(1) && same(c.argLiveSize(f, da))
	case funcdataWrapInfo:
		if len(da) < 4 || len(db) < 4 {
			return false
		}
		c.refer(c.a.mod[modText]+uint64(le.Uint32(da)), c.b.mod[modText]+uint64(le.Uint32(db)))
		return true
	}
	return false // unknown
}

// argInfoSize returns the size of a description of arguments in bytes: see runtime.printArgs.
func argInfoSize(d []byte) uint64 {
	for i := 0; i < len(d); {
		switch o := d[i]; {
		case o == argInfoEnd:
			return uint64(i) + 1
		case o >= argInfoTooLarge:
			i++
		default:
			i += 2 // offset and size
		}
	}
	return math.MaxInt32
}

// argSlots counts the arguments of a description whose liveness is recorded: those from the offset first.
func argSlots(d []byte, first byte) uint64 {
	n := uint64(0)
	for i := 0; i < len(d) && d[i] != argInfoEnd; i++ {
		if d[i] < argInfoTooLarge {
			if d[i] >= first {
				n++
			}
			i++ // its size
		}
	}
	return n
}

// argLiveSize returns how many bytes of f's liveness of arguments are in use.
func (c *metaComparer) argLiveSize(f *function, live []byte) uint64 {
	slots := uint64(0)
	if int(f.info[funcNFuncData]) > funcdataArgInfo {
		if off := f.funcdata(funcdataArgInfo); off != math.MaxUint32 {
			slots = argSlots(c.a.funcdataAt(off), live[0])
		}
	}
	last := int32(0)
	if f.u32(funcNPCData) > pcdataArgLive {
		c.bufA, _ = c.a.pcTable(f.pcdata(pcdataArgLive), c.bufA)
		for _, s := range c.bufA {
			last = max(last, s.value)
		}
	}
	if last == 0 {
		return 1 // only the first offset
	}
	return uint64(last) + (slots+7)/8
}

// sameInlining compares those entries of the tree of inlined calls that instructions belong to.
func (c *metaComparer) sameInlining(f *function, da, db []byte) bool {
	const size = 16 // of runtime.inlinedCall
	if f.u32(funcNPCData) <= pcdataInlTree {
		return false
	}
	var ok bool
	if c.bufA, ok = c.a.pcTable(f.pcdata(pcdataInlTree), c.bufA); !ok {
		return false
	}
	last := int32(-1)
	for _, s := range c.bufA {
		last = max(last, s.value)
	}
	n := (int(last) + 1) * size
	if n > len(da) || n > len(db) {
		return false
	}
	le := binary.LittleEndian
	for i := 0; i < n; i += size {
		a, b := da[i:i+size], db[i:i+size]
		na, okA := c.a.funcName(le.Uint32(a[4:]))
		nb, okB := c.b.funcName(le.Uint32(b[4:]))
		if !okA || !okB || !bytes.Equal(na, nb) || !bytes.Equal(a[:4], b[:4]) || !bytes.Equal(a[8:], b[8:]) {
			return false
		}
	}
	return true
}

// funcName returns a name of the function table, with the zero byte that ends it.
func (x *exe) funcName(off uint32) ([]byte, bool) {
	names := x.pclntab.at(x.mod[modFuncNames])[:x.mod[modFuncNames+1]]
	if uint64(off) >= uint64(len(names)) {
		return nil, false
	}
	n := bytes.IndexByte(names[off:], 0)
	return names[off:][:n+1], n >= 0
}

// funcdataAt returns the data at an offset from the base of funcdata.
func (x *exe) funcdataAt(off uint32) []byte {
	base := x.mod[modGoFunc]
	if base+uint64(off) >= x.pclntab.end() {
		return nil
	}
	return x.pclntab.at(base + uint64(off))
}
