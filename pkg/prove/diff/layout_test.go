package diff

import "testing"

// Two objects of 8 bytes change places in each case.
func TestOnlyStringsOfOneSizeArePermuted(t *testing.T) {
	t.Parallel()
	all := extent{0, 1000}
	for _, tt := range []struct {
		name    string
		strings extent
		a, b    []uint64 // addresses of the same objects
		wanted  bool
	}{
		{"two of a size", all, []uint64{0, 8, 16, 24, 33}, []uint64{0, 16, 8, 24, 33}, true},
		{"no strings", extent{}, []uint64{0, 8, 16, 24, 33}, []uint64{0, 16, 8, 24, 33}, false},
		{"of two sizes", all, []uint64{0, 8, 16, 28, 40}, []uint64{0, 20, 8, 28, 40}, false},
		{"parts of larger objects", all, []uint64{0, 15, 23, 31, 47}, []uint64{0, 23, 15, 31, 47}, false},
		{"a smaller one behind them", all, []uint64{0, 8, 16, 24, 28}, []uint64{0, 16, 8, 24, 28}, false},
	} {
		var pairs []piece
		for i := range tt.a {
			pairs = append(pairs, piece{tt.a[i], tt.b[i], 1})
		}
		l := &layout{stringsA: tt.strings, stringsB: tt.strings}
		p, ok := l.permutation(pairs, []int{0, 2, 1, 3, 4}, 1, 3)
		if ok != tt.wanted {
			t.Errorf("%s: %t, want %t", tt.name, ok, tt.wanted)
		}
		if ok && (p.n != 16 || p.pieces[0] != (piece{8, 16, 8}) || p.pieces[1] != (piece{16, 8, 8})) {
			t.Errorf("%s: laid as %+v", tt.name, p)
		}
	}
}
