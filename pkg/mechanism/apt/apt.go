// Package apt writes and reads the indexes of a flat repository of Debian packages: Packages, and the file Release that names it.
//
// A reader takes InRelease first, which is signed, and then the index that it names, by digest. So a repository that changes meanwhile
// confuses nobody. See https://wiki.debian.org/DebianRepository/Format.
//
// What must never be in here: which packages a repository has, where it is, and who signs it.
package apt

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	version "github.com/knqyf263/go-deb-version"
)

// An Entry is a package in an index: its fields, as lines.
type Entry string

// Field returns the value of a field, or "".
func (e Entry) Field(name string) string {
	for line := range strings.Lines(string(e)) {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// NewEntry returns the entry of a package: its control file, and where its file is.
func NewEntry(control, file string, size int64, sha256 string) Entry {
	return Entry(fmt.Sprintf("%s\nFilename: %s\nSize: %d\nSHA256: %s\n", strings.TrimSpace(control), file, size, sha256))
}

// Packages returns an index of packages, each once, sorted by name, version as text, and architecture.
func Packages(entries []Entry) []byte {
	key := func(e Entry) string {
		return e.Field("Package") + "\x00" + e.Field("Version") + "\x00" + e.Field("Architecture")
	}
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(key(a), key(b)) })
	var b bytes.Buffer
	for i, e := range entries {
		if i == 0 || key(e) != key(entries[i-1]) {
			b.WriteString(string(e) + "\n")
		}
	}
	return b.Bytes()
}

// ReadPackages reads an index.
func ReadPackages(index []byte) []Entry {
	var entries []Entry
	for text := range strings.SplitSeq(string(index), "\n\n") {
		if text = strings.TrimSpace(text); text != "" {
			entries = append(entries, Entry(text+"\n"))
		}
	}
	return entries
}

// Newest returns the newest version of a package, or "" if there is none.
func Newest(entries []Entry, name string) (newest Entry, err error) {
	for _, e := range entries {
		if e.Field("Package") != name {
			continue
		}
		order := 1
		if newest != "" {
			if order, err = Compare(e.Field("Version"), newest.Field("Version")); err != nil {
				return "", fmt.Errorf("%s: %w", e.id(), err)
			}
		}
		if order > 0 {
			newest = e
		}
	}
	return newest, nil
}

// Compare compares versions as dpkg does.
func Compare(a, b string) (int, error) {
	first, err1 := version.NewVersion(a)
	second, err2 := version.NewVersion(b)
	return first.Compare(second), cmp.Or(err1, err2)
}

// Compress returns a content for Packages.gz.
func Compress(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(content) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// A Release says what a repository has.
type Release struct {
	Origin, Label string
	Archs         []string
	Date          time.Time
	ValidUntil    time.Time         // zero: forever
	Files         map[string][]byte // indexes by name
}

// Text returns the content of the file Release.
func (r Release) Text() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "Origin: %s\nLabel: %s\nArchitectures: %s\nDate: %s\n", r.Origin, r.Label, strings.Join(r.Archs, " "), stamp(r.Date))
	if !r.ValidUntil.IsZero() {
		fmt.Fprintf(&b, "Valid-Until: %s\n", stamp(r.ValidUntil))
	}
	b.WriteString("Acquire-By-Hash: yes\nSHA256:\n")
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		fmt.Fprintf(&b, " %s %d %s\n", SHA256(r.Files[name]), len(r.Files[name]), name)
	}
	return []byte(b.String())
}

// SHA256 returns the SHA-256 of a content, in hex.
func SHA256(content []byte) string { s := sha256.Sum256(content); return hex.EncodeToString(s[:]) }

func stamp(t time.Time) string { return t.UTC().Format("Mon, 02 Jan 2006 15:04:05") + " UTC" }

// Dates returns the date of a file Release, and until when it is good: the zero time is forever.
func Dates(release []byte) (date, until time.Time, err error) {
	const form = "Mon, 02 Jan 2006 15:04:05 MST"
	if date, err = time.Parse(form, Entry(release).Field("Date")); err != nil {
		return date, until, err
	}
	if text := Entry(release).Field("Valid-Until"); text != "" {
		until, err = time.Parse(form, text)
	}
	return date, until, err
}

// Names reports whether a file Release names an index with a content.
func Names(release []byte, name string, content []byte) bool {
	line := fmt.Sprintf(`(?m)^ %s %d %s\r?$`, SHA256(content), len(content), regexp.QuoteMeta(name))
	return regexp.MustCompile(line).Match(release)
}
