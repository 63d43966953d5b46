package license

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/tree/module"
)

// Gather fills dir with the files of every module in the list of packages, for Select: a folder in the form of Write's, but
// without the repository's own license. It needs no binaries.
func Gather(ctx context.Context, dir string, src Source) error {
	packages, err := readPackages(src.Packages)
	if err != nil {
		return err
	}
	// The working folder's own packages, which have neither a version nor a replacement, are the repository's.
	packages = slices.DeleteFunc(packages, func(p Package) bool { return p.Module.Code().Version == "" && p.Module.Folder() == "" })
	var modules []Module
	for _, p := range packages {
		modules = append(modules, p.Module)
	}
	slices.SortFunc(modules, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	modules = slices.Compact(modules)
	src.License = ""
	return src.write(ctx, dir, modules, packages)
}

// Select fills dir with the files in a folder of Gather that binaries need, and with the repository's own license, if there is one. The
// modules of the binaries are in a list of module.WriteList.
func Select(ctx context.Context, dir, gathered, license, list string, patches []Patch) error {
	modules, err := readList(list)
	if err != nil {
		return err
	}
	indexed, err := readIndex(filepath.Join(gathered, indexFile))
	if err != nil {
		return err
	}
	files := make([][]string, len(modules))
	var copies []copied
	if license != "" {
		copies = append(copies, copied{license, ownLicense})
	}
	for _, name := range []string{goLicense, goPatents} {
		copies = append(copies, copied{filepath.Join(gathered, filepath.FromSlash(name)), name})
	}
	var errs []error
	for i, m := range modules {
		entry, ok := indexed[m.Path]
		switch {
		case ok && entry.revision == localRevision && m.Sum == "":
			modules[i].Replace = module.Version{Path: "./"} // binaries of Bazel do not say that a module is a folder
		case !ok:
			errs = append(errs, fmt.Errorf("no license of %s, which is linked; gather those of every platform, with the build's tags", m))
		case entry.revision != m.revision():
			errs = append(errs, fmt.Errorf("the license is that of %s@%s, but linked is %s; gather with the build's go.mod",
				m.Path, entry.revision, m))
		}
		files[i] = entry.files
		for _, f := range entry.files {
			copies = append(copies, copied{filepath.Join(gathered, filepath.FromSlash(vendored(m, f))), vendored(m, f)})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("license %s: %w", gathered, err)
	}
	return fill(ctx, dir, copies, index(modules, files, patches))
}

// An indexed module is a line of the index.
type indexed struct {
	revision string
	files    []string
}

// readIndex reads an index, by the modules' paths.
func readIndex(name string) (map[string]indexed, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("license: %w", err)
	}
	modules := map[string]indexed{}
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte(patchMark)) {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(string(line), "\n"), "\t")
		if len(fields) < 3 {
			return nil, fmt.Errorf("license %s: cannot read %q", name, line)
		}
		modules[fields[0]] = indexed{fields[1], fields[2:]}
	}
	return modules, nil
}
