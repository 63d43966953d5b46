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

// Gather fills dir, which must be absent or empty, with the files of every module in the list of packages, for Select: what Write
// writes, but without the repository's own license. It needs no binaries.
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
	texts, err := src.texts(ctx, modules, packages)
	if err != nil {
		return err
	}
	if old, err := os.ReadDir(dir); err == nil && len(old) > 0 {
		return fmt.Errorf("license %s: folder is not empty", dir)
	}
	for _, t := range texts {
		if err := errors.Join(ctx.Err(), put(dir, t)); err != nil {
			return fmt.Errorf("license: %w", err)
		}
	}
	return nil
}

// put writes a text to a new file. It fails if the file exists: on a file system that ignores case, the files of two modules could
// otherwise become one.
func put(dir string, t text) error {
	data, err := t.read()
	if err != nil {
		return err
	}
	name := filepath.Join(dir, filepath.FromSlash(t.name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Chmod(0o644), f.Close())
}

// Select writes a tar of the files in a folder of Gather that binaries need, and of the repository's own license, if there is one. The
// modules of the binaries are in a list of module.WriteList.
func Select(file, gathered, license, list string, patches []Patch) error {
	modules, err := readList(list)
	if err != nil {
		return err
	}
	indexed, err := readIndex(filepath.Join(gathered, indexFile))
	if err != nil {
		return err
	}
	files := make([][]string, len(modules))
	gatheredText := func(name string) text {
		return text{name: name, from: filepath.Join(gathered, filepath.FromSlash(name))}
	}
	texts := []text{gatheredText(goLicense), gatheredText(goPatents)}
	if license != "" {
		texts = append(texts, text{name: ownLicense, from: license})
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
			texts = append(texts, gatheredText(vendored(m, f)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("license %s: %w", gathered, err)
	}
	return writeTar(file, append(texts, index(modules, files, patches)))
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
	return parseIndex(name, data)
}

// parseIndex reads the content of an index. Name is for errors.
func parseIndex(name string, data []byte) (map[string]indexed, error) {
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
