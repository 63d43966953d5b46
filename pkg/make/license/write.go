package license

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Paths in a folder.
const (
	ownLicense = "LICENSE"
	goLicense  = "go/LICENSE"
	goPatents  = "go/PATENTS"
	indexFile  = "modules.txt"
)

func vendored(m Module, file string) string { return path.Join("vendor", m.Path, file) }

// A Source says where the files are that Write reads.
type Source struct {
	License  string // the repository's own license file
	ModCache string // GOMODCACHE
	ModRoot  string // the folder of the binaries' go.mod, to which folders in its replace directives are relative
	GOROOT   string // of the Go that compiled the binaries
	Modules  string // package module's list of the modules in binaries, all of one Go module
	Patches  []Patch
	Packages string // a file with the list of packages, see the package comment
	Declared Declared
}

// Write fills dir, which becomes LICENSES and must be absent or empty: an old text may be of a module that is no longer
// linked.
func Write(ctx context.Context, dir string, src Source) error {
	modules, err := readList(src.Modules)
	if err != nil {
		return err
	}
	packages, err := readPackages(src.Packages)
	if err != nil {
		return err
	}
	return src.write(ctx, dir, modules, packages)
}

// write fills dir with the files of modules.
func (src Source) write(ctx context.Context, dir string, modules []Module, packages []Package) error {
	for i := range modules {
		if err := src.locate(&modules[i]); err != nil {
			return fmt.Errorf("license: %w", err)
		}
	}
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
	return fill(ctx, dir, copies, index(modules, files, src.Patches))
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

// findAll lists the license files of each module. Its error names all modules without a license at once, as each of them
// needs a decision.
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

func index(modules []Module, files [][]string, patches []Patch) []byte {
	var b bytes.Buffer
	for i, m := range modules {
		fmt.Fprintf(&b, "%s\t%s\t%s\n", m.Path, m.revision(), strings.Join(files[i], "\t"))
	}
	for _, p := range patches {
		fmt.Fprintf(&b, "%s%s sha256:%s\n", patchMark, p.Name, p.SHA256)
	}
	return b.Bytes()
}

// patchMark begins the lines of the index that name patches.
const patchMark = "# patch "

// Names of files that grant something begin with one of grants, those of files that go with such a file with one of
// accompanies. All are in lower case.
var (
	grants      = []string{"license", "licence", "copying", "copyright", "unlicense", "mit-license"}
	accompanies = []string{"notice", "patents"}
)

func begins(name string, with []string) bool {
	name = strings.ToLower(name)
	return !strings.HasSuffix(name, ".go") && slices.ContainsFunc(with, func(w string) bool { return strings.HasPrefix(name, w) })
}

func isLicense(name string) bool { return begins(name, grants) || begins(name, accompanies) }

// errUnlicensed says that a module has no file at its root that grants something.
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

// A copied file goes from a path of the machine to a slash-separated one in the folder.
type copied struct{ from, to string }

// fill makes the folder: the copies and the index.
func fill(ctx context.Context, dir string, copies []copied, index []byte) error {
	if old, err := os.ReadDir(dir); err == nil && len(old) > 0 {
		return fmt.Errorf("license %s: folder is not empty", dir)
	}
	for _, c := range copies {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := os.ReadFile(c.from)
		if err != nil {
			return fmt.Errorf("license: %w", err)
		}
		if err := put(filepath.Join(dir, filepath.FromSlash(c.to)), text); err != nil {
			return fmt.Errorf("license: %w", err)
		}
	}
	if err := put(filepath.Join(dir, indexFile), index); err != nil {
		return fmt.Errorf("license: %w", err)
	}
	return nil
}

// put writes a new file. It fails if the file exists: on a file system that ignores case, the files of two modules could
// otherwise become one.
func put(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Chmod(0o644), f.Close()) // whatever the umask is, everybody can read a license
}
