package archive

import (
	"hash/crc32"
	"testing"
)

func TestCombinedCRCIsThatOfTheWhole(t *testing.T) {
	t.Parallel()
	p := noise(1, 100_000)
	whole := crc32.ChecksumIEEE(p)
	for _, at := range []int{0, 1, 2, 7, 8, 255, 256, 4096, 65_537, 99_999, 100_000} {
		got := combineCRC(crc32.ChecksumIEEE(p[:at]), crc32.ChecksumIEEE(p[at:]), int64(len(p)-at))
		if got != whole {
			t.Errorf("cut at %d: %08x, want %08x", at, got, whole)
		}
	}
}

func TestCombinedCRCOfMoreThan4GiB(t *testing.T) {
	t.Parallel()
	// The CRC-32 of n zeros by doubling, against the same by adding up unequal parts.
	zeros := func(n int64) uint32 {
		crc, done := crc32.ChecksumIEEE([]byte{0}), int64(1)
		for done < n {
			step := min(done, n-done)
			part := crc
			if step < done {
				part = 0
				for at, c := int64(0), crc32.ChecksumIEEE(make([]byte, 1<<20)); at < step; at += 1 << 20 {
					part = combineCRC(part, c, 1<<20)
				}
			}
			crc, done = combineCRC(crc, part, step), done+step
		}
		return crc
	}
	n := int64(5) << 30
	if got, want := combineCRC(zeros(3<<30), zeros(2<<30), 2<<30), zeros(n); got != want {
		t.Errorf("%08x, want %08x", got, want)
	}
	h := crc32.NewIEEE()
	h.Write(make([]byte, 3<<20))
	if got := zeros(3 << 20); got != h.Sum32() {
		t.Errorf("3 MiB: %08x, want %08x", got, h.Sum32())
	}
}
