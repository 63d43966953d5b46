package module

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	gomod "golang.org/x/mod/module"
)

// With returns the content of go.mod and go.sum with modules replaced, whatever replaced them before. The modules of Replacement.Old have
// no version. Sums has those of the replacements, of their code and, with versions that end in /go.mod, of their go.mod files. Folders in
// replace directives stay as they are: with -modfile, the go command looks for them from the module's own folder.
func (m *Module) With(replaced []Replacement, sums map[Version]string) (goMod, goSum []byte, err error) {
	data, err := os.ReadFile(m.file())
	if err != nil {
		return nil, nil, err
	}
	mod, err := modfile.Parse(m.file(), data, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range replaced {
		for _, old := range m.Replaces {
			if old.Old.Path == r.Old.Path {
				if err := mod.DropReplace(old.Old.Path, old.Old.Version); err != nil {
					return nil, nil, err
				}
			}
		}
		if err := mod.AddReplace(r.Old.Path, "", r.New.Path, r.New.Version); err != nil {
			return nil, nil, err
		}
	}
	mod.Cleanup()
	if goMod, err = mod.Format(); err != nil {
		return nil, nil, err
	}
	if goSum, err = os.ReadFile(filepath.Join(m.Dir, "go.sum")); err != nil && !os.IsNotExist(err) {
		return nil, nil, err
	}
	more := bytes.NewBuffer(goSum)
	if n := len(goSum); n > 0 && goSum[n-1] != '\n' {
		more.WriteByte('\n')
	}
	for _, v := range slices.SortedFunc(maps.Keys(sums), compare) {
		fmt.Fprintf(more, "%s %s %s\n", v.Path, v.Version, sums[v])
	}
	return goMod, more.Bytes(), nil
}

// WithVersions returns the content of a go.mod that requires modules at other versions, by path, and replaces none by a folder: modules
// that folders replaced, and that are not among versions, are required at the version otherwise.
func WithVersions(goMod []byte, versions map[string]string, otherwise string) ([]byte, error) {
	mod, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return nil, err
	}
	wanted := map[string]string{}
	for _, r := range mod.Replace {
		if r.New.Version == "" {
			wanted[r.Old.Path] = otherwise
			if err := mod.DropReplace(r.Old.Path, r.Old.Version); err != nil {
				return nil, err
			}
		}
	}
	maps.Copy(wanted, versions)
	for _, r := range mod.Require {
		if v, ok := wanted[r.Mod.Path]; ok {
			if err := mod.AddRequire(r.Mod.Path, v); err != nil {
				return nil, err
			}
		}
	}
	mod.Cleanup()
	return mod.Format()
}

// WithSums returns the content of a go.sum with sums of further modules, in the order in which the go command writes them.
func WithSums(goSum []byte, more []Pinned) []byte {
	lines := map[gomod.Version]string{}
	add := func(path, version, sum string) {
		if sum != "" {
			lines[gomod.Version{Path: path, Version: version}] = sum
		}
	}
	for line := range strings.Lines(string(goSum)) {
		if f := strings.Fields(line); len(f) == 3 {
			add(f[0], f[1], f[2])
		}
	}
	for _, m := range more {
		add(m.Path, m.Version.Version, m.Sum)
		add(m.Path, m.Version.Version+"/go.mod", m.GoModSum)
	}
	var sorted bytes.Buffer
	order := slices.Collect(maps.Keys(lines))
	gomod.Sort(order)
	for _, v := range order {
		fmt.Fprintf(&sorted, "%s %s %s\n", v.Path, v.Version, lines[v])
	}
	return sorted.Bytes()
}

// WithoutSums returns the content of a go.sum without the sums of some modules.
func WithoutSums(goSum []byte, gone []Pinned) []byte {
	var kept bytes.Buffer
	for line := range bytes.Lines(goSum) {
		if !slices.ContainsFunc(gone, func(m Pinned) bool {
			about := []byte(m.Path + " " + m.Version.Version)
			return bytes.HasPrefix(line, append(about, ' ')) || bytes.HasPrefix(line, append(about, "/go.mod "...))
		}) {
			kept.Write(line)
		}
	}
	return kept.Bytes()
}
