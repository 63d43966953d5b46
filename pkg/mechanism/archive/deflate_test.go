package archive

import (
	"bytes"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/klauspost/compress/flate"
)

// A compressor that has worked on other chunks must make the same of a chunk as a new one.
func TestReusedCompressorMakesTheSameBytes(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		if program, err = os.ReadFile(os.Args[0]); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	used, err := flate.NewWriter(io.Discard, level)
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		at := random.IntN(len(program) - chunkSize)
		chunk := program[at : at+1+random.IntN(chunkSize)]
		var fresh, again bytes.Buffer
		w, err := flate.NewWriter(&fresh, level)
		if err != nil {
			t.Fatal(err)
		}
		used.Reset(&again)
		for _, w := range []*flate.Writer{w, used} {
			if _, err := w.Write(chunk); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(fresh.Bytes(), again.Bytes()) {
			t.Fatalf("%d bytes at %d: a used compressor makes something else of them", len(chunk), at)
		}
	}
}

func TestCombinedCRCMatchesTheWhole(t *testing.T) {
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
