package buildid

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"os"
)

// OfProgram reads the build ID of a program, whoever has linked it.
func OfProgram(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if e, err := elf.NewFile(f); err == nil {
		s := e.Section(".note.go.buildid")
		if s == nil {
			return "", fmt.Errorf("%s: no build ID", file)
		}
		note, err := s.Data()
		const header = 16 // sizes of the name and the ID, a type, and the name "Go"
		if err != nil || len(note) < header || int(e.ByteOrder.Uint32(note[4:])) > len(note)-header {
			return "", fmt.Errorf("%s: no build ID", file)
		}
		return string(note[header:][:e.ByteOrder.Uint32(note[4:])]), nil
	}
	// Others have it at the beginning of their code.
	start := make([]byte, 64<<10)
	n, err := io.ReadFull(f, start)
	if err != nil && err != io.ErrUnexpectedEOF {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	_, rest, found := bytes.Cut(start[:n], []byte("\xff Go build ID: \""))
	id, _, ended := bytes.Cut(rest, []byte("\"\n \xff"))
	if !found || !ended {
		return "", fmt.Errorf("%s: no build ID", file)
	}
	return string(id), nil
}
