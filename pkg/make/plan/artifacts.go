package plan

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/make/describe"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/sbom"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/input"
)

// Media types of artifacts.
const (
	gzipType    = "application/gzip"
	tarType     = "application/x-tar"
	programType = "application/octet-stream"
	textType    = "text/plain; charset=utf-8"
)

// imageName returns the name of an image for one platform, indexName that of the index over all platforms: with the release's own
// registry and tag.
func (p *Project) imageName(on catalog.Platform, im catalog.Image) string {
	return p.imageTags(im, on.Arch)[0]
}
func (p *Project) indexName(im catalog.Image) string { return p.indexTags(im)[0] }

// describe returns what release.json says about a content before anything is made, and where to find the rest.
func (p *Project) describe(ctx context.Context, c *content) (describe.Spec, error) {
	s := describe.Spec{Layout: Layout, Output: slashed(stage, release.File), Release: release.Release{
		Format:     release.Format,
		Version:    p.Stamp.Version,
		Commit:     p.Stamp.Commit,
		TreeState:  p.Stamp.TreeState,
		Date:       p.Stamp.Date.UTC(),
		Kubernetes: p.Catalog.Kubernetes,
		Go:         p.Catalog.Go.Version,
		Compiler:   release.Compiler,
		Sets:       c.sets,
		Variables:  p.Settings.variables(),
	}}
	add := func(a release.Artifact) { s.Release.Artifacts = append(s.Release.Artifacts, a) }
	file := func(a release.Artifact, path, sha512 string) {
		add(a)
		s.Files = append(s.Files, describe.File{Artifact: a.Name, Path: path, SHA512: sha512})
	}
	held := c.held()
	for _, t := range c.tarballs {
		var of []string
		for _, m := range t.members {
			of = append(of, m.Artifact)
		}
		file(release.Artifact{
			Name: t.Name, Kind: release.Tarball, Platform: t.on, MediaType: gzipType, Path: t.Name, Of: of, Members: t.members,
			Action: "package " + t.Name,
		}, slashed(Tars, t.Name), slashed(sums512, t.Name))
		if (t.on != platform.Platform{}) && !slices.Contains(s.Release.Platforms, t.on) {
			s.Release.Platforms = append(s.Release.Platforms, t.on)
		}
	}
	if c.inputs != nil {
		file(release.Artifact{
			Name: input.Tarball, Kind: release.Inputs, MediaType: tarType, Path: input.Tarball, Action: "package " + input.Tarball,
		}, slashed(Tars, input.Tarball), slashed(sums512, input.Tarball))
	}
	for _, b := range c.binaries {
		name := programName(b.on, b.Binary)
		if held[name] {
			add(release.Artifact{
				Name: name, Kind: release.Binary, Platform: b.on, MediaType: programType, Action: compileAction(b.on, b.Binary),
				Flags: p.flags(b.on),
			})
		}
	}
	for _, programs := range p.programs(c) {
		s.Binaries = append(s.Binaries, programs.Output)
	}
	var indexes []release.Artifact
	for _, im := range c.images {
		var of []string
		for _, bin := range im.binaries {
			of = append(of, programName(im.on, bin))
		}
		name, archive := p.imageName(im.on, im.Image), archiveName(im.on, im.Image)
		add(release.Artifact{Name: name, Kind: release.Image, Platform: im.on, Of: of, Action: imageAction(im.on, im.Image)})
		image := describe.Image{Artifact: name, Part: imagePart(im.on, im.Image)}
		if p.hasPackages(im.Base) {
			image.Packages = []debian.Spec{p.packages(baseOn{im.Base, im.on})}
		}
		s.Images = append(s.Images, image)
		path, _ := imageFiles(im.on, im.Image)
		file(release.Artifact{
			Name: archive, Kind: release.Archive, Platform: im.on, MediaType: tarType, Of: []string{name}, Action: imageAction(im.on, im.Image),
		}, path, archiveSHA512(im.on, im.Image))
		index := p.indexName(im.Image)
		at := slices.IndexFunc(indexes, func(a release.Artifact) bool { return a.Name == index })
		if at < 0 {
			at = len(indexes)
			indexes = append(indexes, release.Artifact{Name: index, Kind: release.Index, Action: layoutAction})
		}
		indexes[at].Of = append(indexes[at].Of, name)
	}
	for _, a := range indexes {
		add(a)
	}
	for _, n := range c.notices {
		if n.names {
			s.Licenses = append(s.Licenses, licenseNames(n.name, n.on))
		}
	}
	patches, err := p.patchInputs()
	if err != nil {
		return s, err
	}
	_, seen, err := p.tree.Content(ctx)
	s.Release.Inputs = append([]release.Input{{Kind: release.Source, Name: catalog.SourceTarball, Tree: seen}}, p.toolchains()...)
	s.Release.Inputs = append(s.Release.Inputs, patches...)
	return s, err
}

