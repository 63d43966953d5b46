package debian

import (
	"bufio"
	"fmt"
	"io"
	"net/textproto"
	"strconv"
	"strings"

	version "github.com/knqyf263/go-deb-version"
)

// An index has the newest version of each package that some archives have for an architecture.
type index struct {
	packages map[string]indexed
	provided map[string]string // for each virtual name, the first package that provides it
}

// An indexed package is an entry of a Packages file.
type indexed struct {
	Package
	needs    []string // alternatives: "a | b"
	provides []string
}

// newest merges the packages of archives. Of equal versions, it takes the first.
func newest(archives ...[]indexed) (*index, error) {
	in := &index{packages: map[string]indexed{}, provided: map[string]string{}}
	var names []string
	for _, packages := range archives {
		for _, p := range packages {
			other, seen := in.packages[p.Name]
			if !seen {
				names = append(names, p.Name)
			} else if newer, err := isNewer(p.Package, other.Package); err != nil {
				return nil, err
			} else if !newer {
				continue
			}
			in.packages[p.Name] = p
		}
	}
	for _, name := range names {
		for _, virtual := range in.packages[name].provides {
			if in.provided[virtual] == "" {
				in.provided[virtual] = name
			}
		}
	}
	return in, nil
}

func isNewer(p, other Package) (bool, error) {
	if p.Version == other.Version {
		return false, nil
	}
	a, err := version.NewVersion(p.Version)
	if err != nil {
		return false, fmt.Errorf("package %s %s: %w", p.Name, p.Version, err)
	}
	b, err := version.NewVersion(other.Version)
	if err != nil {
		return false, fmt.Errorf("package %s %s: %w", other.Name, other.Version, err)
	}
	return a.GreaterThan(b), nil
}

// readIndex reads a Packages file of an archive.
func readIndex(archive, arch string, file io.Reader) ([]indexed, error) {
	var all []indexed
	for r := fieldsIn(io.LimitReader(file, maxUnpacked)); ; {
		fields, err := r.ReadMIMEHeader()
		if len(fields) > 0 && (err == nil || err == io.EOF) {
			p, err := newIndexed(archive, arch, fields)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// fieldsIn returns a reader of Debian's files of fields, whose form is that of mail headers: a field may go on over indented lines, and an
// empty line is between entries.
func fieldsIn(file io.Reader) *textproto.Reader { return textproto.NewReader(bufio.NewReader(file)) }

// newIndexed returns an entry of a Packages file.
func newIndexed(archive, arch string, fields textproto.MIMEHeader) (indexed, error) {
	size, err := strconv.ParseInt(fields.Get("Size"), 10, 64)
	if err != nil {
		return indexed{}, fmt.Errorf("package %q: size %q", fields.Get("Package"), fields.Get("Size"))
	}
	p := indexed{Package: Package{
		Arch: arch, Name: fields.Get("Package"), Version: fields.Get("Version"),
		Size: size, SHA256: fields.Get("SHA256"), Archive: archive, Path: fields.Get("Filename"),
	}}
	if _, of, ok := strings.Cut(fields.Get("Source"), "("); ok { // "bash (5.2.37-2)"
		p.SourceVersion = strings.TrimSuffix(of, ")")
	}
	for need := range strings.SplitSeq(fields.Get("Pre-Depends")+","+fields.Get("Depends"), ",") {
		if need = strings.TrimSpace(need); need != "" {
			p.needs = append(p.needs, need)
		}
	}
	for name := range strings.SplitSeq(fields.Get("Provides"), ",") {
		if name = nameIn(name); name != "" {
			p.provides = append(p.provides, name)
		}
	}
	return p, nil
}
