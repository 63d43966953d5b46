package container

import (
	"maps"
	"slices"
	"testing"

	"slipway.build/pkg/make/road"
)

func TestListingTellsCachesApart(t *testing.T) {
	t.Parallel()
	list := []byte("/cache/packages/ab/abcd-a\n/cache/go-build/ab/abcd-d\n/cache/go-build/cd/cdef-a\n/elsewhere/ab/x-a\n")
	for folder, want := range map[string][]string{sharedCache: {"ab/abcd-a"}, ownCache: {"ab/abcd-d", "cd/cdef-a"}, "/none": nil} {
		if got := slices.Sorted(maps.Keys(listing(list, folder))); !slices.Equal(got, want) {
			t.Errorf("in %s are %q, want %q", folder, got, want)
		}
	}
}

// A binary that was linked from packages of others must not be taken for one of this tree's own.
func TestWorkplacesShareNothing(t *testing.T) {
	t.Parallel()
	debug := spec
	debug.Options.Debug = true
	seen := map[string]bool{}
	for _, s := range []road.Spec{spec, debug} {
		for _, at := range []workplace{ownPlace(s), sharedPlace(s)} {
			if seen[at.out] {
				t.Errorf("%s is the folder of two", at.out)
			}
			seen[at.out] = true
		}
	}
	if ownPlace(spec).cache == sharedPlace(spec).cache {
		t.Error("they have the same cache")
	}
}
