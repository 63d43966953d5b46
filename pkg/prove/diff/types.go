package diff

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// Offsets in bytes within abi.Type, and its sizes by kind: see internal/abi/type.go.
const (
	typePtrBytes = 8
	typeTFlag    = 20
	typeAlign    = 21
	typeKind     = 23
	typeEqual    = 24
	typeGCData   = 32
	typeStr      = 40
	typePtrTo    = 44
	typeSize     = 48

	tflagUncommon = 1
	uncommonSize  = 16
	methodSize    = 16

	kindArray, kindChan, kindFunc, kindInterface, kindMap, kindPointer, kindSlice, kindStruct, kindLast = 17, 18, 19, 20, 21, 22, 23, 25, 26
)

// A typeWalker walks the type descriptors of both programs in parallel. They hold offsets, which only their layout distinguishes
// from numbers.
type typeWalker struct {
	*comparison
	seen map[uint32]uint32 // descriptors of A, and their counterparts

	lastA, lastB   uint64 // descriptors
	equalA, equalB uint64 // the first function values of types
	bitsA, bitsB   uint64 // the first maps of pointers in .rodata
}

// regions finds strings and function values. In Go 1.26, .rodata has types, strings, and function values, some of which belong to
// types; since Go 1.27 it begins with strings, and maps of pointers follow.
func (w *typeWalker) regions() {
	w.valuesA, w.valuesB = w.a.functionValues(w.equalA), w.b.functionValues(w.equalB)
	if w.a.types == w.a.rodata {
		w.stringsA, w.stringsB = extent{w.lastA, w.valuesA.from}, extent{w.lastB, w.valuesB.from}
		return
	}
	w.stringsA, w.stringsB = extent{w.a.rodata.addr, w.bitsA}, extent{w.b.rodata.addr, w.bitsB}
}

// functionValues returns where there are only addresses of functions around one of them.
func (x *exe) functionValues(at uint64) extent {
	if at%8 != 0 || !x.values.has(at) {
		return extent{}
	}
	is := func(at uint64) bool { return x.values.has(at) && x.values.has(at+7) && x.isEntry(x.values.word(at)) }
	e := extent{at, at}
	for is(e.to) {
		e.to += 8
	}
	for is(e.from - 8) {
		e.from -= 8
	}
	return e
}

// maybe walks a pair of addresses if both may be type descriptors.
func (w *typeWalker) maybe(a, b uint64) {
	if _, ok := w.seen[uint32(a)]; ok || !w.a.plausibleType(a) || !w.b.plausibleType(b) {
		return
	}
	w.walk(a, b)
}

// plausibleType reports whether a type descriptor may be at an address.
func (x *exe) plausibleType(at uint64) bool {
	r := x.types
	if at%8 != 0 || !r.has(at) || r.end()-at < typeSize {
		return false
	}
	d := r.at(at)
	le := binary.LittleEndian
	kind, align := d[typeKind], d[typeAlign]
	if kind == 0 || kind > kindLast || align == 0 || align&(align-1) != 0 || align > 64 || le.Uint64(d[typePtrBytes:]) > le.Uint64(d) {
		return false
	}
	if gc := le.Uint64(d[typeGCData:]); le.Uint64(d[typePtrBytes:]) > 0 && x.section(gc) == nil {
		return false
	}
	off := uint64(le.Uint32(d[typeStr:]))
	if off == 0 || off >= r.size {
		return false
	}
	n := r.data[off:]
	size, k := binary.Uvarint(n[1:min(len(n), 11)])
	return n[0] < 16 && k > 0 && size > 0 && size < uint64(len(n)-1-k) && utf8.Valid(n[1+k:][:size])
}

