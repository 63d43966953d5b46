package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
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

// Whatever a message holds, its pieces make up the field's values.
func FuzzReadBytes(f *testing.F) {
	f.Add(AppendBytes(AppendInt(nil, 1, 300), 10, []byte("content")), 16)
	f.Add(AppendBytes(AppendBytes(AppendBytes(nil, 10, nil), 3, []byte("other")), 10, bytes.Repeat([]byte("long "), 100)), 20)
	f.Add([]byte{0x0d, 1, 2, 3, 4, 0x11, 1, 2, 3, 4, 5, 6, 7, 8}, 16)
	f.Add([]byte{0x52, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 16)
	f.Add([]byte{0x53, 0x54}, 16)
	f.Fuzz(func(t *testing.T, message []byte, size int) {
		var want, got []byte
		wanted := Fields(message, func(field Field, value []byte, _ uint64) error {
			if field == 10 {
				want = append(want, value...)
			}
			return nil
		})
		r := bufio.NewReaderSize(bytes.NewReader(append(Frame(message), Frame(nil)...)), min(max(size, 16), 1<<10))
		err := ReadBytes(r, 10, func(piece []byte) error {
			got = append(got, piece...)
			return nil
		})
		if err != nil && !errors.Is(err, ErrMessage) {
			t.Fatalf("error is %v", err)
		}
		switch {
		case wanted != nil && err == nil:
			t.Error("read what is no message")
		case wanted == nil && err != nil && !slices.ContainsFunc(message, func(b byte) bool { return b&7 == 3 }): // perhaps the start of a group
			t.Errorf("error is %v", err)
		case err == nil && !bytes.Equal(got, want):
			t.Errorf("got %q, want %q", got, want)
		}
		if err != nil {
			return
		}
		for _, end := range []error{nil, io.EOF} {
			if err := ReadBytes(r, 10, nil); err != end {
				t.Errorf("after the message: error %v, want %v", err, end)
			}
		}
	})
}

func TestMessageThatIsCutShort(t *testing.T) {
	t.Parallel()
	frame := Frame(AppendBytes(AppendInt(nil, 1, 300), 10, []byte("content")))
	for n := range frame {
		err := ReadBytes(bufio.NewReader(bytes.NewReader(frame[:n])), 10, func([]byte) error { return nil })
		if (err == io.EOF) != (n == 0) || err == nil {
			t.Errorf("%d of %d bytes: error is %v", n, len(frame), err)
		}
	}
	compressed := append([]byte{1}, frame[1:]...)
	if err := ReadBytes(bufio.NewReader(bytes.NewReader(compressed)), 10, nil); !errors.Is(err, ErrMessage) {
		t.Errorf("compressed: error is %v", err)
	}
}

func TestPiecesAreNoLongerThanTheBuffer(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("content "), 1000)
	r := bufio.NewReaderSize(bytes.NewReader(Frame(AppendBytes(nil, 10, content))), 64)
	var got []byte
	err := ReadBytes(r, 10, func(piece []byte) error {
		if len(piece) > 64 {
			t.Errorf("a piece has %d bytes", len(piece))
		}
		got = append(got, piece...)
		return nil
	})
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes: %v", len(got), err)
	}
	full := errors.New("disk full")
	if err := ReadBytes(bufio.NewReader(bytes.NewReader(Frame(AppendBytes(nil, 10, content)))), 10,
		func([]byte) error { return full }); err != full {
		t.Errorf("error is %v", err)
	}
}
