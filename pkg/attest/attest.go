// Package attest says what a release's files are, in forms that others can check: files of checksums as sha256sum
// and sha512sum write and read them.
package attest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/recipe"
)

//go:embed *.go
var sources embed.FS

// Recipe stands for the code here that decides what a file of checksums holds.
var Recipe = recipe.Of(sources)

// A Line is a file with its checksum, in hex.
type Line struct{ Sum, Name string }

// escapes are coreutils': a line that needs one begins with a backslash.
var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)

// Format writes lines as `sha256sum -c` reads them, sorted by name.
func Format(lines []Line) []byte {
	lines = slices.SortedFunc(slices.Values(lines), func(a, b Line) int { return strings.Compare(a.Name, b.Name) })
	var b bytes.Buffer
	for _, l := range lines {
		if name := escapes.Replace(l.Name); name != l.Name {
			fmt.Fprintf(&b, "\\%s  %s\n", l.Sum, name)
		} else {
			fmt.Fprintf(&b, "%s  %s\n", l.Sum, name)
		}
	}
	return b.Bytes()
}

// Parse reads what Format, sha256sum or sha512sum wrote. Errors carry the line's number.
func Parse(data []byte) ([]Line, error) {
	var lines []Line
	scan := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; scan.Scan(); n++ {
		text, escaped := strings.CutPrefix(scan.Text(), `\`)
		sum, name, ok := strings.Cut(text, " ")
		if ok && name != "" && (name[0] == ' ' || name[0] == '*') { // text or binary mode: no difference on Unix
			name = name[1:]
		} else {
			ok = false
		}
		if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != sha256.Size && len(raw) != sha512.Size || name == "" {
			return nil, fmt.Errorf("line %d: not a checksum, two spaces and a name", n)
		}
		if escaped {
			name = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace(name)
		}
		lines = append(lines, Line{sum, name})
	}
	return lines, scan.Err()
}

// Verify checks every file that a file of checksums in dir names, and names all that are missing or differ.
func Verify(ctx context.Context, dir, sums string) error {
	data, err := os.ReadFile(filepath.Join(dir, sums))
	if err != nil {
		return err
	}
	lines, err := Parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, sums), err)
	}
	if len(lines) == 0 {
		return fmt.Errorf("%s: it names no file", filepath.Join(dir, sums))
	}
	var problems []error
	for _, l := range lines {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !filepath.IsLocal(l.Name) {
			problems = append(problems, fmt.Errorf("%s: %q is not a file in this folder", sums, l.Name))
			continue
		}
		got, err := sum(filepath.Join(dir, l.Name), len(l.Sum))
		switch {
		case err != nil:
			problems = append(problems, err)
		case got != strings.ToLower(l.Sum):
			problems = append(problems, fmt.Errorf("%s: its checksum is %s, %s has %s", filepath.Join(dir, l.Name), got, sums, l.Sum))
		}
	}
	return errors.Join(problems...)
}

func sum(name string, digits int) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var h hash.Hash = sha256.New()
	if digits == hex.EncodedLen(sha512.Size) {
		h = sha512.New()
	}
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
