//go:build soak

package verify

import "testing"

// Of 10,000 changes of single bits in a signed release, none is accepted.
func TestTenThousandChangedBytesAreFound(t *testing.T) { changeBytes(t, 10_000) }
