package bump

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	goversion "go/version"

	"slipway.build/pkg/make/codegen"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// An upstream is a version of Kubernetes with what it names.
type upstream struct {
	fetched
	want    wanted // of the components' go.mod
	staging []fetched
	leftOut unavailableError // staging modules that are not available, and that nothing is compiled from
}

// fetchKubernetes fetches a version of Kubernetes with all of its staging modules. A staging module may be missing if neither Kubernetes'
// go.mod nor needed, the tree's requirements, names it: nothing is compiled from it, and a proxy may mirror only what it was asked for.
func (p *proxy) fetchKubernetes(ctx context.Context, version string, needed map[string]string) (*upstream, error) {
	main, err := p.fetch(ctx, requirement{Path: kubernetes, Version: version})
	if err != nil {
		return nil, err
	}
	u := &upstream{fetched: main[0]}
	if u.want, err = fromKubernetes(version, u.mod); err != nil {
		return nil, err
	}
	var staging []requirement
	for _, m := range u.want.Replace {
		if m.Version == module.Staging(version) {
			staging = append(staging, m)
		}
	}
	u.staging, err = p.fetch(ctx, staging...)
	if !errors.As(err, &u.leftOut) {
		return u, err
	}
	if required := slices.DeleteFunc(slices.Clone(u.leftOut), func(m missing) bool {
		return !slices.Contains(u.want.Indirect, m.Path) && needed[m.Path] == ""
	}); len(required) > 0 {
		return nil, required
	}
	u.want.Replace = slices.DeleteFunc(u.want.Replace, func(r requirement) bool {
		return slices.ContainsFunc(u.leftOut, func(m missing) bool { return m.requirement == r })
	})
	return u, nil
}

// needed returns the versions of the modules that the components and the code generators of the tree require, by path.
func (s *session) needed() (map[string]string, error) {
	versions := map[string]string{}
	for _, folder := range []string{s.catalog.Module, codegen.Module} {
		m, err := module.Load(s.Root, folder)
		if errors.Is(err, fs.ErrNotExist) && folder == codegen.Module {
			continue // a tree without generators
		}
		if err != nil {
			return nil, err
		}
		for _, r := range m.Requires {
			versions[r.Path] = r.Version
		}
	}
	return versions, nil
}

// toKubernetes moves the tree to a version of Kubernetes, or to the newest patch of its minor that is available with all modules that
// fetchKubernetes needs.
func (p *preparation) toKubernetes(version string) step {
	return func(ctx context.Context) error {
		needed, err := p.needed()
		if err != nil {
			return err
		}
		versions := []string{version}
		if version == "" {
			if versions, err = p.patchesOfKubernetes(ctx); err != nil {
				return err
			}
		}
		for i, version := range slices.Backward(versions) {
			p.Say("fetching Kubernetes " + version)
			if p.catalog.Source != (catalog.Source{}) && version == p.catalog.Kubernetes {
				if err := p.compareSource(ctx); err != nil {
					return err
				}
			}
			u, err := p.proxy.fetchKubernetes(ctx, version, needed)
			if i > 0 && unusable(err) {
				p.note("Kubernetes %s is newer, but %v", version, err)
				continue
			}
			if err != nil {
				return err
			}
			return errors.Join(p.moveKubernetes(ctx, u), p.setSource(catalog.Source{}))
		}
		return nil
	}
}

// patchesOfKubernetes returns the tree's version and the newer patches of its minor, oldest first. A tree with a source has a version that
// need not be on a proxy, and may be a pre-release: then the tree's is not among them.
func (p *preparation) patchesOfKubernetes(ctx context.Context) ([]string, error) {
	current := p.catalog.Kubernetes
	p.Say("looking for patches of " + current)
	release, _, pre := strings.Cut(current, "-")
	newer, err := p.proxy.newerPatches(ctx, kubernetes, release)
	if err != nil || !pre && p.catalog.Source == (catalog.Source{}) {
		return append([]string{current}, newer...), err
	}
	released, err := p.proxy.look(ctx, kubernetes+"@"+release)
	if err != nil {
		return nil, err
	}
	if len(released) == 1 && released[0].Error == nil {
		newer = append([]string{release}, newer...)
	}
	if len(newer) == 0 {
		return nil, fmt.Errorf("no module proxy has Kubernetes %s or a newer patch: name a version", release)
	}
	return newer, nil
}

