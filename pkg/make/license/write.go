package license

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Paths in a tar or a folder.
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

// Write writes a tar of what becomes LICENSES.
func Write(ctx context.Context, file string, src Source) error {
	modules, err := readList(src.Modules)
	if err != nil {
		return err
	}
	packages, err := readPackages(src.Packages)
	if err != nil {
		return err
	}
	texts, err := src.texts(ctx, modules, packages)
	if err != nil {
		return err
	}
	return writeTar(file, texts)
}

// texts returns the files of modules, and their index.
func (src Source) texts(ctx context.Context, modules []Module, packages []Package) ([]text, error) {
	for i := range modules {
		if err := src.locate(&modules[i]); err != nil {
			return nil, fmt.Errorf("license: %w", err)
		}
	}
	byModule, err := assign(packages, modules)
	if err != nil {
		return nil, fmt.Errorf("license %s: %w", src.Packages, err)
	}
	files, err := findAll(ctx, modules, byModule)
	if err != nil {
		return nil, err
	}
	texts := []text{
		{name: goLicense, from: filepath.Join(src.GOROOT, "LICENSE")},
		{name: goPatents, from: filepath.Join(src.GOROOT, "PATENTS")},
		index(modules, files, src.Patches),
	}
	if src.License != "" {
		texts = append(texts, text{name: ownLicense, from: src.License})
	}
	for i, m := range modules {
		for _, f := range files[i] {
			texts = append(texts, text{name: vendored(m, f), from: filepath.Join(m.Dir, filepath.FromSlash(f))})
		}
	}
	return texts, nil
}

// A text is a file in a tar or a folder: data, or the content of a file on this machine.
type text struct {
	name string // slash-separated
	from string
	data []byte
}

func (t text) read() ([]byte, error) {
	if t.from == "" {
		return t.data, nil
	}
	return os.ReadFile(t.from)
}

// writeTar writes texts in the order of their names. Everybody can read them, whatever the modes of their files are.
func writeTar(file string, texts []text) error {
	slices.SortFunc(texts, func(a, b text) int { return strings.Compare(a.name, b.name) })
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, t := range texts {
		data, err := t.read()
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: t.name, Mode: 0o644, Size: int64(len(data)), ModTime: time.Unix(0, 0)})
		}
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			return fmt.Errorf("license: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("license: %w", err)
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

// readTar reads what writeTar has written, by names.
func readTar(file string) (map[string][]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	texts := map[string][]byte{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return texts, nil
		}
		if err == nil {
			texts[h.Name], err = io.ReadAll(r)
		}
		if err != nil {
			return nil, fmt.Errorf("license %s: %w", file, err)
		}
	}
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

func index(modules []Module, files [][]string, patches []Patch) text {
	var b bytes.Buffer
	for i, m := range modules {
		fmt.Fprintf(&b, "%s\t%s\t%s\n", m.Path, m.revision(), strings.Join(files[i], "\t"))
	}
	for _, p := range patches {
		fmt.Fprintf(&b, "%s%s sha256:%s\n", patchMark, p.Name, p.SHA256)
	}
	return text{name: indexFile, data: b.Bytes()}
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