// pointer records a pair of pointers at the same place of two constants, and returns them.
func (w *typeWalker) pointer(a, b uint64) (uint64, uint64) {
	ra, rb := w.a.constant(a, 8), w.b.constant(b, 8)
	if ra == nil || rb == nil {
		return 0, 0
	}
	ta, tb := ra.word(a), rb.word(b)
	if ta == 0 && tb == 0 {
		return 0, 0
	}
	w.explain(a, 8)
	w.refers = append(w.refers, ref{uint32(ta), uint32(tb), noFunction, uint32(a)})
	if ta > math.MaxUint32 || tb > math.MaxUint32 {
		w.problem(a, b, "a pointer out of the program")
	}
	return ta, tb
}

// offset records a pair of offsets from a base, and returns what they lead to.
func (w *typeWalker) offset(a, b, baseA, baseB uint64) (uint64, uint64) {
	ra, rb := w.a.constant(a, 4), w.b.constant(b, 4)
	if ra == nil || rb == nil {
		return 0, 0
	}
	oa, ob := binary.LittleEndian.Uint32(ra.at(a)), binary.LittleEndian.Uint32(rb.at(b))
	if oa == ob && (oa == 0 || oa == math.MaxUint32) { // none
		return 0, 0
	}
	w.explain(a, 4)
	w.refers = append(w.refers, ref{uint32(baseA + uint64(oa)), uint32(baseB + uint64(ob)), noFunction, uint32(a)})
	return baseA + uint64(oa), baseB + uint64(ob)
}

// walk walks the descriptors at a and b, and all that they lead to.
func (w *typeWalker) walk(a, b uint64) {
	type pair struct{ a, b uint64 }
	stack := []pair{{a, b}}
	push := func(a, b uint64) {
		if a != 0 && b != 0 {
			stack = append(stack, pair{a, b})
		}
	}
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if _, ok := w.seen[uint32(p.a)]; ok || !w.a.plausibleType(p.a) || !w.b.plausibleType(p.b) {
			continue
		}
		w.seen[uint32(p.a)] = uint32(p.b)
		w.fields(p.a, p.b, push)
	}
}

func (w *typeWalker) fields(a, b uint64, push func(a, b uint64)) {
	da, db := w.a.types.at(a), w.b.types.at(b)
	types, typesB := w.a.mod[modTypes], w.b.mod[modTypes]
	if !bytes.Equal(da[:typeEqual], db[:typeEqual]) {
		return // the bytes are compared later
	}
	at := func(off uint64) (uint64, uint64) { return a + off, b + off }
	follow := func(off uint64) { push(w.pointer(at(off))) }
	typeOff := func(off uint64) {
		x, y := at(off)
		push(w.offset(x, y, types, typesB))
	}
	nameOff := func(off uint64) {
		x, y := at(off)
		w.name(w.offset(x, y, types, typesB))
	}
	count := func(off uint64) uint64 { // of a list, limited in case the program is damaged
		if x := a + off; w.a.types.has(x + 7) {
			return min(w.a.types.word(x), 1<<16)
		}
		return 0
	}
	w.lastA, w.lastB = max(w.lastA, a), max(w.lastB, b)
	if ea, eb := w.pointer(at(typeEqual)); ea != 0 && (w.equalA == 0 || ea < w.equalA) {
		w.equalA, w.equalB = ea, eb
	}
	if ga, gb := w.pointer(at(typeGCData)); w.a.rodata.has(ga) && (w.bitsA == 0 || ga < w.bitsA) {
		w.bitsA, w.bitsB = ga, gb
	}
	nameOff(typeStr)
	typeOff(typePtrTo)
	size := uint64(typeSize)
	switch kind := da[typeKind]; kind {
	case kindArray:
		follow(48)
		follow(56)
		size = 72
	case kindChan:
		follow(48)
		size = 64
	case kindPointer, kindSlice:
		follow(48)
		size = 56
	case kindMap:
		follow(48)
		follow(56)
		follow(64)
		w.pointer(at(72)) // hash function
		size = w.a.mapTypeSize()
	case kindInterface:
		w.name(w.pointer(at(48)))
		ma, mb := w.pointer(at(56))
		for i := range count(64) {
			w.name(w.offset(ma+8*i, mb+8*i, types, typesB))
			push(w.offset(ma+8*i+4, mb+8*i+4, types, typesB))
		}
		size = 80
	case kindStruct:
		w.name(w.pointer(at(48)))
		fa, fb := w.pointer(at(56))
		for i := range count(64) {
			w.name(w.pointer(fa+24*i, fb+24*i))
			push(w.pointer(fa+24*i+8, fb+24*i+8))
		}
		size = 80
	case kindFunc:
		size = 56
	}
	uncommon := size
	if da[typeTFlag]&tflagUncommon != 0 {
		size += uncommonSize
		if uint64(len(da)) < size || uint64(len(db)) < size {
			return
		}
		nameOff(uncommon)
		n, off := binary.LittleEndian.Uint16(da[uncommon+4:]), binary.LittleEndian.Uint32(da[uncommon+8:])
		for i := range uint64(n) {
			m := uncommon + uint64(off) + methodSize*i
			nameOff(m)
			typeOff(m + 4)
			for _, f := range []uint64{8, 12} {
				x, y := at(m + f)
				w.offset(x, y, w.a.mod[modText], w.b.mod[modText])
			}
		}
	}
	if da[typeKind] == kindFunc && len(da) >= 52 {
		in, out := binary.LittleEndian.Uint16(da[48:]), binary.LittleEndian.Uint16(da[50:])&0x7FFF
		for i := range uint64(in) + uint64(out) {
			follow(size + 8*i)
		}
	}
}

