package bump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	goversion "go/version"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"slipway.build/pkg/make/codegen"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// An upstream is a version of Kubernetes with what it names.
type upstream struct {
	got
	staging []got
	leftOut Unavailable // staging modules that are not available, and that nothing is compiled from
}

// getKubernetes fetches a version of Kubernetes with all of its staging modules. Those that neither Kubernetes nor needed, modules
// that the tree requires, names may be missing: a proxy may mirror only what was asked for, and nobody's compile asks for them.
func (p *proxy) getKubernetes(ctx context.Context, version string, needed []string) (*upstream, error) {
	main, err := p.fetch(ctx, requirement{Path: kubernetes, Version: version})
	if err != nil {
		return nil, err
	}
	u := &upstream{got: main[0]}
	want, err := fromKubernetes(version, u.mod)
	if err != nil {
		return nil, err
	}
	var staging []requirement
	for _, m := range want.Replace {
		if m.Version == StagingVersion(version) {
			staging = append(staging, m)
		}
	}
	u.staging, err = p.fetch(ctx, staging...)
	var missing *Unavailable
	if !errors.As(err, &missing) {
		return u, err
	}
	var without Unavailable
	for i, m := range missing.Modules {
		to := &u.leftOut
		if required(u.mod, m.Path) || slices.Contains(needed, m.Path) {
			to = &without
		}
		to.Modules, to.Reasons = append(to.Modules, m), append(to.Reasons, missing.Reasons[i])
	}
	return u, without.err()
}

// needed returns the paths of the modules that the components and the code generators of a tree require.
func needed(root string, c *catalog.Catalog) ([]string, error) {
	var paths []string
	for _, folder := range []string{c.Module, codegen.Module} {
		m, err := module.Load(root, folder)
		if errors.Is(err, fs.ErrNotExist) && folder == codegen.Module {
			continue // a tree without generators
		}
		if err != nil {
			return nil, err
		}
		for _, r := range m.Requires {
			paths = append(paths, r.Path)
		}
	}
	return paths, nil
}

// newestKubernetes finds the newest patch of a version's minor that can be had, with all modules that getKubernetes wants. It calls say
// with the versions that exist, but not whole.
func (p *proxy) newestKubernetes(
	ctx context.Context, current string, needed []string, say func(version string, why error),
) (*upstream, error) {
	format, patch, err := patchFormat(current)
	if err != nil {
		return nil, err
	}
	newer, err := p.patches(ctx, kubernetes, format, patch+1)
	if err != nil {
		return nil, err
	}
	for _, version := range slices.Backward(newer) {
		u, err := p.getKubernetes(ctx, version, needed)
		var unavailable *Unavailable
		if errors.As(err, &unavailable) {
			say(version, err)
			continue
		}
		return u, err
	}
	return p.getKubernetes(ctx, current, needed)
}

// patchFormat returns the format of a version's patches, and which one it is: v1.37.%d and 1 for v1.37.1.
func patchFormat(version string) (format string, patch int, err error) {
	last := strings.TrimPrefix(version, semver.MajorMinor(version)+".")
	if patch, err = strconv.Atoi(last); err != nil || semver.Canonical(version) != version {
		return "", 0, fmt.Errorf("%q is not a released version like v1.37.1", version)
	}
	return semver.MajorMinor(version) + ".%d", patch, nil
}

// toNewest moves the tree to the newest patch of its minor.
func (p *preparation) toNewest(ctx context.Context) error {
	p.Say("looking for patches of " + p.catalog.Kubernetes)
	needed, err := needed(p.Root, p.catalog)
	if err != nil {
		return err
	}
	u, err := p.proxy.newestKubernetes(ctx, p.catalog.Kubernetes, needed, func(version string, why error) {
		p.note("Kubernetes %s is newer, but %v", version, why)
	})
	if err != nil {
		return err
	}
	return p.moveKubernetes(ctx, u)
}

// toKubernetes moves the tree to a version of Kubernetes.
func (p *preparation) toKubernetes(version string) step {
	return func(ctx context.Context) error {
		p.Say("fetching Kubernetes " + version)
		needed, err := needed(p.Root, p.catalog)
		if err != nil {
			return err
		}
		u, err := p.proxy.getKubernetes(ctx, version, needed)
		if err != nil {
			return err
		}
		return p.moveKubernetes(ctx, u)
	}
}

