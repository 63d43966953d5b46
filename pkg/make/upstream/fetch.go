package upstream

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/tree/module"
)

// A fetched module has its Source, or an error.
type fetched struct {
	Module
	err error
}

// fetch looks modules up in the module cache, and fetches those that are not there. Sums are checked with the go.sum in dir, and
// where it has none, in the checksum database. The go.sum stays as it is: it is copied to a folder of its own first.
func fetch(ctx context.Context, g Go, dir string, modules []Module) ([]fetched, error) {
	if len(modules) == 0 {
		return nil, nil
	}
	tmp, err := os.MkdirTemp("", "slipway-upstream-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if err := os.WriteFile(filepath.Join(tmp, "go.mod"), []byte("module slipway.invalid\n"), 0o666); err != nil {
		return nil, err
	}
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(tmp, "go.sum"), sums, 0o666); err != nil {
		return nil, err
	}
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		args = append(args, m.Version.String())
	}
	answers, err := toolchain.Answers(g.Command(ctx, tmp, "", "", args...))
	if ctx.Err() != nil {
		return nil, fmt.Errorf("fetch modules: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	found := map[module.Version]toolchain.Answer{}
	for _, a := range answers {
		found[module.Version{Path: a.Path, Version: a.Version}] = a
	}
	list := make([]fetched, 0, len(modules))
	for _, m := range modules {
		a := found[m.Version]
		f := fetched{Module: m}
		switch {
		case a.Error != "":
			f.err = fmt.Errorf("module %s: %s", m.Version, a.Error)
		case a.Dir == "":
			f.err = fmt.Errorf("module %s: go mod download names no folder for it", m.Version)
		}
		f.Source, f.Sum = a.Dir, a.Sum
		list = append(list, f)
	}
	return list, nil
}
