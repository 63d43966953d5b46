package license

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"

	"slipway.build/pkg/tree/module"
)

// Names are the SPDX identifiers of licenses that programs may be under.
type Names struct {
	Own     []string               `json:"own"` // of the repository's own code
	Go      []string               `json:"go"`  // of Go's standard library and runtime
	Modules map[string]ModuleNames `json:"modules"`
}

// ModuleNames are the licenses of the code of a module.
type ModuleNames struct {
	Revision string   `json:"revision"` // as the index has it
	Licenses []string `json:"licenses"`
}

// Names names the licenses of every module in the list of packages.
func (src Source) Names(ctx context.Context) (Names, error) {
	packages, err := readPackages(src.Packages)
	if err != nil {
		return Names{}, err
	}
	byModule := map[Module][]Package{}
	for _, p := range packages {
		if p.Module.Code().Version == "" && p.Module.Folder() == "" {
			continue // of the repository
		}
		byModule[p.Module] = append(byModule[p.Module], p)
	}
	var found []licensed
	for m, packages := range byModule {
		if err := ctx.Err(); err != nil {
			return Names{}, err
		}
		if err := src.locate(&m); err != nil {
			return Names{}, fmt.Errorf("license: %w", err)
		}
		files, err := find(m, packages)
		if err != nil && !errors.Is(err, errUnlicensed) { // Write refuses those that are linked
			return Names{}, err
		}
		found = append(found, licensed{m.Path, m.revision(), m.Dir, files})
	}
	return namesOf(ctx, src.License, filepath.Join(src.GOROOT, "LICENSE"), found, src.Declared)
}

// Declared are the licenses of modules whose texts nothing recognizes, by the module's path. They take the place of unrecognized texts.
type Declared map[string]string

// GatheredNames names the licenses of every module in a folder of Gather or Write.
func GatheredNames(ctx context.Context, license, dir string, declared Declared) (Names, error) {
	index, err := readIndex(filepath.Join(dir, indexFile))
	if err != nil {
		return Names{}, err
	}
	var found []licensed
	for p, m := range index {
		found = append(found, licensed{p, m.revision, filepath.Join(dir, filepath.FromSlash("vendor/"+p)), m.files})
	}
	return namesOf(ctx, license, filepath.Join(dir, filepath.FromSlash(goLicense)), found, declared)
}

// A licensed module has license files, relative to a folder.
type licensed struct {
	path, revision, dir string
	files               []string
}

// namesOf names the licenses of modules, of the repository, if it has one, and of Go.
func namesOf(ctx context.Context, license, golang string, modules []licensed, declared Declared) (Names, error) {
	var own ModuleNames
	if license != "" {
		var err error
		if own, err = named("repository", "", filepath.Dir(license), []string{filepath.Base(license)}); err != nil {
			return Names{}, err
		}
	}
	std, err := named("go", "", filepath.Dir(golang), []string{filepath.Base(golang)})
	if err != nil {
		return Names{}, err
	}
	n := Names{own.Licenses, std.Licenses, map[string]ModuleNames{}}
	for _, m := range modules {
		if err := ctx.Err(); err != nil {
			return Names{}, err
		}
		names, err := named(m.path, m.revision, m.dir, m.files)
		if err != nil {
			return Names{}, err
		}
		if license := declared[m.path]; license != "" && slices.ContainsFunc(names.Licenses, Unnamed) {
			names.Licenses = append(slices.DeleteFunc(names.Licenses, Unnamed), license)
		}
		n.Modules[m.path] = names
	}
	return n, nil
}

// Scan recognizes license texts. Its first call takes seconds of processor time, so tests that start many processes replace it by one that
// knows few licenses.
var Scan = licensecheck.Scan

// recognized is the least part of a text, in percent of its words, that known licenses must cover. The rest are copyright
// lines, titles, and lists of the files that the license is for.
const recognized = 75

