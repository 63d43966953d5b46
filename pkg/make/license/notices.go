package license

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"slipway.build/pkg/tree/module"
)

// Notices writes, as one text, the files in a tar of Write that are about some binaries: those of Go, of the modules that they link, and of
// the repository, if it has a license.
func Notices(w io.Writer, tar string, binaries []string) error {
	texts, err := readTar(tar)
	if err != nil {
		return err
	}
	indexed, err := parseIndex(tar, texts[indexFile])
	if err != nil {
		return err
	}
	linked := map[string]Module{}
	for _, name := range binaries {
		read, err := module.ReadBinary(name)
		if err != nil {
			return fmt.Errorf("license: %w", err)
		}
		for _, d := range read.Modules {
			linked[d.Path] = Module{Dependency: d}
		}
	}
	add := func(title, file string) error {
		text, ok := texts[file]
		if !ok {
			return fmt.Errorf("license %s: it has no %s", tar, file)
		}
		_, err = fmt.Fprintf(w, "==== %s\n\n%s\n", title, text)
		return err
	}
	if _, ok := texts[ownLicense]; ok {
		if err := add(ownLicense, ownLicense); err != nil {
			return err
		}
	}
	for _, name := range []string{goLicense, goPatents} {
		if err := add(name, name); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(linked)) {
		m, of := linked[path], indexed[path]
		if len(of.files) == 0 {
			return fmt.Errorf("license %s: it has nothing about %s, which is linked", tar, m)
		}
		for _, f := range of.files {
			if err := add(path+"@"+of.revision+" "+f, vendored(m, f)); err != nil {
				return err
			}
		}
	}
	return nil
}