// name records the package of a name, which is its only part that is not text.
func (w *typeWalker) name(a, b uint64) {
	const hasTag, hasPackage = 2, 4
	ra, rb := w.a.constant(a, 1), w.b.constant(b, 1)
	if ra == nil || rb == nil {
		return
	}
	d := ra.at(a)
	flags, off := d[0], uint64(1)
	if flags != rb.at(b)[0] || flags&hasPackage == 0 {
		return
	}
	for range 1 + (flags & hasTag / hasTag) {
		if off >= uint64(len(d)) {
			return
		}
		n, k := binary.Uvarint(d[off:])
		if k <= 0 || n > uint64(len(d)) {
			return
		}
		off += uint64(k) + n
	}
	w.offset(a+off, b+off, w.a.mod[modTypes], w.b.mod[modTypes])
}

// links walks the types and tables of methods that the linker lists, in Go 1.26 in sections of their own.
func (w *typeWalker) links() {
	a, b := w.a, w.b
	if a.typelink == nil {
		w.lists()
		return
	}
	if a.typelink.size != b.typelink.size || a.itablink.size != b.itablink.size {
		w.problem(a.typelink.addr, b.typelink.addr, "another number of types")
		return
	}
	le := binary.LittleEndian
	for i := uint64(0); i < a.typelink.size; i += 4 {
		x, y := a.mod[modTypes]+uint64(le.Uint32(a.typelink.data[i:])), b.mod[modTypes]+uint64(le.Uint32(b.typelink.data[i:]))
		w.refers = append(w.refers, ref{uint32(x), uint32(y), noFunction, uint32(a.typelink.addr + i)})
		w.walk(x, y)
	}
	for i := uint64(0); i < a.itablink.size; i += 8 {
		w.itab(le.Uint64(a.itablink.data[i:]), le.Uint64(b.itablink.data[i:]), a.itablink.addr+i)
	}
}

