package module

import (
	"cmp"
	"debug/buildinfo"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// The code is in keys: it decides what a list of modules holds.
var _ = recipe.Of("tree/module", sources)

// A Binary has the build information of a binary.
type Binary struct {
	Go      string       // version: "go1.26.8"
	Package string       // import path of its main package; of tests, that of the tested package with .test at its end
	Modules []Dependency // that it links, besides the module whose working folder was compiled

	Settings map[string]string // of the build: see debug.BuildInfo
}

// ReadBinary reads the build information of a binary. Binaries without any are an error, and so are those that name no
// module.
func ReadBinary(file string) (Binary, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return Binary{}, err // names the file
	}
	if info.Main.Path == "" && len(info.Deps) == 0 { // rules_go names no main module
		return Binary{}, fmt.Errorf("%s: no module in its build information", file)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return Binary{Go: info.GoVersion, Package: info.Path, Modules: Linked(info), Settings: settings}, nil
}

// Linked returns all modules of a binary but the one whose working folder was compiled. Only that one has neither a sum
// nor a replacement. Its version is no sign: one from version control looks like any other.
func Linked(info *debug.BuildInfo) []Dependency {
	modules := info.Deps
	if info.Main.Sum != "" || info.Main.Replace != nil {
		modules = append([]*debug.Module{&info.Main}, modules...)
	}
	var found []Dependency
	for _, m := range modules {
		d := Dependency{Path: m.Path, Version: m.Version, Sum: m.Sum}
		if m.Replace != nil {
			d.Sum, d.Replace = m.Replace.Sum, ReplacedBy(m.Replace.Path, m.Replace.Version)
		}
		found = append(found, d)
	}
	return found
}

// ReplacedBy returns the new side of a replacement as the Go command reports it, which may give a version to a folder.
func ReplacedBy(path, version string) Version {
	if modfile.IsDirectoryPath(path) {
		version = ""
	}
	return Version{path, version}
}

// WriteList writes a file that says, in JSON, which modules are linked into at least one of the binaries: a list of
// [Dependency] values, sorted by path. It names no folder of the machine but those that a go.mod names so. The binaries
// come from one Go module and so agree on every version; it is an error if they do not.
func WriteList(file string, binaries []string) error {
	if len(binaries) == 0 {
		return fmt.Errorf("%s: no binaries to list the modules of", file)
	}
	read := make([]Binary, len(binaries))
	for i, name := range binaries {
		var err error
		if read[i], err = ReadBinary(name); err != nil {
			return err
		}
	}
	modules, err := merge(binaries, read)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(modules, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// merge joins the modules of binaries, which have names.
func merge(names []string, binaries []Binary) ([]Dependency, error) {
	linked, by := map[string]Dependency{}, map[string]string{} // the first binary that links a module, by path
	var errs []error
	for i, b := range binaries {
		for _, d := range b.Modules {
			if other, ok := linked[d.Path]; !ok {
				linked[d.Path], by[d.Path] = d, names[i]
			} else if other != d {
				errs = append(errs, fmt.Errorf("%s links %s, but %s links %s: build both again", names[i], d, by[d.Path], other))
			}
		}
	}
	modules := slices.AppendSeq([]Dependency{}, maps.Values(linked))
	sortDependencies(modules)
	return modules, errors.Join(errs...)
}

// String names the module, its sum and its replacement, for messages.
func (d Dependency) String() string {
	text := Version{d.Path, d.Version}.String()
	if d.Replace != (Version{}) {
		text += " => " + d.Replace.String()
	}
	if d.Sum != "" {
		text += " " + d.Sum
	}
	return text
}

// ReadLists reads files that WriteList wrote, and returns the modules in any of them: sorted by path, then version, without
// duplicates. Lists of the binaries of several Go modules may have several versions of one module.
func ReadLists(files ...string) ([]Dependency, error) {
	var all []Dependency
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("list of modules: %w", err)
		}
		var modules []Dependency
		if err := json.Unmarshal(text, &modules); err != nil {
			return nil, fmt.Errorf("list of modules %s: %w", file, err)
		}
		all = append(all, modules...)
	}
	sortDependencies(all)
	return slices.Compact(all), nil
}

func sortDependencies(d []Dependency) {
	slices.SortFunc(d, func(a, b Dependency) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Version, b.Version), compare(a.Replace, b.Replace),
			strings.Compare(a.Sum, b.Sum))
	})
}
