package kubetest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/make/upstream"
	"slipway.build/pkg/tree/module"
)

// TestModules returns Kubernetes' modules, and the modules that these require and the components' go.mod does not: only tests may import
// them. They have upstream's versions and sums. One that upstream has no sum of is not compiled.
func TestModules(ctx context.Context, t Tree) (kubernetes []upstream.Module, only []module.Pinned, err error) {
	mod, err := module.Load(t.Root, t.Components)
	if err != nil {
		return nil, nil, err
	}
	repository, err := upstream.Open(ctx, t.Go, t.Root, t.Components, upstream.Kubernetes)
	if err != nil {
		return nil, nil, err
	}
	required, sums := map[string]bool{}, map[module.Version]module.Pinned{}
	for _, r := range mod.Requires {
		required[r.Path] = r.Sum != "" || r.Folder() != ""
	}
	for _, m := range repository.Modules {
		if !required[m.Path] {
			required[m.Path] = true
			only = append(only, module.Pinned{Version: m.Version, Sum: m.Sum})
		}
		for _, name := range []string{"go.sum", "go.work.sum"} {
			known, err := module.ReadSums(filepath.Join(m.Source, name))
			if err != nil && !os.IsNotExist(err) {
				return nil, nil, err
			}
			for _, p := range known {
				sums[p.Version] = p
			}
		}
	}
	for _, m := range repository.Modules {
		theirs, err := module.Load(m.Source, ".")
		if err != nil {
			return nil, nil, err
		}
		for _, r := range theirs.Requires {
			version := module.Version{Path: r.Path, Version: r.Version}
			if p := sums[version]; p.Sum != "" && !required[r.Path] {
				required[r.Path] = true
				only = append(only, p)
			}
		}
	}
	slices.SortFunc(only, func(a, b module.Pinned) int { return strings.Compare(a.Path, b.Path) })
	return repository.Modules, only, nil
}
