package archive

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/klauspost/compress/flate"
)

// A compressor that has worked on other chunks must make the same of a chunk as a new one.
func TestAUsedCompressorLeavesNoTrace(t *testing.T) {
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
