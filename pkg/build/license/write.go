package license

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// What is where in a folder.
const (
	ownLicense = "LICENSE"
	goLicense  = "go/LICENSE"
	goPatents  = "go/PATENTS"
	indexFile  = "modules.txt"
)

func vendored(m Module, file string) string { return path.Join("vendor", m.Path, file) }

// A Source says where everything is that Write reads.
type Source struct {
	License  string // the repository's own license file
	ModCache string // GOMODCACHE
	ModRoot  string // the folder of the binaries' go.mod, to which folders in its replace directives are relative
	GOROOT   string // of the Go that compiled the binaries
	Modules  string // a list that package module made of the binaries, all of one Go module
	Packages string // a file with the list of packages, see the package comment
}

// Write fills dir, which becomes LICENSES and must be absent or empty: a text left from before would be
// one that is not owed.
func Write(ctx context.Context, dir string, src Source) error {
	modules, err := readList(src.Modules)
	if err != nil {
		return err
	}
	for i := range modules {
		if err := src.locate(&modules[i]); err != nil {
			return fmt.Errorf("license: %w", err)
		}
	}
	packages, err := readPackages(src.Packages)
	if err != nil {
		return err
	}
	return src.lay(ctx, dir, modules, packages)
}

// lay fills dir with the files of modules.
func (src Source) lay(ctx context.Context, dir string, modules []Module, packages []Package) error {
	byModule, err := assign(packages, modules)
	if err != nil {
		return fmt.Errorf("license %s: %w", src.Packages, err)
	}
	files, err := findAll(ctx, modules, byModule)
	if err != nil {
		return err
	}
	copies := []copied{
		{filepath.Join(src.GOROOT, "LICENSE"), goLicense},
		{filepath.Join(src.GOROOT, "PATENTS"), goPatents},
	}
	if src.License != "" {
		copies = append(copies, copied{src.License, ownLicense})
	}
	for i, m := range modules {
		for _, f := range files[i] {
			copies = append(copies, copied{filepath.Join(m.Dir, filepath.FromSlash(f)), vendored(m, f)})
		}
	}
	return lay(ctx, dir, copies, index(modules, files))
}

func readPackages(name string) ([]Package, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("license: list of packages: %w", err)
	}
	defer f.Close()
	return Packages(f)
}

// assign sorts packages by their module's path. Packages of modules that are not linked are dropped; a
// module without a package, or in another version, shows that the list is not that of the binaries.
func assign(packages []Package, modules []Module) (map[string][]Package, error) {
	byModule := make(map[string][]Package)
	for _, p := range packages {
		byModule[p.Module.Path] = append(byModule[p.Module.Path], p)
	}
	var errs []error
	for _, m := range modules {
		if len(byModule[m.Path]) == 0 {
			errs = append(errs, fmt.Errorf("no package of %s, which is linked; list the packages of every platform, with the build's tags", m))
			continue
		}
		for _, p := range byModule[m.Path] {
			if p.Module.revision() != m.revision() {
				errs = append(errs, fmt.Errorf("%s is of %s, but linked is %s; list with the build's go.mod", p.ImportPath, p.Module, m))
				break // one package of a module says it for all
			}
		}
	}
	return byModule, errors.Join(errs...)
}

// findAll is find for each module. Modules without a license are named all at once, since each will need a
// decision and nobody wants to come back for every one.
func findAll(ctx context.Context, modules []Module, byModule map[string][]Package) ([][]string, error) {
	files := make([][]string, len(modules))
	var unlicensed []string
	for i, m := range modules {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found, err := find(m, byModule[m.Path])
		if errors.Is(err, errUnlicensed) {
			unlicensed = append(unlicensed, "\t"+m.String())
			continue
		}
		if err != nil {
			return nil, err
		}
		files[i] = found
	}
	if len(unlicensed) > 0 {
		return nil, fmt.Errorf("license: no license file at the root of\n%s\nThey can't be shipped without. Require a version "+
			"that has one, drop the dependency, or replace it by a folder that holds the text its authors published",
			strings.Join(unlicensed, "\n"))
	}
	return files, nil
}

func index(modules []Module, files [][]string) []byte {
	var b bytes.Buffer
	for i, m := range modules {
		fmt.Fprintf(&b, "%s\t%s\t%s\n", m.Path, m.revision(), strings.Join(files[i], "\t"))
	}
	return b.Bytes()
}