// moveKubernetes moves all that belongs together.
func (p *preparation) moveKubernetes(ctx context.Context, u *upstream) error {
	from, to := p.catalog.Kubernetes, u.Version
	p.move("Kubernetes", from, to, "")
	p.moveStaging(from, u)
	p.docs[from], p.docs[StagingVersion(from)] = to, StagingVersion(to)

	wantGo, err := goVersion(u.got)
	if err != nil {
		return err
	}
	if wantGo != "" {
		if err := p.moveGo(ctx, wantGo, "Kubernetes "+to+" names it"); err != nil {
			return err
		}
	}
	want, err := fromKubernetes(to, u.mod)
	if err != nil {
		return err
	}
	if len(u.leftOut.Modules) > 0 {
		want.Replace = slices.DeleteFunc(want.Replace, func(m requirement) bool { return slices.Contains(u.leftOut.Modules, m) })
		p.note("%s/go.mod is without staging modules of which nothing is compiled: %v", p.catalog.Module, &u.leftOut)
	}
	if goversion.Compare("go"+want.Go, p.target) > 0 {
		return fmt.Errorf("version %s of Kubernetes asks for Go %s or newer, and the Go that can be had is %s", to, want.Go, p.target)
	}
	was, err := p.asked(ctx, func(m []got) (wanted, error) { return fromKubernetes(from, m[0].mod) },
		requirement{Path: kubernetes, Version: from})
	if err != nil {
		return err
	}
	p.before[p.catalog.Module], p.before[codegen.Module] = was, wanted{Versions: was.Versions}
	if err := p.followGoLine(want.Go); err != nil {
		return err
	}
	p.now = selection{Versions: maps.Clone(want.Versions), Go: want.Go}
	for _, m := range want.Replace {
		p.now.Versions[m.Path] = m.Version
	}
	if p.was, err = p.selection(p.catalog.Module); err != nil {
		return err
	}
	if err := p.require(p.catalog.Module, want); err != nil {
		return err
	}
	if err := p.adaptImports(p.catalog.Module, append(u.staging, u.got)); err != nil {
		return err
	}
	if err := p.moveGenerators(u, want); err != nil {
		return err
	}

	asked, err := kubeadmVersions(u.Dir)
	if err != nil {
		return err
	}
	listed, err := dependencies(u.Dir)
	if err != nil {
		return err
	}
	projects, err := p.projects()
	if err != nil {
		return err
	}
	for _, pr := range projects {
		switch {
		case asked[pr.name] != "":
			err = p.moveProject(ctx, pr, asked[pr.name], "kubeadm names it")
		case pr.name == "cni-plugins" && listed["cni"] != "":
			err = p.moveProject(ctx, pr, "v"+strings.TrimPrefix(listed["cni"], "v"), "Kubernetes names it")
		case len(pr.images) > 0 && len(pr.modules) > 0 && newerLanguage(p.target, p.catalog.Go.Version):
			err = p.toNewestProject(ctx, pr, goversion.Lang(p.target)+" compiles it") // it may have stayed behind for the old Go's sake
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
	return p.moveTestImages(ctx, from, u)
}

// newerLanguage reports whether a Go is of a newer minor than another.
func newerLanguage(a, b string) bool {
	return goversion.Compare(goversion.Lang(a), goversion.Lang(b)) > 0
}

// moveStaging records the staging modules that come and go.
func (p *preparation) moveStaging(from string, u *upstream) {
	old, err := p.read(p.catalog.Module + "/go.mod")
	if err != nil || from == u.Version {
		return // Load has read it
	}
	f, err := modfile.Parse("go.mod", old, nil)
	if err != nil {
		return
	}
	var before, after, came, went []string
	for _, r := range f.Replace {
		if r.New.Path == r.Old.Path && r.New.Version == StagingVersion(from) {
			before = append(before, r.Old.Path)
		}
	}
	for _, m := range u.staging {
		after = append(after, m.Path)
		if !slices.Contains(before, m.Path) {
			came = append(came, m.Path)
		}
	}
	for _, m := range u.leftOut.Modules {
		after = append(after, m.Path) // a note of its own names it
	}
	for _, path := range before {
		if !slices.Contains(after, path) {
			went = append(went, path)
		}
	}
	p.move("staging modules", fmt.Sprintf("%s (%d)", StagingVersion(from), len(before)),
		fmt.Sprintf("%s (%d)", StagingVersion(u.Version), len(u.staging)), "")
	for _, c := range []struct {
		paths []string
		what  string
	}{{came, "new"}, {went, "gone"}} {
		if len(c.paths) > 0 {
			p.note("staging modules that are %s: %s", c.what, strings.Join(c.paths, ", "))
		}
	}
}

// hostsAsked lists the hosts that people build on. release.yaml may have others.
var hostsAsked = []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"}

// moveGo makes a Go the one that compiles, with its sums for all hosts. If it is not available for this machine, the pinned one stays.
func (p *preparation) moveGo(ctx context.Context, version, why string) error {
	pinned := p.catalog.Go
	hosts := slices.Compact(slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(pinned.Sums)), hostsAsked...))))
	if version == pinned.Version && !slices.ContainsFunc(hosts, func(h string) bool { return pinned.Sums[h] == "" }) {
		return nil
	}
	p.Say("fetching " + version)
	var modules []requirement
	for _, host := range hosts {
		modules = append(modules, requirement{Path: "golang.org/toolchain", Version: "v0.0.1-" + version + "." + host})
	}
	all, err := p.proxy.fetch(ctx, modules...)
	var unavailable *Unavailable
	if err != nil && !errors.As(err, &unavailable) {
		return err
	}
	sums := map[string]string{}
	for _, g := range all {
		sums[strings.TrimPrefix(g.Version, "v0.0.1-"+version+".")] = g.Sum
	}
	var without []string
	for _, host := range hosts {
		if sums[host] == "" {
			without = append(without, host)
		}
	}
	if sums[toolchain.Host()] == "" {
		if version != pinned.Version {
			p.note("%s is not available for %s (%s), so %s stays: %s", version, toolchain.Host(), why, pinned.Version, unavailable.Reasons[0])
		}
		return nil
	}
	if version == pinned.Version && maps.Equal(sums, pinned.Sums) {
		return nil
	}
	if len(without) > 0 {
		p.note("%s is not available for %s: release.yaml has no sum for it, and people there need to install it themselves", version,
			strings.Join(without, ", "))
	}
	p.move("Go", pinned.Version, version, why)
	p.target = version
	p.docs[pinned.Version] = version
	return p.setGo(ctx, catalog.Toolchain{Version: version, Sums: sums})
}

