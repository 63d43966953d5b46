package bump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	goversion "go/version"

	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// A project is another project, whose programs a folder below images/ has.
type project struct {
	name    string // of the folder
	folder  string
	goMod   *module.Module  // of the folder
	goLine  string          // in the go.mod of the copy
	modules []string        // the project's own, which have one version
	version string          // of these; without modules, that of the image
	images  []catalog.Image // with the project's version
	apart   bool            // it is to have the modules that its authors chose
}

// at returns the project's modules in a version.
func (pr project) at(version string) []requirement {
	var modules []requirement
	for _, path := range pr.modules {
		modules = append(modules, requirement{Path: path, Version: version})
	}
	return modules
}

// folders lists the modules of other projects, in the catalog's order.
func folders(c *catalog.Catalog) []string { return c.GoModules()[1:] }

func (s *session) project(folder string) (project, error) {
	pr := project{name: path.Base(folder), folder: folder}
	m, err := module.Load(s.Root, folder)
	if err != nil {
		return pr, err
	}
	pr.goMod, pr.goLine = m, m.Go
	for _, r := range s.catalog.ProjectModules(m) {
		pr.modules, pr.version = append(pr.modules, r.Path), r.Version
	}
	pr.images = s.catalog.ProjectImages(folder)
	if len(pr.modules) == 0 && len(pr.images) > 0 {
		pr.version = pr.images[0].Version
	}
	return pr, nil
}

// versionOf returns the module version that an image's version names.
func versionOf(image string) string { return catalog.ModuleVersion(image) }

// A tooNewError says that a version of a project cannot be compiled.
type tooNewError string

func (e tooNewError) Error() string { return string(e) }

// moveProject moves a project to a version as images have it: 3.7.0-0 or v1.14.6.
func (p *preparation) moveProject(ctx context.Context, pr project, version, why string) error {
	to := versionOf(version)
	switch {
	case len(pr.modules) == 0:
		return p.setImages(pr, version, info{}, why)
	case to == pr.version && (len(pr.images) == 0 || pr.images[0].Version == version):
		return nil
	}
	modules, err := p.fetchProject(ctx, pr, to)
	if err != nil {
		return err
	}
	if needs := fromProject(modules).Go; goversion.Compare("go"+needs, p.compileGo) > 0 {
		return tooNewError(fmt.Sprintf("%s %s asks for Go %s, and %s compiles", pr.name, to, needs, p.compileGo))
	}
	p.before[pr.folder] = wanted{}
	if current, err := p.proxy.fetch(ctx, pr.at(pr.version)...); err == nil {
		was := pr
		was.apart = p.apart(pr)
		p.before[pr.folder] = p.wantedBy(was, current, p.was)
	} else if !unusable(err) {
		return err
	}
	if err := p.require(pr.folder, p.wantedBy(pr, modules, p.now)); err != nil {
		return err
	}
	if err := p.adaptImports(pr.folder, modules); err != nil {
		return err
	}
	if len(pr.images) == 0 {
		p.move(pr.name, pr.version, to, why)
		return nil
	}
	return p.setImages(pr, version, modules[0].info, why)
}

func (p *preparation) fetchProject(ctx context.Context, pr project, version string) ([]fetched, error) {
	p.Say("fetching " + pr.name + " " + version)
	return p.proxy.fetch(ctx, pr.at(version)...)
}

// fitProject moves a project that Kubernetes does not name only if the Go that compiles is too old for it now: to the newest version
// that this Go can compile. That may be older than this Kubernetes, and then does not always compile with its modules, as crictl v1.34.0
// did not with those of 1.35.4. So it keeps its own.
func (p *preparation) fitProject(ctx context.Context, pr project) error {
	switch {
	case goversion.Compare("go"+pr.goLine, p.compileGo) <= 0:
		return nil
	case len(pr.modules) == 0:
		return fmt.Errorf("%s/go.mod asks for Go %s, and %s compiles", pr.folder, pr.goLine, p.compileGo)
	case p.patched(pr.folder):
		return p.leaveOut(pr, "it needs Go "+pr.goLine+", and its patches are for "+pr.version)
	}
	older, err := p.proxy.older(ctx, pr.modules[0], pr.version)
	if err != nil {
		return err
	}
	pr.apart = true
	for _, k := range older {
		if k.GoVersion != "" && goversion.Compare("go"+k.GoVersion, p.compileGo) > 0 {
			continue
		}
		err := p.moveProject(ctx, pr, like(pr, k.Version), pr.version+" needs Go "+pr.goLine)
		if !unusable(err) {
			return err
		}
	}
	why := fmt.Sprintf("%s %s asks for Go %s, %s compiles, and no older version that is available fits", pr.name, pr.version, pr.goLine,
		p.compileGo)
	if !p.onlyAddons(pr) {
		return errors.New(why)
	}
	if err := p.leaveOutAddons(pr, why); err != nil {
		return err
	}
	return p.leaveOut(pr, why)
}

// onlyAddons reports whether a release holds a project's programs in images of addons alone.
func (p *preparation) onlyAddons(pr project) bool {
	for _, b := range p.catalog.Binaries {
		if b.Module == pr.folder && (len(b.Sets) > 0 || slices.ContainsFunc(p.catalog.Images, func(im catalog.Image) bool {
			return slices.Contains(im.Binaries(), b.Name) && !im.In(catalog.Addons)
		})) {
			return false
		}
	}
	return true
}

// leaveOutAddons removes the addons whose manifests name an image with a project's programs.
func (p *preparation) leaveOutAddons(pr project, why string) error {
	for _, a := range p.catalog.Addons {
		if _, err := os.Stat(p.file(a.Folder())); err != nil {
			continue // it is left out
		}
		names, err := p.imagesNamedBy(a)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(p.catalog.Binaries, func(b catalog.Binary) bool {
			return b.Module == pr.folder && slices.ContainsFunc(names, func(im catalog.Image) bool { return slices.Contains(im.Binaries(), b.Name) })
		}) {
			continue
		}
		if err := errors.Join(p.draft.DropAddon(a.Name), os.RemoveAll(p.file(a.Folder()))); err != nil {
			return err
		}
		p.move("addon "+a.Name, "", LeftOut, why)
	}
	return nil
}

// imagesNamedBy returns the images that manifests of an addon name.
func (p *preparation) imagesNamedBy(a catalog.Addon) (named []catalog.Image, err error) {
	err = filepath.WalkDir(p.file(a.Folder()), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		for _, im := range p.catalog.Images {
			if bytes.Contains(data, []byte("/"+im.Name+":")) {
				named = append(named, im)
			}
		}
		return err
	})
	return named, err
}

// leaveOut removes a project from the tree. The catalog loses it at the end: until then, positions of images count.
func (p *preparation) leaveOut(pr project, why string) error {
	p.leftOut = append(p.leftOut, pr.folder)
	for _, folder := range []string{pr.folder, "release/manifests/addons/" + pr.name} {
		if err := os.RemoveAll(p.file(folder)); err != nil {
			return err
		}
	}
	p.move(pr.name, pr.version, LeftOut, why)
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
