package license

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// grants are the beginnings of names of files that grant something, accompanies those of files that go with
// such a one. All in lower case.
var (
	grants      = []string{"license", "licence", "copying", "copyright", "unlicense", "mit-license"}
	accompanies = []string{"notice", "patents"}
)

func begins(name string, with []string) bool {
	name = strings.ToLower(name)
	if strings.HasSuffix(name, ".go") {
		return false
	}
	for _, w := range with {
		if strings.HasPrefix(name, w) {
			return true
		}
	}
	return false
}

func isLicense(name string) bool { return begins(name, grants) || begins(name, accompanies) }

// errUnlicensed is a module's lack of a file at its root that grants something.
var errUnlicensed = errors.New("no license file")

// find lists the license files of a module that has these packages, as slash-separated paths relative to its root.
func find(m Module, packages []Package) ([]string, error) {
	if _, err := os.Stat(m.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("license %s: no folder %s; run go mod download", m, m.Dir)
	}
	var files []string
	licensed := false
	for _, folder := range folders(m, packages) {
		dir := filepath.Join(m.Dir, filepath.FromSlash(folder))
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("license %s: %w", m, err)
		}
		for _, e := range entries {
			if !isLicense(e.Name()) {
				continue
			}
			// Not e.Type(): in a folder that replaces a module, a file may be a link to the one further up.
			info, err := os.Stat(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, fmt.Errorf("license %s: %w", m, err)
			}
			if !info.Mode().IsRegular() {
				continue
			}
			files = append(files, path.Join(folder, e.Name()))
			licensed = licensed || folder == "." && begins(e.Name(), grants)
		}
	}
	if !licensed {
		return nil, errUnlicensed
	}
	return files, nil
}
