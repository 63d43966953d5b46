package bump

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	goversion "go/version"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// A project is another project, whose programs a folder below images/ has.
type project struct {
	name    string // of the folder
	folder  string
	modules []string        // the project's own, which have one version
	version string          // of these; without modules, that of the image
	images  []catalog.Image // with the project's version
}

// folders lists the modules of other projects, in the catalog's order.
func (p *preparation) folders() []string { return folders(p.catalog) }

func folders(c *catalog.Catalog) []string {
	var found []string
	for _, b := range c.Binaries {
		if !c.IsComponent(b) && !slices.Contains(found, b.Module) {
			found = append(found, b.Module)
		}
	}
	return found
}

func (p *preparation) projects() ([]project, error) { return projects(p.Root, p.catalog) }

func projects(root string, c *catalog.Catalog) ([]project, error) {
	var found []project
	for _, folder := range folders(c) {
		pr, err := projectIn(root, c, folder)
		if err != nil {
			return nil, err
		}
		found = append(found, pr)
	}
	return found, nil
}

func projectIn(root string, c *catalog.Catalog, folder string) (project, error) {
	pr := project{name: path.Base(folder), folder: folder}
	m, err := module.Load(root, folder)
	if err != nil {
		return pr, err
	}
	add := func(r module.Requirement) {
		if !slices.Contains(pr.modules, r.Path) && r.Folder() == "" {
			pr.modules, pr.version = append(pr.modules, r.Path), r.Version
		}
	}
	for _, b := range c.Binaries {
		if b.Module != folder {
			continue
		}
		for _, im := range c.Images {
			if im.Binary == b.Name && im.Addon() && !im.In(catalog.Test) {
				pr.images = append(pr.images, im)
			}
		}
		if provider, ok := m.Provider(b.Package); ok {
			add(provider)
		}
	}
	if len(pr.modules) > 0 || len(pr.images) == 0 {
		return pr, nil
	}
	// A main package of our own, such as CoreDNS's: the project is what it requires in the image's version.
	for _, r := range m.Requires {
		if r.Direct && r.Version == versionOf(pr.images[0].Version) {
			add(r)
		}
	}
	if len(pr.modules) == 0 {
		pr.version = pr.images[0].Version
	}
	return pr, nil
}

// versionOf returns the module version that an image's version names: v3.7.0 for 3.7.0-0, where the last number counts builds of
// the image.
func versionOf(image string) string {
	version, _, _ := strings.Cut(image, "-")
	return "v" + strings.TrimPrefix(version, "v")
}

// moveProject moves a project to a version as images have it: 3.7.0-0 or v1.14.6.
func (p *preparation) moveProject(ctx context.Context, pr project, version, why string) error {
	if len(pr.modules) == 0 {
		return p.setImages(pr, version, time.Time{}, "", why)
	}
	return p.moveModules(ctx, pr, version, why)
}

// A tooNewError says that a version of a project cannot be compiled.
type tooNewError struct{ name, version, needs, have string }

func (e *tooNewError) Error() string {
	return fmt.Sprintf("%s %s asks for Go %s, and %s compiles", e.name, e.version, e.needs, e.have)
}

func (p *preparation) moveModules(ctx context.Context, pr project, version, why string) error {
	to := versionOf(version)
	if to == pr.version && (len(pr.images) == 0 || pr.images[0].Version == version) {
		return nil
	}
	modules, err := p.getProject(ctx, pr, to)
	if err != nil {
		return err
	}
	want := fromProject(modules)
	if goversion.Compare("go"+want.Go, p.target) > 0 {
		return &tooNewError{pr.name, to, want.Go, p.target}
	}
	was, now, err := p.components()
	if err != nil {
		return err
	}
	p.shareWith(pr, &want, now)
	var current []requirement
	for _, path := range pr.modules {
		current = append(current, requirement{Path: path, Version: pr.version})
	}
	before := func(found []got) (wanted, error) {
		w := fromProject(found)
		p.shareWith(pr, &w, was)
		return w, nil
	}
	if p.before[pr.folder], err = p.asked(ctx, before, current...); err != nil {
		return err
	}
	if err := p.require(pr.folder, want); err != nil {
		return err
	}
	if err := p.adaptImports(pr.folder, modules); err != nil {
		return err
	}
	if len(pr.images) == 0 {
		p.move(pr.name, pr.version, to, why)
		return nil
	}
	revision := ""
	if origin := modules[0].info.Origin; origin.VCS == "git" {
		revision = origin.Hash
	}
	return p.setImages(pr, version, modules[0].info.Time, revision, why)
}

func (p *preparation) setImages(pr project, version string, created time.Time, revision, why string) error {
	for _, im := range pr.images {
		if im.Version == version {
			continue
		}
		at := slices.IndexFunc(p.catalog.Images, func(is catalog.Image) bool { return is.Name == im.Name && is.Version == im.Version })
		if err := p.draft.SetImage(at, catalog.Image{Version: version, Created: created, Revision: revision}); err != nil {
			return err
		}
		p.docs[im.Name+":"+im.Version] = im.Name + ":" + version
		p.move(pr.name, im.Version, version, why)
	}
	return nil
}

func (p *preparation) getProject(ctx context.Context, pr project, version string) ([]got, error) {
	var modules []requirement
	for _, path := range pr.modules {
		modules = append(modules, requirement{Path: path, Version: version})
	}
	p.Say("fetching " + pr.name + " " + version)
	return p.proxy.fetch(ctx, modules...)
}

