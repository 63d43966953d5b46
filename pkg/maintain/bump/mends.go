package bump

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/mechanism/govulns"
	"slipway.build/pkg/tree/module"
)

// A versions are modules with the versions that something is compiled from.
type versions map[string]string

// mends fills in which known vulnerabilities the newer versions mend: those that the database knows of the modules that the tree has now,
// and not of those that it would have then. It says nothing of whether vulnerable packages are linked; vulns does, of a release.
func (q *inquiry) mends(ctx context.Context) error {
	for i := range q.items {
		item := &q.items[i]
		to := item.Should
		if to == "" || to == item.Have {
			to = item.Newest
		}
		if to == "" || to == item.Have {
			continue
		}
		var before, after govulns.Binary
		var err error
		switch item.Kind {
		case "go":
			before, after = govulns.Binary{Go: item.Have}, govulns.Binary{Go: to}
		case "kubernetes":
			before, after, err = q.bothKubernetes(ctx, to)
		case "project":
			before, after, err = q.bothProjects(ctx, item.Name, to)
		default:
			continue
		}
		if err != nil {
			item.Note = strings.TrimPrefix(item.Note+"; ", "; ") + notKnown(err)
			continue
		}
		if item.Mends, err = q.difference(ctx, before, after); err != nil {
			return err
		}
	}
	return nil
}

// difference returns what the database knows of one and not of the other.
func (q *inquiry) difference(ctx context.Context, before, after govulns.Binary) ([]string, error) {
	ids := func(b govulns.Binary) ([]string, error) {
		b.OS, b.Arch = "linux", runtime.GOARCH
		if b.Go == "" {
			b.Go = q.catalog.Go.Version // not asked about: it is the same on both sides
		}
		found, _, err := govulns.Scan(ctx, q.DB, b)
		var all []string
		for _, f := range found {
			all = append(all, f.ID)
		}
		return all, err
	}
	now, err := ids(before)
	if err != nil {
		return nil, err
	}
	then, err := ids(after)
	mended := slices.DeleteFunc(now, func(id string) bool { return slices.Contains(then, id) })
	slices.Sort(mended)
	return slices.Compact(mended), err
}

func (v versions) binary() govulns.Binary {
	var b govulns.Binary
	for path, version := range v {
		version, _ = module.Unpatched(version)
		b.Modules = append(b.Modules, govulns.Module{Path: path, Version: version})
	}
	return b
}

// of returns the modules that a module of the tree requires.
func (q *inquiry) of(folder string) (versions, error) {
	m, err := module.Load(q.Root, folder)
	if err != nil {
		return nil, err
	}
	found := versions{}
	for _, r := range m.Requires {
		if code := r.Code(); code.Version != "" && code.Path == r.Path {
			found[r.Path] = code.Version
		}
	}
	return found, nil
}

// with returns the modules with what another module requires, where that is newer.
func (v versions) with(g got) versions {
	after := versions{}
	for path, version := range v {
		after[path] = version
	}
	for _, r := range g.mod.Require {
		if have, ok := after[r.Mod.Path]; ok && semver.Compare(r.Mod.Version, have) > 0 {
			after[r.Mod.Path] = r.Mod.Version
		}
	}
	return after
}

// bothKubernetes returns the modules of the components as they are, and as they would be with another version of Kubernetes.
func (q *inquiry) bothKubernetes(ctx context.Context, to string) (before, after govulns.Binary, err error) {
	have, err := q.of(q.catalog.Module)
	if err != nil {
		return before, after, err
	}
	fetched, err := q.proxy.fetch(ctx, requirement{Path: kubernetes, Version: to})
	if err != nil {
		return before, after, err
	}
	then := have.with(fetched[0])
	for path, version := range then {
		switch {
		case path == kubernetes:
			then[path] = to
		case version == StagingVersion(q.catalog.Kubernetes):
			then[path] = StagingVersion(to)
		}
	}
	return have.binary(), then.binary(), nil
}

// bothProjects does the same for another project.
func (q *inquiry) bothProjects(ctx context.Context, name, to string) (before, after govulns.Binary, err error) {
	all, err := projects(q.Root, q.catalog)
	if err != nil {
		return before, after, err
	}
	at := slices.IndexFunc(all, func(pr project) bool { return pr.name == name })
	if at < 0 || len(all[at].modules) == 0 {
		return before, after, nil
	}
	pr := all[at]
	have, err := q.of(path.Clean(pr.folder))
	if err != nil {
		return before, after, err
	}
	version := to
	if !strings.HasPrefix(version, "v") {
		version = "v" + version
	}
	version, _, _ = strings.Cut(version, "-") // an image's tag ends with its revision
	var wanted []requirement
	for _, m := range pr.modules {
		wanted = append(wanted, requirement{Path: m, Version: version})
	}
	fetched, err := q.proxy.fetch(ctx, wanted...)
	if err != nil {
		return before, after, fmt.Errorf("%s %s: %w", name, to, err)
	}
	then := have
	for _, g := range fetched {
		then = then.with(g)
		then[g.Path] = version
	}
	return have.binary(), then.binary(), nil
}
