package diff

import (
	"cmp"
	"fmt"
	"slices"
)

// A piece is a part of a section of A that is laid over a part of the same section of B.
type piece struct {
	a, b uint64 // addresses
	n    uint64 // bytes
}

// A hole is a part of a section without a counterpart of the same bytes that does not matter to the program: the string of build
// information.
type hole = extent

// An extent is a range of addresses.
type extent struct{ from, to uint64 }

func (h extent) has(addr uint64) bool { return addr >= h.from && addr < h.to }

// maxPadding is the most that a linker leaves free between two objects, in bytes.
const maxPadding = textAlignment - 1

// layout lays the sections of two programs over each other.
type layout struct {
	a, b   *exe
	match  []int32              // function of B, by function of A; -1 if it has none
	pieces map[*section][]piece // by section of A, by address
	other  map[*section]*section
	holeA  hole
	holeB  hole

	stringsA, stringsB extent // where in .rodata there are only strings
	valuesA, valuesB   extent // where in .rodata there are only function values
}

// mapAddr returns the counterpart in B of an address of A.
func (l *layout) mapAddr(a uint64) (uint64, bool) {
	s := l.a.section(a)
	switch {
	case s == nil:
		return 0, false
	case s == l.a.text:
		i := l.a.funcAt(a)
		if i < 0 || l.match[i] < 0 {
			return 0, false
		}
		f, g := &l.a.funcs[i], &l.b.funcs[l.match[i]]
		return g.entry + (a - f.entry), a-f.entry < g.end-g.entry
	case l.holeA.has(a):
		return l.holeB.from, a == l.holeA.from && l.holeB.to > 0
	}
	pieces := l.pieces[s]
	i, ok := slices.BinarySearchFunc(pieces, a, func(p piece, a uint64) int { return cmp.Compare(p.a, a) })
	if !ok {
		i--
	}
	if i < 0 || a >= pieces[i].a+pieces[i].n {
		return 0, false
	}
	return pieces[i].b + (a - pieces[i].a), true
}

// corresponds reports whether b in B is the counterpart of a in A. The end of a section is a place, too.
func (l *layout) corresponds(a, b uint64) bool {
	if m, ok := l.mapAddr(a); ok {
		return m == b
	}
	if l.a.section(a) != nil {
		return false
	}
	s := l.a.section(a - 1)
	return s != nil && s.end() == a && l.other[s] != nil && b == l.other[s].end() && (s == l.a.text || l.b.section(b) == nil)
}

// pairSections pairs sections, which must have the same names in the same order.
func (l *layout) pairSections() error {
	l.pieces, l.other = map[*section][]piece{}, map[*section]*section{}
	if len(l.a.sections) != len(l.b.sections) {
		return fmt.Errorf("%d and %d sections", len(l.a.sections), len(l.b.sections))
	}
	for i, s := range l.a.sections {
		t := l.b.sections[i]
		if s.name != t.name {
			return fmt.Errorf("section %s where B has %s", s.name, t.name)
		}
		l.other[s] = t
	}
	return nil
}

// align aligns a section with its counterpart so that refs fit. It returns what does not fit.
func (l *layout) align(s *section, refs []ref) (bad []string) {
	t := l.other[s]
	if ownComparison[s.name] {
		l.pieces[s] = []piece{{s.addr, t.addr, min(s.size, t.size)}}
		return nil
	}
	if s.size != t.size && s != l.a.rodata {
		bad = append(bad, fmt.Sprintf("%s has %d bytes, and %d", s.name, s.size, t.size))
	}
	pieces, why := l.layPieces(s, t, refs)
	l.pieces[s] = pieces
	return append(bad, why...)
}

// ownComparison lists sections that have a comparison of their own instead of one byte by byte.
var ownComparison = map[string]bool{
	".text": true, ".gopclntab": true, ".go.buildinfo": true, ".go.fipsinfo": true, ".go.module": true,
	".note.go.buildid": true, ".note.gnu.build-id": true,
}