// named recognizes the license files of a module, which are relative to dir. Files that accompany a license grant nothing,
// and neither does a list of copyright holders beside a license. Any other text that is not recognized becomes a
// LicenseRef with the module's name.
func named(name, revision, dir string, files []string) (ModuleNames, error) {
	var found []string
	known := map[string]bool{} // folders with a recognized license
	var unknown []string
	for _, f := range files {
		if !begins(path.Base(f), grants) || strings.HasSuffix(f, ".docs") { // documentation is not linked
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f)))
		if err != nil {
			return ModuleNames{}, fmt.Errorf("license: %w", err)
		}
		covered := Scan(text)
		for _, m := range covered.Match {
			if isSPDX(m.ID) {
				found = append(found, m.ID)
			} else {
				unknown = append(unknown, f)
			}
		}
		if covered.Percent >= recognized {
			known[path.Dir(f)] = true
		} else {
			unknown = append(unknown, f)
		}
	}
	for _, f := range unknown {
		if !known[path.Dir(f)] || !begins(path.Base(f), []string{"copyright"}) {
			found = append(found, reference(name))
		}
	}
	if len(found) == 0 {
		found = []string{reference(name)}
	}
	slices.Sort(found)
	return ModuleNames{revision, slices.Compact(found)}, nil
}

// isSPDX reports whether a name of package licensecheck is on SPDX' list. It has names of its own for some texts.
func isSPDX(id string) bool {
	return !slices.Contains([]string{
		"Aladdin-9", "Anti996", "BSD-1-Clause-Clear", "BSD-3-Clause-NoTrademark", "CC-BY-NC-SA-3.0-US", "CommonsClause",
		"GooglePatentClause", "GooglePatentsFile", "LGPL-2.0-or-3.0", "MIT-NoAd", "Prosperity-3.0.0",
	}, id)
}

// unlisted begins the names that SPDX has for licenses that are not on its list.
const unlisted = "LicenseRef-"

var notInReference = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// reference is the name that SPDX has for a license that is not on its list.
func reference(name string) string {
	return unlisted + notInReference.ReplaceAllString(name, "-")
}

func (n Names) write(file string) error {
	text, err := json.MarshalIndent(n, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// ReadNames reads files that NamesAction makes, and joins them.
func ReadNames(files ...string) (Licenses, error) {
	k := Licenses{modules: map[string]ModuleNames{}}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return Licenses{}, fmt.Errorf("license: %w", err)
		}
		var n Names
		if err := json.Unmarshal(data, &n); err != nil {
			return Licenses{}, fmt.Errorf("license %s: %w", file, err)
		}
		k.own, k.golang = append(k.own, n.Own...), append(k.golang, n.Go...)
		for path, m := range n.Modules {
			k.modules[path+"@"+m.Revision] = m
		}
	}
	return k, nil
}

// Licenses are the licenses of modules, of the repository and of Go.
type Licenses struct {
	own, golang []string
	modules     map[string]ModuleNames // by module and revision
}

// Own returns the SPDX expression of the repository's own code, and Go that of Go's standard library. They are empty if nothing is known.
func (l Licenses) Own() string { return joined(l.own) }
func (l Licenses) Go() string  { return joined(l.golang) }

// Module returns the SPDX expression of a module's licenses, and whether they are known.
func (l Licenses) Module(d module.Dependency) (string, bool) {
	n, ok := l.modules[Module{Dependency: d}.String()]
	return joined(n.Licenses), ok
}

// Modules returns the modules, each as PATH@REVISION, with the SPDX expressions of their licenses.
func (l Licenses) Modules() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for name, n := range l.modules {
			if !yield(name, joined(n.Licenses)) {
				return
			}
		}
	}
}

// Unnamed reports whether an expression has a license that is not on SPDX' list.
func Unnamed(expression string) bool { return strings.Contains(expression, unlisted) }

// joined joins licenses by AND. One that is an expression itself is put into parentheses.
func joined(licenses []string) string {
	all := slices.Sorted(slices.Values(licenses))
	all = slices.Compact(all)
	if len(all) > 1 {
		for i, l := range all {
			if strings.Contains(l, " ") {
				all[i] = "(" + l + ")"
			}
		}
	}
	return strings.Join(all, " AND ")
}

// Expression returns the SPDX expression for what is linked into binaries: the licenses of their modules, of Go, and of
// the repository, joined by AND. The names are in files that NamesAction makes, for all of their modules.
//
// A choice that a module offers is not taken: its licenses are joined by AND, too.
func Expression(names, binaries []string) (string, error) {
	known, err := ReadNames(names...)
	if err != nil {
		return "", err
	}
	all := slices.Concat(known.own, known.golang)
	for _, b := range binaries {
		read, err := module.ReadBinary(b)
		if err != nil {
			return "", fmt.Errorf("license: %w", err)
		}
		for _, d := range read.Modules {
			m := Module{Dependency: d}
			n, ok := known.modules[m.String()]
			if !ok {
				return "", fmt.Errorf("license %s: %s is linked, and its license is not named", b, m)
			}
			all = append(all, n.Licenses...)
		}
	}
	return joined(all), nil
}