// programs describes the files about the binaries that a release holds: one for each platform and project, and one for what only the test
// set has of it, so that the other is the same with and without the test set.
func (p *Project) programs(c *content) []describe.BinariesSpec {
	var all []describe.BinariesSpec
	held := c.held()
	for _, b := range c.binaries {
		name := programName(b.on, b.Binary)
		if !held[name] {
			continue
		}
		group := "components"
		if !p.Catalog.IsComponent(b.Binary) {
			group = path.Base(b.Module)
		}
		shipped := p.programsOf(b.Module, b.on, catalog.Server, catalog.Node, catalog.Client)
		if !slices.ContainsFunc(shipped, func(other catalog.Binary) bool { return other.Name == b.Name }) {
			group += "-test"
		}
		of := "binaries " + b.on.String() + " " + group
		i := slices.IndexFunc(all, func(s describe.BinariesSpec) bool { return s.Name == of })
		if i < 0 {
			i = len(all)
			all = append(all, describe.BinariesSpec{Name: of, Output: slashed(stage, "binaries", group, b.on.Dash()+".json")})
		}
		all[i].Files = append(all[i].Files, describe.File{Artifact: name, Path: p.binary(b.on, b.Binary)})
	}
	return all
}

// final describes release.json, of which a draft is made first, and what is made of the draft: the bills of materials, and the checksums
// of everything but release.json itself.
func (p *Project) final(c *content, draft describe.Spec) (describe.SBOMSpec, describe.FinalSpec) {
	sboms := describe.SBOMSpec{
		Draft: draft.Output, Source: slashed(Tars, catalog.SourceTarball), Folder: Tars,
		Artifacts: sbom.Artifacts(&draft.Release, describe.SBOMAction),
	}
	final := describe.FinalSpec{Draft: draft.Output, Folder: Tars, Artifacts: slices.Clone(sboms.Artifacts)}
	summed := c.tarballNames()
	for _, a := range final.Artifacts {
		summed = append(summed, a.Name)
	}
	slices.Sort(summed)
	for _, name := range []string{"SHA256SUMS", "SHA512SUMS"} {
		final.Artifacts = append(final.Artifacts, release.Artifact{
			Name: name, Kind: release.Sums, MediaType: textType, Path: name, Of: summed, Action: "checksums",
		})
	}
	for _, a := range final.Artifacts {
		final.Files = append(final.Files, describe.File{Artifact: a.Name, Path: slashed(Tars, a.Path)})
	}
	return sboms, final
}

// held returns the names of the programs that a release holds, in its tarballs or in images.
func (c *content) held() map[string]bool {
	held := map[string]bool{}
	for _, t := range c.tarballs {
		for _, m := range t.members {
			held[m.Artifact] = true
		}
	}
	for _, im := range c.images {
		for _, bin := range im.binaries {
			held[programName(im.on, bin)] = true
		}
	}
	return held
}

func (c *content) tarballNames() []string {
	var names []string
	for _, t := range c.tarballs {
		names = append(names, t.Name)
	}
	if c.inputs != nil {
		names = append(names, input.Tarball)
	}
	slices.Sort(names)
	return names
}

// toolchains returns the Go toolchains that may compile the release: one for each pinned host.
func (p *Project) toolchains() []release.Input {
	var inputs []release.Input
	for host, sum := range p.Catalog.Go.Sums {
		os, arch, _ := strings.Cut(host, "-")
		inputs = append(inputs, release.Input{
			Kind: release.Toolchain, Name: release.ToolchainModule, Version: "v0.0.1-" + p.Catalog.Go.Version + "." + host,
			Platform: platform.Platform{OS: os, Arch: arch}, Sum: sum,
		})
	}
	slices.SortFunc(inputs, func(a, b release.Input) int { return cmp.Compare(a.Version, b.Version) })
	return inputs
}

// variables returns the user's settings that decide bytes, by the variables' names.
func (s Settings) variables() map[string]string {
	set := map[string]string{
		"GOFLAGS": s.Build.GoFlags, "GOLDFLAGS": s.Build.LDFlags,
		"KUBE_DOCKER_REGISTRY": s.DockerRegistry, "KUBE_DOCKER_IMAGE_TAG": s.DockerImageTag,
	}
	if s.Build.Debug {
		set["DBG"] = "1"
	}
	for name, value := range set {
		if value == "" {
			delete(set, name)
		}
	}
	return set
}

// flags returns the flags of compiles that decide bytes, besides the stamp. They name no file of this machine.
func (p *Project) flags(on catalog.Platform) []string {
	return road.Spec{Platform: on, Tags: p.Catalog.Tags, Options: p.Settings.Build}.BuildFlags()
}

// compileAction names the compile of a binary, by any road, and imageAction the build of an image.
func compileAction(on catalog.Platform, bin catalog.Binary) string {
	return "compile " + on.String() + " " + bin.Name
}
func imageAction(on catalog.Platform, im catalog.Image) string {
	return "image " + on.String() + " " + im.File()
}