// A stretch is a part of a section of A and one of B that hold the same objects: one or more pieces, or the place of a single pair
// of addresses.
type stretch struct {
	a, b   uint64 // addresses
	n      uint64 // bytes; 0 if only the place is known
	pieces []piece
}

// layPieces lays a section over that of B so that refs fit. Objects must be in the same order, except for some of one size: see
// permutation. Where refs need a cut, one side may only have a hole or padding there. It also returns what else is there.
func (l *layout) layPieces(s, t *section, refs []ref) (pieces []piece, bad []string) {
	run := piece{a: s.addr, b: t.addr}
	atA, atB := s.addr, t.addr
	emit := func(end uint64) {
		if run.n = end - run.a; run.n > 0 {
			pieces = append(pieces, run)
		}
	}
	for _, next := range append(l.stretches(s, t, refs), stretch{a: s.end(), b: t.end()}) {
		if next.b-next.a != atB-atA || atB-atA != run.b-run.a {
			emit(atA)
			if next.b-next.a == atB-atA {
				run = piece{a: atA, b: atB}
			} else {
				between, why := l.cut(s, t, piece{a: atA, b: atB}, piece{a: next.a, b: next.b})
				pieces = append(pieces, between...)
				if why != "" {
					bad = append(bad, why)
				}
				run = piece{a: next.a, b: next.b}
			}
		}
		atA, atB = next.a+next.n, next.b+next.n
		if len(next.pieces) > 0 {
			emit(next.a)
			pieces = append(pieces, next.pieces...)
			run = piece{a: atA, b: atB}
		}
	}
	emit(atA)
	return pieces, bad
}

// farthest is how many objects a linker may put between two neighbors when the order of symbols changes.
const farthest = 256

// stretches returns in order the parts of s and t that refs show to be the same: most of refs, if the programs are similar.
func (l *layout) stretches(s, t *section, refs []ref) []stretch {
	pairs := l.pairs(s, t, refs)
	rank := make([]int, len(pairs)) // by b
	byB := make([]int, len(pairs))
	sortRanks := func() {
		for i := range pairs {
			byB[i] = i
		}
		slices.SortFunc(byB, func(i, j int) int { return cmp.Compare(pairs[i].b, pairs[j].b) })
		for r, i := range byB {
			rank[i] = r
		}
	}
	sortRanks()
	near := pairs[:0]
	for i, p := range pairs {
		if d := rank[i] - i; -farthest <= d && d <= farthest {
			near = append(near, p)
		}
	}
	pairs, byB = near, byB[:len(near)]
	sortRanks()
	var out []stretch
	for i := 0; i < len(pairs); {
		last := rank[i]
		end := i
		for ; end <= last; end++ { // the smallest group with all that is between its objects in both
			last = max(last, rank[end])
		}
		group := pairs[i:end]
		if end-i == 1 {
			out = append(out, stretch{a: group[0].a, b: group[0].b})
		} else if p, ok := l.permutation(pairs, byB, i, end); ok {
			out = append(out, p)
		} else {
			for _, p := range longestRising(group) {
				out = append(out, stretch{a: p.a, b: p.b})
			}
		}
		i = end
	}
	return out
}

