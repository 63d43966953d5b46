package action

import "testing"

func TestOriginOfWhatIsMadeOfTwo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ one, other, both Origin }{
		{Built, Built, Built}, {Built, Reused, Reused}, {Reused, Reused, Reused},
		{Built, Derived, Derived}, {Built, Cached, Derived}, {Reused, Cached, Derived}, {Derived, Cached, Derived},
	} {
		if got, swapped := tt.one.With(tt.other), tt.other.With(tt.one); got != tt.both || swapped != tt.both {
			t.Errorf("%q with %q is %q, and swapped %q, want %q", tt.one, tt.other, got, swapped, tt.both)
		}
		if own := tt.one.Own() && tt.other.Own(); tt.both.Own() != own || !tt.both.MadeHere() {
			t.Errorf("%q with %q: own %v, made here %v", tt.one, tt.other, tt.both.Own(), tt.both.MadeHere())
		}
	}
	if Cached.MadeHere() {
		t.Error("a cached result counts as made here, and is uploaded again")
	}
}