// setGo writes the Go that compiles, and, if that is too old for slipway itself, the one that compiles slipway.
func (p *preparation) setGo(ctx context.Context, t catalog.Toolchain) error {
	if err := p.draft.SetToolchain("go", "", t); err != nil {
		return err
	}
	own := p.catalog.Own()
	language, err := p.ownLanguage()
	if err != nil {
		return err
	}
	if goversion.Compare(t.Version, language) < 0 {
		p.move("Go of slipway itself", "", own.Version, t.Version+" is too old for it")
		return p.draft.SetToolchain("toolchain", "The Go that compiles slipway itself, for which the components' is too old.", own)
	}
	if err := p.draft.DropToolchain("toolchain"); err != nil {
		return err
	}
	if goversion.Compare(t.Version, p.go_.Version) > 0 { // it may have to read a newer go.mod
		p.go_, err = toolchain.Find(ctx, toolchain.Pin{Version: t.Version, Sums: t.Sums}, p.Say)
	}
	return err
}

// ownLanguage returns the oldest Go that compiles slipway itself: go1.26.0. A tree without slipway's sources needs none.
func (p *preparation) ownLanguage() (string, error) {
	data, err := p.read("go.mod")
	if err != nil {
		return "", nil
	}
	f, err := modfile.Parse("go.mod", data, nil)
	if err != nil || f.Go == nil {
		return "", err
	}
	return "go" + f.Go.Version, nil
}