// permutation returns a group of objects, pairs[from:to], that have another order in B. None of them may be part of a larger
// object, so only function values and strings may be permuted. A linker sorts strings by size, and those of one size in the
// order in which it meets them. So a group must have one size, and be between smaller and larger strings.
func (l *layout) permutation(pairs []piece, byB []int, from, to int) (stretch, bool) {
	a := func(i int) uint64 { return pairs[i].a }
	b := func(i int) uint64 { return pairs[byB[i]].b }
	n := a(from+1) - a(from)
	for i := from; i+1 < to; i++ {
		if a(i+1)-a(i) != n || b(i+1)-b(i) != n {
			return stretch{}, false
		}
	}
	p := stretch{a: a(from), b: b(from), n: n * uint64(to-from)}
	values := n == 8 && l.valuesA.has(p.a) && l.valuesA.has(p.a+p.n-1) && l.valuesB.has(p.b) && l.valuesB.has(p.b+p.n-1)
	strings := l.stringsA.has(p.a) && l.stringsA.has(p.a+p.n) && l.stringsB.has(p.b) && l.stringsB.has(p.b+p.n) &&
		sorted(a, from, to, len(pairs), n) && sorted(b, from, to, len(pairs), n)
	if !values && !strings {
		return stretch{}, false
	}
	for _, q := range pairs[from:to] {
		p.pieces = append(p.pieces, piece{q.a, q.b, n})
	}
	return p, true
}

// sorted reports whether objects of n bytes between from and to are in the order of sizes: one before them is not larger, and none
// behind them is smaller. An object without references makes the one before it look larger.
func sorted(addr func(i int) uint64, from, to, count int, n uint64) bool {
	const look = 8 // objects on either side
	for i := to; i+1 < min(count, to+look); i++ {
		if addr(i+1)-addr(i) < n {
			return false
		}
	}
	for i := from - 1; i >= max(0, from-look); i-- {
		if addr(i+1)-addr(i) <= n {
			return true
		}
	}
	return false
}