// asked returns what modules in versions of the tree ask of its go.mod. Of what is not available, nothing is known.
func (p *preparation) asked(ctx context.Context, of func([]got) (wanted, error), modules ...requirement) (wanted, error) {
	found, err := p.proxy.fetch(ctx, modules...)
	var unavailable *Unavailable
	if errors.As(err, &unavailable) {
		return wanted{}, nil
	}
	if err != nil {
		return wanted{}, err
	}
	return of(found)
}

// fromProject returns what a go.mod must require so that a project is compiled from what its own go.mod files select. Of the
// versions that several of them require, the newest counts, as for the go command.
//
// Replacements by folders are for the project's own repository. They do not count outside, where the requirement does.
func fromProject(modules []got) wanted {
	w := wanted{Versions: map[string]string{}, Replace: []requirement{}}
	var order []string
	require := func(path, version string) {
		if w.Versions[path] == "" {
			order = append(order, path)
		}
		if semver.Compare(version, w.Versions[path]) > 0 {
			w.Versions[path] = version
		}
	}
	for _, m := range modules {
		w.Own = append(w.Own, m.Path)
		require(m.Path, m.Version)
		if m.mod.Go != nil && (w.Go == "" || goversion.Compare("go"+m.mod.Go.Version, "go"+w.Go) > 0) {
			w.Go = m.mod.Go.Version
		}
		for _, r := range m.mod.Require {
			require(r.Mod.Path, r.Mod.Version)
		}
		for _, r := range m.mod.Replace {
			same := func(old requirement) bool { return old.Path == r.New.Path }
			if r.New.Path == r.Old.Path && r.New.Version != "" && r.Old.Version == "" && !slices.ContainsFunc(w.Replace, same) {
				w.Replace = append(w.Replace, r.New)
			}
		}
	}
	for _, path := range order {
		w.Add = append(w.Add, requirement{Path: path, Version: w.Versions[path]})
	}
	return w
}

// fitProject moves a project that Kubernetes does not name only if the Go that compiles is too old for it now: to the newest version
// that this Go can compile.
func (p *preparation) fitProject(ctx context.Context, pr project) error {
	line, err := p.goLine(pr.folder)
	if err != nil || goversion.Compare("go"+line, p.target) <= 0 {
		return err
	}
	if len(pr.modules) == 0 {
		return fmt.Errorf("%s/go.mod asks for Go %s, and %s compiles", pr.folder, line, p.target)
	}
	if patched, err := p.patched(pr.folder); err != nil {
		return err
	} else if patched { // by patches that were made for this version
		return p.leaveOut(pr, "it needs Go "+line+", and its patches are for "+pr.version)
	}
	older, err := p.proxy.older(ctx, pr.modules[0], pr.version)
	if err != nil {
		return err
	}
	for _, k := range older {
		if k.GoVersion != "" && goversion.Compare("go"+k.GoVersion, p.target) > 0 {
			continue
		}
		err := p.moveModules(ctx, pr, like(pr, k.Version), pr.version+" needs Go "+line)
		var unavailable *Unavailable
		var tooNew *tooNewError
		if errors.As(err, &unavailable) || errors.As(err, &tooNew) {
			continue
		}
		return err
	}
	return fmt.Errorf("%s %s asks for Go %s, %s compiles, and no older version that can be had fits", pr.name, pr.version, line, p.target)
}

// leaveOut removes a project from the tree. The catalog loses it at the end: until then, positions of images count.
func (p *preparation) leaveOut(pr project, why string) error {
	p.leftOut = append(p.leftOut, pr.folder)
	for _, folder := range []string{pr.folder, "release/manifests/addons/" + pr.name} {
		if err := os.RemoveAll(filepath.Join(p.copy, filepath.FromSlash(folder))); err != nil {
			return err
		}
	}
	p.move(pr.name, pr.version, "left out", why)
	return nil
}

// like writes a version as the project's images have theirs, with v or without; without images, with v.
func like(pr project, version string) string {
	version = strings.TrimPrefix(version, "v")
	if len(pr.images) > 0 && !strings.HasPrefix(pr.images[0].Version, "v") {
		return version
	}
	return "v" + version
}

// older returns versions of a module before one, newest first. Besides those in the proxy's list, which is not complete, it asks for
// patches of the five minors before.
func (p *proxy) older(ctx context.Context, path, version string) ([]versionInfo, error) {
	listed, err := p.look(ctx, "-versions", path+"@"+version)
	if err != nil {
		return nil, err
	}
	var versions []string
	if len(listed) > 0 {
		versions = listed[0].Versions
	}
	major, minor, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(version), "v"), ".")
	var n int
	if _, err := fmt.Sscanf(minor, "%d", &n); err != nil {
		return nil, fmt.Errorf("%s@%s: %w", path, version, err)
	}
	for m := n; m >= max(0, n-5); m-- {
		found, err := p.patches(ctx, path, fmt.Sprintf("v%s.%d.%%d", major, m), 0)
		if err != nil {
			return nil, err
		}
		versions = append(versions, found...)
	}
	semver.Sort(versions)
	var asked []string
	for _, v := range slices.Backward(slices.Compact(versions)) {
		if semver.Prerelease(v) == "" && semver.Compare(v, version) < 0 {
			asked = append(asked, path+"@"+v)
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	found, err := p.look(ctx, asked[:min(len(asked), 20)]...)
	return slices.DeleteFunc(found, func(k versionInfo) bool { return k.Error != nil }), err
}