// followGoLine gives the go line of the components' module to the modules below images/ that have the same now: those with
// programs of our own. A project with patches stays in its version, see fitProject.
func (p *preparation) followGoLine(language string) error {
	old, err := p.goLine(p.catalog.Module)
	if err != nil || old == language {
		return err
	}
	p.move("go line", old, language, "")
	for _, folder := range p.folders() {
		line, err := p.goLine(folder)
		if err != nil {
			return err
		}
		if line != old {
			continue
		}
		if patched, err := p.patched(folder); err != nil {
			return err
		} else if patched {
			continue
		}
		name := folder + "/go.mod"
		data, err := p.read(name)
		if err != nil {
			return err
		}
		f, err := modfile.Parse(name, data, nil)
		if err != nil {
			return err
		}
		if err := f.AddGoStmt(language); err != nil {
			return err
		}
		if data, err = f.Format(); err != nil {
			return err
		}
		if err := p.write(name, data); err != nil {
			return err
		}
	}
	return nil
}

func (p *preparation) goLine(folder string) (string, error) {
	name := folder + "/go.mod"
	data, err := p.read(name)
	if err != nil {
		return "", err
	}
	f, err := modfile.Parse(name, data, nil)
	if err != nil || f.Go == nil {
		return "", err
	}
	return f.Go.Version, nil
}

// formerly has the IDs of test images that upstream has renamed.
var formerly = map[string]string{"GlibcDnsTesting": "JessieDnsutils"}

// moveTestImages gives the images for tests the names and versions that the tests of another version use.
func (p *preparation) moveTestImages(ctx context.Context, from string, u *upstream) error {
	if !slices.ContainsFunc(p.catalog.Images, func(im catalog.Image) bool { return im.In(catalog.Test) }) {
		return nil
	}
	now, err := p.proxy.fetch(ctx, requirement{Path: kubernetes, Version: from})
	if err != nil {
		return fmt.Errorf("which images the tests of %s use: %w", from, err)
	}
	before, err := testImages(now[0].Dir)
	if err != nil {
		return err
	}
	after, err := testImages(u.Dir)
	if err != nil {
		return err
	}
	for at, im := range p.catalog.Images {
		if !im.In(catalog.Test) {
			continue
		}
		b, _ := p.catalog.Binary(im.Binary)
		to := catalog.Image{}
		if im.Created.Equal(now[0].info.Time) && p.catalog.IsComponent(b) {
			to.Created = u.info.Time
		}
		id, new := successor(testImage{im.Name, im.Version}, before, after)
		if id == "" {
			p.note("image %s:%s stays: the tests of %s do not name it, or nothing in its place", im.Name, im.Version, u.Version)
			continue
		}
		if new.Name != im.Name {
			to.Name = new.Name
		}
		to.Version, to.Revision = new.Version, im.Revision
		if to.Name != "" || to.Version != im.Version || !to.Created.IsZero() {
			if err := p.draft.SetImage(at, to); err != nil {
				return err
			}
		}
		p.moveImage(im, to, "the tests name it")
	}
	return nil
}

// successor returns the image that tests use now under the ID of another one, with the ID, or nothing.
func successor(old testImage, before, after map[string]testImage) (id string, new testImage) {
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if before[id] != old {
			continue
		}
		names := []string{id, formerly[id]}
		for now, was := range formerly {
			if was == id {
				names = append(names, now)
			}
		}
		for _, name := range names {
			if new, ok := after[name]; ok {
				return name, new
			}
		}
	}
	return "", testImage{}
}

// moveImage records that an image moves. Documents name it as NAME:VERSION.
func (p *preparation) moveImage(im, to catalog.Image, why string) {
	old, new := im.Name+":"+im.Version, cmp.Or(to.Name, im.Name)+":"+to.Version
	if old == new {
		return
	}
	p.docs[old] = new
	name := filepath.Base(im.Name)
	if to.Name != "" {
		p.move("image "+name, im.Version, filepath.Base(to.Name)+" "+to.Version, why)
		return
	}
	p.move("image "+name, im.Version, to.Version, why)
}