// moveKubernetes moves all that belongs together.
func (p *preparation) moveKubernetes(ctx context.Context, u *upstream) error {
	from, to := p.catalog.Kubernetes, u.Version
	p.move("Kubernetes", from, to, "")
	p.moveStaging(from, u)
	p.docs[from], p.docs[module.Staging(from)] = to, module.Staging(to)

	wantGo, err := goVersion(u)
	if err != nil {
		return err
	}
	if wantGo != "" {
		if err := p.moveGo(ctx, wantGo, "Kubernetes "+to+" names it"); err != nil {
			return err
		}
	}
	if len(u.leftOut) > 0 {
		p.note("%s/go.mod is without staging modules of which nothing is compiled: %v", p.catalog.Module, u.leftOut)
	}
	if goversion.Compare("go"+u.want.Go, p.compileGo) > 0 {
		return fmt.Errorf("version %s of Kubernetes asks for Go %s or newer, and the Go that is available is %s", to, u.want.Go, p.compileGo)
	}
	if err := p.moveComponents(ctx, from, u); err != nil {
		return err
	}
	if err := p.moveGenerators(u); err != nil {
		return err
	}
	if err := p.moveExamples(u); err != nil {
		return err
	}
	if err := p.moveProjects(ctx, u); err != nil {
		return err
	}
	return p.moveTestImages(ctx, u)
}

// moveStaging records the staging modules that come and go.
func (p *preparation) moveStaging(from string, u *upstream) {
	if from == u.Version {
		return
	}
	gone := map[string]bool{}
	for path, version := range p.was.Versions {
		if version == module.Staging(from) {
			gone[path] = true
		}
	}
	p.move("staging modules", fmt.Sprintf("%s (%d)", module.Staging(from), len(gone)),
		fmt.Sprintf("%s (%d)", module.Staging(u.Version), len(u.staging)), "")
	var added []string
	for _, m := range u.staging {
		if !gone[m.Path] {
			added = append(added, m.Path)
		}
		delete(gone, m.Path)
	}
	for _, m := range u.leftOut {
		delete(gone, m.Path) // a note of its own names it
	}
	if len(added) > 0 {
		p.note("staging modules that are new: %s", strings.Join(added, ", "))
	}
	if len(gone) > 0 {
		p.note("staging modules that are gone: %s", strings.Join(slices.Sorted(maps.Keys(gone)), ", "))
	}
}

// moveComponents moves the components' module.
func (p *preparation) moveComponents(ctx context.Context, from string, u *upstream) error {
	var before wanted
	if current, err := p.proxy.fetch(ctx, requirement{Path: kubernetes, Version: from}); err == nil {
		if before, err = fromKubernetes(from, current[0].mod); err != nil {
			return err
		}
	} else if !unusable(err) {
		return err
	}
	p.before[p.catalog.Module], p.before[codegen.Module] = before, wanted{Versions: before.Versions}
	if err := p.followGoLine(u.want.Go); err != nil {
		return err
	}
	p.follow(u.want)
	if err := p.require(p.catalog.Module, u.want); err != nil {
		return err
	}
	return p.adaptImports(p.catalog.Module, append(u.staging, u.fetched))
}

// follow makes other modules follow what a Kubernetes selects.
func (p *preparation) follow(want wanted) {
	p.now = &wanted{Versions: maps.Clone(want.Versions), Go: want.Go}
	for _, m := range want.Replace {
		p.now.Versions[m.Path] = m.Version
	}
}

// examples is the folder of the module with programs that show how to use Kubernetes.
const examples = "examples"

// moveExamples moves the examples to the versions of the components, if the tree has any.
func (p *preparation) moveExamples(u *upstream) error {
	if _, err := os.Stat(p.file(examples + "/go.mod")); os.IsNotExist(err) {
		return nil
	}
	return p.require(examples, wanted{Go: u.want.Go, Godebug: u.want.Godebug, Own: []string{"k8s.io/client-go"}, Versions: p.now.Versions})
}

// moveProjects moves the other projects to the versions that Kubernetes names, or that fit.
func (p *preparation) moveProjects(ctx context.Context, u *upstream) error {
	names, err := namedVersions(u.Dir)
	if err != nil {
		return err
	}
	newerGo := goversion.Compare(goversion.Lang(p.compileGo), goversion.Lang(p.catalog.Go.Version)) > 0
	for _, pr := range p.projects {
		n, named := names[pr.name]
		switch {
		case named:
			err = p.moveProject(ctx, pr, n.version, n.why)
		// The older Go may have held it back.
		case newerGo && len(pr.modules) > 0 && (len(pr.images) > 0 || p.apart(pr)) && !p.patched(pr.folder):
			err = p.toNewestProject(ctx, pr, goversion.Lang(p.compileGo)+" compiles it")
		default:
			err = p.fitProject(ctx, pr)
		}
		if err == nil {
			err = p.followModules(ctx, pr)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
