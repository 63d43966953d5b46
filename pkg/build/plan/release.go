package plan

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/source"
	"slipway.build/pkg/tree/stamp"
)

// release plans the tarballs of some platforms, and the checksums of them all.
func (b *builder) release(platforms []catalog.Platform, testSet bool) error {
	b.sourceTarball()
	sets := []catalog.Set{catalog.Server, catalog.Node, catalog.Client}
	if testSet {
		sets = append(sets, catalog.Test)
	}
	for _, platform := range platforms {
		for _, set := range sets {
			if !b.Catalog.SetHas(set, platform) {
				continue
			}
			if err := b.setTarball(set, platform); err != nil {
				return err
			}
		}
	}
	b.tarball(catalog.ManifestsTarball, "kubernetes/manifests", []content{{from: sourceDir + "/release/manifests/", fill: true}}, b.versionFile())
	b.tarball(catalog.FullTarball, "kubernetes", []content{
		{from: sourceDir + "/README.md"}, {from: sourceDir + "/LICENSE"}, {from: sourceDir + "/docs/", to: "docs"},
	}, b.versionFile())
	if testSet && len(b.Catalog.Sets[catalog.Test]) > 0 {
		if err := b.portableTestTarball(); err != nil {
			return err
		}
	}
	b.checksums()
	return nil
}

// setTarball plans kubernetes-SET-OS-ARCH.tar.gz and all that it is made from.
func (b *builder) setTarball(set catalog.Set, platform catalog.Platform) error {
	binaries := b.Catalog.BinariesFor(set, platform)
	if err := b.compile(platform, binaries); err != nil {
		return err
	}
	var holds []content
	for _, bin := range binaries {
		holds = append(holds, content{from: b.binary(platform, bin), to: slashed(bin.FolderIn(set), platform.Exe(bin.Name))})
	}
	if set != catalog.Client {
		licenses, err := b.licenses(set, platform)
		if err != nil {
			return err
		}
		holds = append(holds,
			content{from: licenses + "/", to: "LICENSES"},
			content{from: slashed(Tars, catalog.SourceTarball), to: catalog.SourceTarball})
	}
	if set == catalog.Server || set == catalog.Test {
		more, err := b.imageContent(set, platform)
		if err != nil {
			return err
		}
		holds = append(holds, more...)
	}
	if set == catalog.Server {
		holds = append(holds, content{from: sourceDir + "/release/manifests/addons/", to: "addons", fill: true})
	}
	var version []archive.Entry
	if set != catalog.Client {
		version = b.versionFile()
	}
	b.tarball(catalog.Tarball(set, platform), "kubernetes", holds, version)
	return nil
}

// imageContent is what only the tarballs of the server set and the test set have: images, and the licenses of other projects.
func (b *builder) imageContent(set catalog.Set, platform catalog.Platform) ([]content, error) {
	var holds []content
	for _, im := range b.Catalog.ImagesFor(set, platform) {
		files, err := b.image(platform, im)
		if err != nil {
			return nil, err
		}
		to := "server/bin"
		switch {
		case set == catalog.Test:
			to = "test/images"
		case im.Addon():
			to = "addons/images"
		}
		for _, file := range files {
			holds = append(holds, content{from: file, to: slashed(to, path.Base(file))})
		}
	}
	licenses, err := b.addonLicenses(set, platform)
	if err != nil {
		return nil, err
	}
	holds = append(holds, licenses...)
	if dir := b.debianLicenses(set, platform); dir != "" {
		holds = append(holds, content{from: dir + "/", to: "LICENSES/debian"})
	}
	return holds, nil
}

// versionFile is the file that says in a tarball which version it is.
func (p *Project) versionFile() []archive.Entry {
	return []archive.Entry{{Name: "kubernetes/version", Mode: 0o644, Data: []byte(p.Stamp.Version + "\n")}}
}

// content is a part of a tarball: a file, or (from ends in "/") what is in a folder.
type content struct {
	from string // relative to the root
	to   string // relative to the tarball's top folder; empty: the base name, or the top folder itself
	fill bool   // replace the placeholders in YAML files, see release/manifests/README.md
}

// placeholders are what manifests leave open for the release.
func (p *Project) placeholders() []string {
	replaced := []string{"__VERSION__", p.Stamp.ImageTag(), "__REGISTRY__", p.Catalog.Registry}
	for _, im := range p.Catalog.Images {
		if im.In(catalog.Server) && im.Addon() {
			name := strings.ToUpper(strings.ReplaceAll(im.File(), "-", "_"))
			replaced = append(replaced, "__"+name+"__", im.Version)
		}
	}
	return replaced
}