// pairs returns the pairs of addresses that refs have in s and t, sorted by a. If an address has several counterparts, the most
// frequent one is right.
func (l *layout) pairs(s, t *section, refs []ref) []piece {
	var pairs []piece
	for _, r := range refs {
		a, b := uint64(r.a), uint64(r.b)
		if s.has(a) && t.has(b) && a > s.addr && b > t.addr && !l.holeA.has(a) && !l.holeB.has(b) {
			pairs = append(pairs, piece{a, b, 1})
		}
	}
	slices.SortFunc(pairs, func(x, y piece) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
	pairs = count(pairs)
	pairs = mostFrequent(pairs, func(p piece) uint64 { return p.a })
	slices.SortFunc(pairs, func(x, y piece) int { return cmp.Or(cmp.Compare(x.b, y.b), cmp.Compare(x.a, y.a)) })
	pairs = mostFrequent(pairs, func(p piece) uint64 { return p.b })
	slices.SortFunc(pairs, func(x, y piece) int { return cmp.Compare(x.a, y.a) })
	return pairs
}

// mostFrequent keeps, of neighbors with the same key, the one with the largest n.
func mostFrequent(pairs []piece, key func(piece) uint64) []piece {
	best := pairs[:0]
	for _, p := range pairs {
		if k := len(best) - 1; k >= 0 && key(best[k]) == key(p) {
			if p.n > best[k].n {
				best[k] = p
			}
			continue
		}
		best = append(best, p)
	}
	return best
}

// count merges equal neighbors, and adds up their n.
func count(pairs []piece) []piece {
	out := pairs[:0]
	for _, p := range pairs {
		if k := len(out) - 1; k >= 0 && out[k].a == p.a && out[k].b == p.b {
			out[k].n += p.n
			continue
		}
		out = append(out, p)
	}
	return out
}

// longestRising returns a longest part of pairs, which are sorted by a, in which b rises, too.
func longestRising(pairs []piece) []piece {
	tails := make([]int, 0, len(pairs)) // index of the pair with the least b that ends a chain of each length
	before := make([]int, len(pairs))
	for i, p := range pairs {
		k, _ := slices.BinarySearchFunc(tails, p.b, func(j int, b uint64) int { return cmp.Compare(pairs[j].b, b) })
		before[i] = -1
		if k > 0 {
			before[i] = tails[k-1]
		}
		if k == len(tails) {
			tails = append(tails, i)
		} else {
			tails[k] = i
		}
	}
	chain := make([]piece, len(tails))
	if len(tails) == 0 {
		return chain
	}
	for i, k := tails[len(tails)-1], len(tails)-1; k >= 0; i, k = before[i], k-1 {
		chain[k] = pairs[i]
	}
	return chain
}

// cut lays over each other what is between two anchors whose distances differ. What only one side has must be a hole or padding.
func (l *layout) cut(s, t *section, from, to piece) (pieces []piece, why string) {
	if s.data == nil {
		n := min(to.a-from.a, to.b-from.b)
		if max(to.a-from.a, to.b-from.b)-n > maxPadding {
			why = fmt.Sprintf("%s+%#x: variables of another size", s.name, from.a-s.addr)
		}
		return []piece{{from.a, from.b, n}}, why
	}
	a, b := from.a, from.b
	run := piece{a: a, b: b}
	skip := func(n, m uint64) { // bytes of A, of B
		if run.n = a - run.a; run.n > 0 {
			pieces = append(pieces, run)
		}
		a, b = a+n, b+m
		run = piece{a: a, b: b}
	}
	for a < to.a || b < to.b {
		n := l.alike(s, t, a, b, to)
		switch {
		case n > 0:
			a, b = a+n, b+n
		case l.holeA.has(a):
			skip(min(to.a, l.holeA.to)-a, 0)
		case l.holeB.has(b):
			skip(0, min(to.b, l.holeB.to)-b)
		default:
			n, m, ok := l.padding(s, t, a, b, to)
			if !ok {
				why = fmt.Sprintf("%s+%#x: only A has %s", s.name, a-s.addr, preview(s.data[a-s.addr:to.a-s.addr]))
				if to.b-b > to.a-a {
					why = fmt.Sprintf("%s+%#x: only B has %s", t.name, b-t.addr, preview(t.data[b-t.addr:to.b-t.addr]))
				}
				skip(to.a-a, to.b-b)
				return pieces, why
			}
			skip(n, m)
		}
	}
	skip(0, 0)
	return pieces, ""
}

// alike returns how many bytes at a and b may have the same meaning: a word, one byte or none. They are compared later.
func (l *layout) alike(s, t *section, a, b uint64, to piece) uint64 {
	const word = 8
	if a >= to.a || b >= to.b || l.holeA.has(a) || l.holeB.has(b) {
		return 0
	}
	if (a|b)%word == 0 && a+word <= to.a && b+word <= to.b && !l.holeA.has(a+word-1) && !l.holeB.has(b+word-1) {
		x, y := s.word(a), t.word(b)
		if x == y || l.a.section(x) != nil && l.b.section(y) != nil {
			return word
		}
		return 0
	}
	if s.at(a)[0] == t.at(b)[0] {
		return 1
	}
	return 0
}

// padding finds how many zeros of A or of B must be skipped to make the following bytes alike.
func (l *layout) padding(s, t *section, a, b uint64, to piece) (skipA, skipB uint64, ok bool) {
	const enough = 16 // bytes that have to be alike
	resumes := func(a, b uint64) bool {
		for end := a + enough; a < end; {
			if l.holeA.has(a) || l.holeB.has(b) || a == to.a && b == to.b {
				return true
			}
			k := l.alike(s, t, a, b, to)
			if k == 0 {
				return false
			}
			a, b = a+k, b+k
		}
		return true
	}
	zeros := func(s *section, at, end uint64, h hole) (n uint64) {
		for n < maxPadding && at+n < end && s.at(at)[n] == 0 && !h.has(at+n) {
			n++
		}
		return n
	}
	zerosA, zerosB := zeros(s, a, to.a, l.holeA), zeros(t, b, to.b, l.holeB)
	for _, step := range []uint64{8, 1} { // most objects are aligned
		for k := step; k <= max(zerosA, zerosB); k += step {
			switch {
			case k <= zerosA && resumes(a+k, b):
				return k, 0, true
			case k <= zerosB && resumes(a, b+k):
				return 0, k, true
			}
		}
	}
	return 0, 0, false
}
