package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestFramesComeBack(t *testing.T) {
	var b bytes.Buffer
	for _, text := range []string{"one", "", "three"} {
		b.Write(Frame([]byte(text)))
	}
	for _, want := range []string{"one", "", "three"} {
		if got, err := ReadFrame(&b); err != nil || string(got) != want {
			t.Errorf("a message is %q, %v, want %q", got, err, want)
		}
	}
	if _, err := ReadFrame(&b); err != io.EOF {
		t.Errorf("after the last message it says %v", err)
	}
}

func TestFramesThatAreNone(t *testing.T) {
	for name, frame := range map[string]string{
		"a compressed one": "\x01\x00\x00\x00\x00",
		"a large one":      "\x00\x00\x40\x00\x01",
		"half a prefix":    "\x00\x00",
	} {
		if _, err := ReadFrame(bytes.NewReader([]byte(frame))); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadFrame(bytes.NewReader([]byte("\x00\x00\x00\x00\x02a"))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a short message: %v", err)
	}
}

func TestNothingIsWrittenForZero(t *testing.T) {
	if got := AppendInt(AppendString(nil, 1, ""), 2, 0); len(got) != 0 {
		t.Errorf("it is %x", got)
	}
}

// Bytes of a server neither crash the reader nor make it keep more than they are.
func FuzzFields(f *testing.F) {
	f.Add(AppendInt(AppendBytes(nil, 1, []byte("text")), 2, 7))
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{0x0b, 0x0c, 0x0d, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, message []byte) {
		total := 0
		err := Fields(message, func(_ Field, value []byte, _ uint64) error {
			total += len(value)
			return nil
		})
		if total > len(message) {
			t.Errorf("%d bytes are of a message of %d", total, len(message))
		}
		if err != nil && !errors.Is(err, ErrMessage) {
			t.Error(err)
		}
	})
}