// tarball plans a tarball whose members are below a folder called top.
func (b *builder) tarball(name, top string, holds []content, extra []archive.Entry) {
	recipe := []string{"top " + top}
	var inputs []string
	for _, c := range holds {
		inputs = append(inputs, c.from)
		recipe = append(recipe, "member "+c.from+" "+c.to)
		if c.fill {
			recipe = append(recipe, b.placeholders()...)
		}
	}
	for _, e := range extra {
		recipe = append(recipe, fmt.Sprintf("extra %s %q", e.Name, e.Data))
	}
	b.pack(name, recipe, inputs, func(t *action.Task) ([]archive.Entry, error) {
		entries := slices.Clone(extra)
		for _, c := range holds {
			more, err := b.entries(t, c, top)
			if err != nil {
				return nil, err
			}
			entries = append(entries, more...)
		}
		return entries, nil
	})
}

// entries lists the members that a part of a tarball stands for.
func (b *builder) entries(t *action.Task, c content, top string) ([]archive.Entry, error) {
	if strings.HasSuffix(c.from, "/") {
		entries, err := folder(b.abs(c.from), path.Join(top, c.to), func(rel string) string { return t.Sum(c.from + rel) })
		if err != nil || !c.fill {
			return entries, err
		}
		return b.fill(entries)
	}
	to := c.to
	if to == "" {
		to = path.Base(c.from)
	}
	info, err := os.Stat(b.abs(c.from))
	if err != nil {
		return nil, err
	}
	return []archive.Entry{{Name: slashed(top, to), Mode: info.Mode().Perm(), Path: b.abs(c.from), Sum: t.Sum(c.from)}}, nil
}

// fill replaces the placeholders in YAML files.
func (b *builder) fill(entries []archive.Entry) ([]archive.Entry, error) {
	replacer := strings.NewReplacer(b.placeholders()...)
	for i, e := range entries {
		if path.Ext(e.Name) != ".yaml" {
			continue
		}
		data, err := os.ReadFile(e.Path)
		if err != nil {
			return nil, err
		}
		entries[i] = archive.Entry{Name: e.Name, Mode: e.Mode, Data: []byte(replacer.Replace(string(data)))}
	}
	return entries, nil
}

// folder lists the files and symbolic links below a folder as members below another; sum tells what is known of a file.
func folder(dir, top string, sum func(rel string) string) ([]archive.Entry, error) {
	var entries []archive.Entry
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		e := archive.Entry{Name: path.Join(top, rel), Mode: info.Mode() & (fs.ModeType | fs.ModePerm)}
		if d.Type() == fs.ModeSymlink {
			if e.Link, err = os.Readlink(name); err != nil {
				return err
			}
		} else {
			e.Path, e.Sum = name, sum(rel)
		}
		entries = append(entries, e)
		return nil
	})
	return entries, err
}

// sourceTarball plans kubernetes-src.tar.gz.
func (b *builder) sourceTarball() {
	recipe := []string{source.Recipe, "tree " + b.tree.ID, string(stamp.Marshal(b.Stamp))}
	b.pack(catalog.SourceTarball, recipe, b.tree.Files, func(*action.Task) ([]archive.Entry, error) { return b.sourceEntries(b.ctx) })
}

// sourceEntries are the members of the source tarball: the sources, and the file that says which version they are.
func (p *Project) sourceEntries(ctx context.Context) ([]archive.Entry, error) {
	entries, err := p.tree.Entries(ctx)
	return append(entries, archive.Entry{Name: stamp.File, Mode: 0o644, Data: stamp.Marshal(p.Stamp)}), err
}

// portableTestTarball plans what the test set needs besides binaries: the manifests that upstream's e2e tests read,
// from the very module they were compiled from.
func (b *builder) portableTestTarball() error {
	const kubernetes = "k8s.io/kubernetes"
	recipe := []string{kubernetes + "@" + b.Catalog.Kubernetes, b.Stamp.Version}
	module, err := b.module(b.Catalog.Module)
	if err != nil {
		return err
	}
	inputs := slices.Clone(module.inputs)
	b.pack(catalog.PortableTestTarball, recipe, inputs, func(*action.Task) ([]archive.Entry, error) {
		dir, err := b.moduleDir(b.ctx, module, kubernetes)
		if err != nil {
			return nil, err
		}
		entries := b.versionFile()
		for _, part := range []string{"test/e2e/testing-manifests", "test/kubemark", "LICENSE"} {
			info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(part)))
			if err != nil {
				return nil, err
			}
			if !info.IsDir() {
				entries = append(entries, archive.Entry{Name: "kubernetes/" + part, Mode: 0o644, Path: filepath.Join(dir, part)})
				continue
			}
			more, err := folder(filepath.Join(dir, filepath.FromSlash(part)), "kubernetes/"+part, func(string) string { return "" })
			if err != nil {
				return nil, err
			}
			entries = append(entries, more...)
		}
		return entries, nil
	})
	return nil
}