// lists walks the types, and the tables of methods behind them, that follow each other since Go 1.27: see
// runtime.moduleTypelinks and runtime.addModuleItabs.
func (w *typeWalker) lists() {
	a, b := w.a.types, w.b.types
	if w.a.lists != w.b.lists {
		w.problem(a.addr, b.addr, "another number of types")
		return
	}
	at := uint64(8)
	for at < w.a.lists.typesEnd {
		at = (at + 7) &^ 7
		size, ok := w.a.descriptorSize(a.addr + at)
		if sizeB, okB := w.b.descriptorSize(b.addr + at); !ok || !okB || size != sizeB {
			w.problem(a.addr+at, b.addr+at, "another list of types")
			return
		}
		w.refers = append(w.refers, ref{uint32(a.addr + at), uint32(b.addr + at), noFunction, uint32(a.addr + at)})
		w.walk(a.addr+at, b.addr+at)
		at += size
	}
	for at = w.a.lists.itabs; at < w.a.lists.itabs+w.a.lists.itabsSize; {
		size, ok := w.a.itabSize(a.addr + at)
		if sizeB, okB := w.b.itabSize(b.addr + at); !ok || !okB || size != sizeB {
			w.problem(a.addr+at, b.addr+at, "another list of tables of methods")
			return
		}
		w.itab(a.addr+at, b.addr+at, a.addr+at)
		at += size
	}
}

// mapTypeSize returns the size of abi.MapType in bytes.
func (x *exe) mapTypeSize() uint64 {
	if x.goVersion == "go1.26" {
		return 112
	}
	return 136
}

// descriptorSize returns the size in bytes of the type descriptor at an address: see abi.Type.DescriptorSize.
func (x *exe) descriptorSize(at uint64) (uint64, bool) {
	if !x.plausibleType(at) {
		return 0, false
	}
	d := x.types.at(at)
	le := binary.LittleEndian
	size, list := uint64(typeSize), uint64(0)
	switch d[typeKind] {
	case kindArray:
		size = 72
	case kindChan:
		size = 64
	case kindPointer, kindSlice:
		size = 56
	case kindMap:
		size = x.mapTypeSize()
	case kindFunc:
		size = 56
		if len(d) >= 56 {
			list = 8 * (uint64(le.Uint16(d[48:])) + uint64(le.Uint16(d[50:])&0x7FFF))
		}
	case kindInterface, kindStruct:
		size = 80
		each := map[bool]uint64{true: 8, false: 24}[d[typeKind] == kindInterface] // bytes of a method, of a field
		if len(d) >= 72 {
			list = each * min(le.Uint64(d[64:]), 1<<16)
		}
	}
	if d[typeTFlag]&tflagUncommon != 0 {
		if uint64(len(d)) < size+uncommonSize {
			return 0, false
		}
		list += uncommonSize + methodSize*uint64(le.Uint16(d[size+4:]))
	}
	return size + list, size+list <= uint64(len(d))
}

// itabSize returns the size in bytes of the table of methods at an address: see abi.ITab.Size.
func (x *exe) itabSize(at uint64) (uint64, bool) {
	const smallest = 32 // bytes: with one method
	s := x.constant(at, smallest)
	if s == nil {
		return 0, false
	}
	inter := x.types
	if s.word(at+24) == 0 || !inter.has(s.word(at)) || !inter.has(s.word(at)+typeSize+23) {
		return smallest, true
	}
	n := min(max(inter.word(s.word(at)+64), 1), 1<<16) // methods
	return smallest + 8*(n-1), true
}

// itab walks a table of methods that implement an interface.
func (w *typeWalker) itab(a, b, from uint64) {
	const methods = 24 // offset of the first
	w.refers = append(w.refers, ref{uint32(a), uint32(b), noFunction, uint32(from)})
	if w.a.constant(a, methods) == nil || w.b.constant(b, methods) == nil {
		w.problem(from, from, "a table of methods that is not read-only")
		return
	}
	ia, ib := w.pointer(a, b)
	w.walk(ia, ib)
	w.walk(w.pointer(a+8, b+8))
	if !w.a.types.has(ia + 71) {
		return
	}
	for i := range min(w.a.types.word(ia+64), 1<<16) {
		w.pointer(a+methods+8*i, b+methods+8*i)
	}
}
