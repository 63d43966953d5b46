package bump

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/mechanism/govulns"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// mends fills in which known vulnerabilities the newer versions mend: those that the database knows of the modules that the tree has now,
// and not of those that it would have then; and which overrides mend others. It says nothing of whether vulnerable packages are linked;
// vulns does, of a release.
func (q *inquiry) mends(ctx context.Context) error {
	for i := range q.items {
		item := &q.items[i]
		to := item.Should
		if to == "" || to == item.Have {
			to = item.Newest
		}
		newer := to != "" && to != item.Have
		if item.Kind == "go" && !newer || item.Kind != "go" && len(item.modules) == 0 {
			continue
		}
		var before, after map[string]string
		goBefore, goAfter := item.Have, to
		if item.Kind != "go" {
			goBefore, goAfter = q.catalog.Go.Version, q.catalog.Go.Version // it finds the same on both sides
			version := ""
			if newer {
				version = versionOf(to)
			}
			var err error
			if before, after, err = q.modules(ctx, *item, version); err != nil {
				item.Note = strings.TrimPrefix(item.Note+"; ", "; ") + unknown(err)
				continue
			}
		}
		now, _, err := q.scan(ctx, goBefore, before)
		if err != nil {
			return err
		}
		then, left, err := q.scan(ctx, goAfter, after)
		if err != nil {
			return err
		}
		item.Mends = slices.DeleteFunc(now, func(id string) bool { return slices.Contains(then, id) })
		if item.Kind != "go" {
			item.Overrides = q.overridesFor(*item, left)
		}
	}
	return nil
}

// A flaw is a vulnerability of a module.
type flaw struct {
	govulns.Finding
	name string // a CVE, if it has one
}

// overridesFor returns the overrides that mend flaws of modules which do not move with an item.
func (q *inquiry) overridesFor(item Item, flaws []flaw) []catalog.Override {
	byModule := map[string]catalog.Override{}
	for _, f := range flaws {
		own := f.Module == kubernetes || f.Version == module.Staging(q.catalog.Kubernetes) || slices.Contains(item.modules, f.Module)
		if f.Fixed == "" || f.Module == "stdlib" || own {
			continue
		}
		o := byModule[f.Module]
		o.Module, o.Fixes = f.Module, joined(o.Fixes, []string{f.name})
		if semver.Compare(f.Fixed, o.Version) > 0 {
			o.Version = f.Fixed
		}
		byModule[f.Module] = o
	}
	return slices.SortedFunc(maps.Values(byModule), func(a, b catalog.Override) int { return strings.Compare(a.Module, b.Module) })
}

// scan returns the vulnerabilities that the database knows of a Go and of modules, and their IDs.
func (q *inquiry) scan(ctx context.Context, goVersion string, modules map[string]string) (ids []string, flaws []flaw, err error) {
	b := govulns.Binary{Go: goVersion, OS: "linux", Arch: runtime.GOARCH}
	for path, version := range modules {
		version, _ = module.Unpatched(version)
		b.Modules = append(b.Modules, govulns.Module{Path: path, Version: version})
	}
	found, known, err := govulns.Scan(ctx, q.DB, b)
	for _, f := range found {
		ids = append(ids, f.ID)
		flaws = append(flaws, flaw{f, known[f.ID].Name()})
	}
	slices.Sort(ids)
	return slices.Compact(ids), flaws, err
}

// modules returns the versions of the modules that an item's programs are compiled from, by path, as they are, and as they would be with
// a version of the item; without one, as they are.
func (q *inquiry) modules(ctx context.Context, item Item, to string) (before, after map[string]string, err error) {
	m, err := module.Load(q.Root, item.folder)
	if err != nil {
		return nil, nil, err
	}
	before = map[string]string{}
	for _, r := range m.Requires {
		if code := r.Code(); code.Version != "" && code.Path == r.Path {
			before[r.Path] = code.Version
		}
	}
	if to == "" {
		return before, before, nil
	}
	found, err := q.proxy.fetch(ctx, project{modules: item.modules}.at(to)...)
	if err != nil {
		return nil, nil, err
	}
	after = maps.Clone(before)
	for path, version := range after {
		if item.Kind == "kubernetes" && version == module.Staging(item.Have) {
			after[path] = module.Staging(to)
		}
	}
	for _, f := range found {
		for _, r := range f.mod.Require {
			if have, ok := after[r.Mod.Path]; ok && semver.Compare(r.Mod.Version, have) > 0 {
				after[r.Mod.Path] = r.Mod.Version
			}
		}
		after[f.Path] = to
	}
	return before, after, nil
}
