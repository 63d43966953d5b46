package deb

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxControl bounds control.tar.gz, in bytes.
const maxControl = 16 << 20

// Control returns the file control of a package that this package wrote: what dpkg and apt have to know, as lines of fields.
func Control(r io.Reader) (string, error) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(r, head); err != nil || string(head) != "!<arch>\n" {
		return "", fmt.Errorf("it is not a deb: %w", err)
	}
	for {
		head := make([]byte, 60)
		if _, err := io.ReadFull(r, head); err != nil {
			return "", fmt.Errorf("it has no control.tar.gz: %w", err)
		}
		size, err := strconv.ParseInt(strings.TrimSpace(string(head[48:58])), 10, 64)
		if err != nil || size < 0 || size > maxControl {
			return "", fmt.Errorf("a member has %q bytes", head[48:58])
		}
		content := make([]byte, size+size%2)
		if _, err := io.ReadFull(r, content); err != nil {
			return "", err
		}
		if strings.TrimRight(string(head[:16]), " /") != "control.tar.gz" {
			continue
		}
		z, err := gzip.NewReader(bytes.NewReader(content[:size]))
		if err != nil {
			return "", err
		}
		for t := tar.NewReader(io.LimitReader(z, maxControl)); ; {
			h, err := t.Next()
			if err != nil {
				return "", fmt.Errorf("control.tar.gz has no file control: %w", err)
			}
			if strings.TrimPrefix(h.Name, "./") == "control" {
				text, err := io.ReadAll(t)
				return string(text), err
			}
		}
	}
}
