package checksum

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// These errors say what is wrong with a line of a checksum file. For a missing file the error is fs.ErrNotExist.
var (
	ErrMalformed = errors.New("malformed line")
	ErrDiffers   = errors.New("content differs")
	ErrUnnamed   = errors.New("no line names it")
)

// A claim is a line of a checksum file.
type claim struct {
	name string
	sum  string // in lower-case hex
	new  func() hash.Hash
}

// Verify checks the files in dir against a checksum file with SHA-256 or SHA-512 sums, which differ in length. There must
// be at least one line, and every line must be right. The error lists all wrong lines as "sumsFile:line: name: cause".
// Files that the checksum file does not name are ignored.
func Verify(dir, sumsFile string) error { return verify(dir, sumsFile, nil) }

// VerifyFiles checks some of the files, by their names in the checksum file, as Verify does. The other files need not exist.
func VerifyFiles(dir, sumsFile string, names ...string) error { return verify(dir, sumsFile, names) }

// verify checks some files, or all if none is named.
func verify(dir, sumsFile string, some []string) error {
	text, err := os.ReadFile(sumsFile)
	if err != nil {
		return err
	}
	if len(text) == 0 {
		return fmt.Errorf("%s: no sums", sumsFile)
	}
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	errs := make([]error, len(lines))
	seen := make(map[string]int, len(lines)) // line by name
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, line := range lines {
		c, err := parse(string(line))
		if first := seen[c.name]; err == nil && first > 0 {
			err = fmt.Errorf("%s: %w: is on line %d, too", c.name, ErrMalformed, first)
		}
		if err != nil {
			errs[i] = err
			continue
		}
		seen[c.name] = i + 1
		if len(some) > 0 && !slices.Contains(some, c.name) {
			continue
		}
		g.Go(func() error {
			errs[i] = c.check(dir)
			return nil
		})
	}
	g.Wait() // its functions return no errors
	for i, err := range errs {
		if err != nil {
			errs[i] = fmt.Errorf("%s:%d: %w", sumsFile, i+1, err)
		}
	}
	for _, name := range some {
		if seen[name] == 0 {
			errs = append(errs, fmt.Errorf("%s: %s: %w", sumsFile, name, ErrUnnamed))
		}
	}
	return errors.Join(errs...)
}

func parse(line string) (claim, error) {
	rest, escaped := strings.CutPrefix(line, `\`)
	sum, name, ok := strings.Cut(rest, " ")
	if !ok || len(name) < 2 || name[0] != ' ' && name[0] != '*' {
		return claim{}, fmt.Errorf("%w: want a sum, two blanks and a name", ErrMalformed)
	}
	c := claim{name: name[1:], sum: strings.ToLower(sum)}
	raw, err := hex.DecodeString(sum)
	switch {
	case err == nil && len(raw) == sha256.Size:
		c.new = sha256.New
	case err == nil && len(raw) == sha512.Size:
		c.new = sha512.New
	default:
		return c, fmt.Errorf("%s: %w: %q is neither a SHA-256 nor a SHA-512", c.name, ErrMalformed, sum)
	}
	if escaped {
		c.name = unescape.Replace(c.name)
		if escape.Replace(c.name) != name[1:] {
			return c, fmt.Errorf("%s: %w: unknown escape", name[1:], ErrMalformed)
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(c.name)) {
		return c, fmt.Errorf("%s: %w: name leads out of the folder", c.name, ErrMalformed)
	}
	return c, nil
}

// check compares the file with the claim.
func (c claim) check(dir string) error {
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(c.name)))
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	defer f.Close()
	h := c.new()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != c.sum {
		return fmt.Errorf("%s: %w: its sum is %s, want %s", c.name, ErrDiffers, sum, c.sum)
	}
	return nil
}
