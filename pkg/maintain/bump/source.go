package bump

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/make/gitsource"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// parseFrom turns a repository, and perhaps a version, into a step.
func (p *preparation) parseFrom(targets []string) ([]step, error) {
	request, err := gitsource.Parse(p.From)
	if err != nil {
		return nil, err
	}
	if len(targets) > 1 {
		return nil, badrequest.Mark(errors.New("a repository has one version of Kubernetes: name no more than that"))
	}
	for _, target := range targets {
		if !isKubernetes(target) {
			return nil, badrequest.Mark(fmt.Errorf("%q is not a version of Kubernetes: nothing else is made of a repository", target))
		}
		name, version, ok := strings.Cut(target, "@")
		if !ok && name != nameKubernetes {
			version = target
		}
		request.Version = version
	}
	return []step{func(ctx context.Context) error { return p.toSource(ctx, request) }}, nil
}

// toSource moves the tree to a version of Kubernetes whose modules are made of a commit.
func (p *preparation) toSource(ctx context.Context, request gitsource.Request) error {
	needed, err := p.needed()
	if err != nil {
		return err
	}
	p.Say("looking into " + tail.Redact(request.Repository))
	found, err := gitsource.Find(ctx, request)
	if err != nil {
		return err
	}
	if err := catalog.CheckKubernetes(found.Version); err != nil {
		return badrequest.Mark(err)
	}
	p.Notes = append(p.Notes, found.Notes...)
	switch {
	case found.Tagged && time.Now().Before(p.catalog.Embargo):
		p.note("no module proxy was asked for %s, since the tree is under embargo: if one has it with other code, the sums will differ",
			found.Version)
	case found.Tagged: // a proxy may have it, and then it is upstream's: the module cache must not get other code under this version
		p.Say("asking for Kubernetes " + found.Version)
		if _, err := p.proxy.fetch(ctx, requirement{Path: kubernetes, Version: found.Version}); err != nil && !unusable(err) {
			return err
		}
	}
	p.Say(fmt.Sprintf("making Kubernetes %s of %s", found.Version, found))
	dir := filepath.Join(workDir(p.Root), "modules")
	made, source, err := gitsource.Make(ctx, found.Source, found.Version, dir)
	if err != nil {
		return err
	}
	if err := p.checkUnchanged(made); err != nil {
		return err
	}
	if _, err := gitsource.Missing(p.hostGo, made); err != nil {
		return err
	}
	if err := gitsource.Install(ctx, p.hostGo, dir, made); err != nil {
		return err
	}
	p.sums = slices.Concat(made, p.sums)
	if err := addSums(p.proxy.dir, p.sums); err != nil {
		return err
	}
	u, err := p.proxy.fetchKubernetes(ctx, found.Version, needed)
	if err != nil {
		return err
	}
	return errors.Join(p.moveKubernetes(ctx, u), p.setSource(source))
}

// describe says where Kubernetes' modules come from.
func describe(s catalog.Source) string {
	switch {
	case s == catalog.Source{}:
		return "module proxy"
	case s.Ref == "":
		return fmt.Sprintf("%s#%.12s", tail.Redact(s.Repository), s.Commit)
	}
	return fmt.Sprintf("%s#%s (%.12s)", tail.Redact(s.Repository), s.Ref, s.Commit)
}

// checkUnchanged returns an error if the tree's go.sum files have one of some modules with other code.
func (p *preparation) checkUnchanged(made []module.Pinned) error {
	sums := map[module.Version]string{}
	for _, m := range made {
		sums[m.Version] = m.Sum
	}
	taken, err := gitsource.Taken(p.Root, p.catalog.Kubernetes)
	if err != nil {
		return err
	}
	for _, m := range taken {
		if sum := sums[m.Version]; sum != "" && m.Sum != "" && sum != m.Sum {
			return fmt.Errorf("the tree has %s with other code: its sum is %s there, and %s in the repository. A version has one code, for ever: "+
				"give the new one a version of its own", m.Version, m.Sum, sum)
		}
	}
	return nil
}

// placeSource puts the modules that the tree takes of its source into the module cache. Without
// them, a bump to another version is possible.
func (s *session) placeSource(ctx context.Context) error {
	if s.catalog.Source == (catalog.Source{}) {
		return nil
	}
	err := gitsource.Place(ctx, s.hostGo, s.Root, s.catalog, s.Say)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		s.Say(err.Error())
	}
	if s.sums, err = gitsource.Taken(s.Root, s.catalog.Kubernetes); err != nil {
		return err
	}
	return addSums(s.proxy.dir, s.sums)
}

// addSums adds sums of modules to the go.sum in a folder, so that the go command does not ask the checksum database.
func addSums(dir string, modules []module.Pinned) error {
	if len(modules) == 0 {
		return nil
	}
	name := filepath.Join(dir, "go.sum")
	old, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(name, module.WithSums(old, modules), 0o666)
}

// setSource writes where Kubernetes' modules come from.
func (p *preparation) setSource(s catalog.Source) error {
	p.move("source of Kubernetes", describe(p.catalog.Source), describe(s), "")
	return p.draft.SetSource(s)
}

// compareSource compares the modules that the tree has of its source with those of a module proxy, which replace them.
func (p *preparation) compareSource(ctx context.Context) error {
	p.Say("comparing Kubernetes " + p.catalog.Kubernetes + " with the module proxy's")
	proxies, err := p.proxies(ctx, p.sums)
	if err != nil {
		return err
	}
	from := describe(p.catalog.Source)
	var other []module.Pinned
	var names []string
	for _, m := range p.sums {
		if m.Sum != "" && proxies[m.Version] != m.Sum {
			other, names = append(other, m), append(names, m.Path)
		}
	}
	if len(other) == 0 {
		p.note("the module proxy has the same modules of %s as %s: their sums are equal", p.catalog.Kubernetes, from)
		return nil
	}
	p.note("the module proxy has other code of %s than %s: the sums of %s differ", p.catalog.Kubernetes, from, strings.Join(names, ", "))
	p.sums = nil
	return errors.Join(os.Remove(filepath.Join(p.proxy.dir, "go.sum")), p.forget(other))
}

// proxies fetches modules from the user's proxies, whatever the module cache has, and returns their sums.
func (p *preparation) proxies(ctx context.Context, modules []module.Pinned) (map[module.Version]string, error) {
	dir, err := os.MkdirTemp("", "slipway-proxy-")
	if err != nil {
		return nil, err
	}
	fresh := &proxy{dir: dir, run: runner(p.hostGo, "GOMODCACHE="+filepath.Join(dir, "modules"), "GOFLAGS=-mod=mod -modcacherw")}
	defer fresh.close()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module slipway.invalid\n"), 0o666); err != nil {
		return nil, err
	}
	var wanted []requirement
	for _, m := range modules {
		if m.Sum != "" {
			wanted = append(wanted, requirement(m.Version))
		}
	}
	fetched, err := fresh.fetch(ctx, wanted...)
	sums := map[module.Version]string{}
	for _, f := range fetched {
		sums[module.Version(f.requirement)] = f.Sum
	}
	return sums, err
}

// forget removes modules from the module cache and from the copy's go.sum files.
func (p *preparation) forget(modules []module.Pinned) error {
	if err := gitsource.Forget(p.hostGo, modules); err != nil {
		return err
	}
	files, err := gitsource.SumFiles(copyDir(p.Root))
	if err != nil {
		return err
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, module.WithoutSums(data, modules), 0o666); err != nil {
			return err
		}
	}
	return nil
}
