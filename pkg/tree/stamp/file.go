package stamp

import (
	"errors"
	"fmt"
	"strings"

	"slipway.build/pkg/tree/folder"
)

// File is the name of the version file in the root of a source tarball.
const File = folder.Version

// A VersionFile is the content of a version file.
type VersionFile struct {
	Stamp   Stamp
	Sources string // the digest of the sources that it was packed with, see [folder.Digest]; may be empty
}

// sourcesKey is the key of the digest, which no variable sets.
const sourcesKey = "SOURCES_SHA256"

// Marshal returns a version file: lines of the form KEY='value', which a shell can read, too.
func (f VersionFile) Marshal() []byte {
	b := Marshal(f.Stamp)
	if f.Sources != "" {
		b = fmt.Appendf(b, "%s='%s'\n", sourcesKey, f.Sources)
	}
	return b
}

// Marshal returns a stamp as a version file without a digest of the sources.
func Marshal(s Stamp) []byte { return []byte(strings.Join(s.lines("%s='%s'\n"), "")) }

// Environ returns a stamp as an environment, KEY=value, from which Read takes it.
func Environ(s Stamp) []string { return s.lines("%s=%s") }

// lines formats each field that is set.
func (s Stamp) lines(format string) []string {
	var lines []string
	for _, f := range fields {
		if value := f.get(s); value != "" {
			lines = append(lines, fmt.Sprintf(format, f.key, value))
		}
	}
	return lines
}

// Unmarshal parses a version file. It must have version, commit and tree state. Major and minor follow from the version if
// they are missing. Without SOURCE_DATE_EPOCH, which files of other tools lack, the date is zero. Empty lines and lines that
// begin with '#' are skipped. Errors name the line.
func Unmarshal(data []byte) (Stamp, error) {
	file, err := parseFile(data)
	if err != nil {
		return Stamp{}, err
	}
	for _, f := range fields[:3] {
		if f.get(file.Stamp) == "" {
			return Stamp{}, fmt.Errorf("line %d: %s is missing at the end", strings.Count(string(data), "\n")+1, f.key)
		}
	}
	return file.Stamp, nil
}

// parseFile parses a version file that may lack any line.
func parseFile(data []byte) (VersionFile, error) {
	var file VersionFile
	seen := map[string]int{}
	number := 0
	for line := range strings.SplitSeq(string(data), "\n") {
		number++
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, err := parse(line)
		if err != nil {
			return VersionFile{}, fmt.Errorf("line %d: %w", number, err)
		}
		if first, ok := seen[key]; ok {
			return VersionFile{}, fmt.Errorf("line %d: %s is already set in line %d", number, key, first)
		}
		seen[key] = number
		if key == sourcesKey {
			file.Sources = value
			continue
		}
		if err := file.Stamp.set(key, value); err != nil {
			return VersionFile{}, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if file.Stamp.Version != "" {
		file.Stamp.derive()
	}
	return file, nil
}

func parse(line string) (key, value string, err error) {
	key, quoted, ok := strings.Cut(line, "=")
	if !ok || len(quoted) < 2 || quoted[0] != '\'' || quoted[len(quoted)-1] != '\'' {
		return "", "", fmt.Errorf("%q is not of the form KEY='value'", line)
	}
	value = quoted[1 : len(quoted)-1]
	if value == "" {
		return "", "", errors.New(key + " is empty")
	}
	return key, value, nil
}

func (s *Stamp) set(key, value string) error {
	for _, f := range fields {
		if f.key != key {
			continue
		}
		if err := f.set(s, value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	}
	return fmt.Errorf("%q is not a key of a version file", key)
}
