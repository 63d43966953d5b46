package rebuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/module"
)

// bundle compares the modules and packages in an unpacked kubernetes-inputs.tar with the tree's pins: also those that only slipway needs,
// since it makes the release.
func (c *checker) bundle(ctx context.Context, list *input.List) error {
	var mu sync.Mutex
	var found Problems
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	check := func(folder, file, what, want string, sum func(file string) (string, error)) {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			problem := ""
			switch got, err := sum(filepath.Join(c.Dir, filepath.FromSlash(folder+"/"+file))); {
			case errors.Is(err, fs.ErrNotExist): // listed below
				return nil
			case err != nil:
				problem = fmt.Sprintf("the %s cannot be read: %v", what, err)
			case got != want:
				problem = fmt.Sprintf("the %s in %s differs: its sum is %s, want %s", what, folder, got, want)
			default:
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			found = append(found, problem)
			return nil
		})
	}
	for _, m := range list.Modules {
		at, err := m.ProxyPath()
		if err != nil {
			return err
		}
		if m.Sum != "" {
			check(input.Modules, at+".zip", fmt.Sprintf("module %s", m.Version), m.Sum, zipSum)
		}
		if m.GoModSum != "" {
			check(input.Modules, at+".mod", fmt.Sprintf("go.mod of %s", m.Version), m.GoModSum, goModSum)
		}
	}
	for _, lock := range list.Debian {
		for _, p := range lock.Packages {
			check(input.Debian, p.FileName(), fmt.Sprintf("package %s %s", p.Name, p.Version), p.SHA256, checksum.File)
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	files, err := list.Files()
	if err != nil {
		return err
	}
	for _, name := range files {
		if _, err := os.Stat(filepath.Join(c.Dir, filepath.FromSlash(name))); err != nil {
			found = append(found, name+" is missing")
		}
	}
	slices.Sort(found)
	c.problems = append(c.problems, found...)
	return nil
}

func zipSum(file string) (string, error) { return dirhash.HashZip(file, dirhash.Hash1) }

func goModSum(file string) (string, error) {
	return dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return os.Open(file) })
}

// toolchains compares every Go in an unpacked kubernetes-inputs.tar with the tree's pins: the go command takes one from there without
// asking anybody for its sum. There must be those that this machine needs, or they must be installed.
func (c *checker) toolchains(ctx context.Context, cat *catalog.Catalog) error {
	pins := map[string]string{} // sums by file
	for _, t := range []catalog.Toolchain{cat.Go, cat.Own()} {
		for host, sum := range t.Sums {
			file, err := toolchainFile(t, host)
			if err != nil {
				return err
			}
			pins[file] = sum
		}
	}
	dir := filepath.Join(c.Dir, filepath.FromSlash(input.Modules+"/"+release.ToolchainModule+"/@v"))
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	there := map[string]bool{}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".zip" {
			continue
		}
		there[e.Name()] = true
		switch sum, err := zipSum(filepath.Join(dir, e.Name())); {
		case pins[e.Name()] == "":
			c.problem("the tree does not pin the toolchain %s", e.Name())
		case err != nil:
			c.problem("the toolchain %s cannot be read: %v", e.Name(), err)
		case sum != pins[e.Name()]:
			c.problem("the toolchain %s differs: its sum is %s, want %s", e.Name(), sum, pins[e.Name()])
		}
	}
	host := runtime.GOOS + "-" + runtime.GOARCH
	for _, t := range slices.CompactFunc([]catalog.Toolchain{cat.Go, cat.Own()},
		func(a, b catalog.Toolchain) bool { return a.Version == b.Version }) {
		file, err := toolchainFile(t, host)
		if err != nil {
			return err
		}
		if there[file] {
			continue
		}
		if installed, err := goVersion(ctx, c.Dir); err != nil || installed != t.Version {
			c.problem("%s for %s is missing: the bundle has none, and %s is installed", t.Version, host, cmp.Or(installed, "no Go"))
		}
	}
	return nil
}

// toolchainFile returns the name that a module proxy has for a Go for a host, such as linux-amd64.
func toolchainFile(t catalog.Toolchain, host string) (string, error) {
	at, err := module.Version{Path: release.ToolchainModule, Version: "v0.0.1-" + t.Version + "." + host}.ProxyPath()
	return path.Base(at) + ".zip", err
}
