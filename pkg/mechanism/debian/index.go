package debian

import (
	"bufio"
	"errors"
	"fmt"
	"io"
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
	fields := map[string]string{}
	add := func() error {
		if len(fields) == 0 {
			return nil
		}
		size, err := strconv.ParseInt(fields["Size"], 10, 64)
		if err != nil {
			return fmt.Errorf("package %q: size %q", fields["Package"], fields["Size"])
		}
		p := indexed{Package: Package{
			Arch: arch, Name: fields["Package"], Version: fields["Version"],
			Size: size, SHA256: fields["SHA256"], Archive: archive, Path: fields["Filename"],
		}}
		if _, of, ok := strings.Cut(fields["Source"], "("); ok { // "bash (5.2.37-2)"
			p.SourceVersion = strings.TrimSuffix(of, ")")
		}
		for _, name := range []string{"Pre-Depends", "Depends"} {
			for need := range strings.SplitSeq(fields[name], ",") {
				if need = strings.TrimSpace(need); need != "" {
					p.needs = append(p.needs, need)
				}
			}
		}
		for name := range strings.SplitSeq(fields["Provides"], ",") {
			if name = nameIn(name); name != "" {
				p.provides = append(p.provides, name)
			}
		}
		all = append(all, p)
		clear(fields)
		return nil
	}
	s := bufio.NewScanner(io.LimitReader(file, maxUnpacked))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := s.Text()
		if line == "" {
			if err := add(); err != nil {
				return nil, err
			}
			continue
		}
		if name, value, ok := strings.Cut(line, ":"); ok && line[0] != ' ' {
			fields[name] = strings.TrimSpace(value)
		}
	}
	return all, errors.Join(s.Err(), add())
}
