package target

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/make/describe"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/release/sbom"
	"slipway.build/pkg/tree/catalog"
)

// A Release is the description of a release, release.json, with the documents that belong to it: bills of materials, checksums, provenance.
type Release struct {
	Of   []Target
	Sets []catalog.Set // that it has tarballs of
	tree string        // digest of all files that a build may read in the tree, see [source.Tree.Content]
	tool release.Input // slipway

	described *release.Release
}

func (*Release) ID() string        { return release.File }
func (t *Release) Needs() []Target { return t.Of }

// NewRelease returns the description of a release of some artifacts.
func NewRelease(ctx context.Context, p *project.Project, of []Target, sets []catalog.Set) (*Release, error) {
	_, tree, err := p.Sources.Content(ctx)
	if err != nil {
		return nil, err
	}
	tool, err := p.Slipway(ctx, tree)
	return &Release{Of: of, Sets: sets, tree: tree, tool: tool}, err
}

// Description returns the content of release.json without digests. Actions must have been called.
func (t *Release) Description() *release.Release { return t.described }

// Actions makes a draft of release.json, then what is made of the draft, and checksums of everything but release.json itself.
func (t *Release) Actions(b *Build) ([]*action.Action, error) {
	draft, err := t.draft(b)
	if err != nil {
		return nil, err
	}
	sboms := describe.SBOMSpec{
		Draft: draft.Output, Source: path.Join(project.Tars, catalog.SourceTarball), Folder: project.Tars,
		Artifacts: sbom.Artifacts(&draft.Release, describe.SBOMAction),
	}
	final := describe.FinalSpec{Draft: draft.Output, Folder: project.Tars, Artifacts: slices.Clone(sboms.Artifacts)}
	var summed []describe.File
	for _, f := range draft.Files {
		if strings.HasPrefix(f.Path, project.Tars+"/") {
			summed = append(summed, f)
		}
	}
	for _, a := range sboms.Artifacts {
		f := describe.File{Artifact: a.Name, Path: path.Join(project.Tars, a.Path)}
		final.Files, summed = append(final.Files, f), append(summed, f)
	}
	var names []string
	for _, f := range summed {
		names = append(names, f.Artifact)
	}
	slices.Sort(names)
	for _, name := range []string{"SHA256SUMS", "SHA512SUMS"} {
		final.Artifacts = append(final.Artifacts, release.Artifact{
			Name: name, Kind: release.Sums, MediaType: textType, Path: name, Of: names, Action: "checksums",
		})
		final.Files = append(final.Files, describe.File{Artifact: name, Path: path.Join(project.Tars, name)})
	}
	all := draft.Release
	all.Artifacts = append(all.Artifacts, final.Artifacts...)
	t.described = &all
	return []*action.Action{
		describe.Draft(b.Root, draft, b.FIPS),
		describe.SBOMs(b.Root, sboms),
		describe.Checksums(b.Root, project.Tars, summed, b.Unchanged),
		describe.Action(b.Root, final),
		describe.Provenance(b.Root, project.Tars, provenance.Files(&all)),
	}, nil
}

// draft returns what release.json says before anything is made, and where to find the rest.
func (t *Release) draft(b *Build) (describe.Spec, error) {
	d := describe.Spec{Output: path.Join(project.Stage, release.File), Release: release.Release{
		Format:     release.Format,
		Version:    b.Stamp.Version,
		Commit:     b.Stamp.Commit,
		TreeState:  b.Stamp.TreeState,
		Date:       b.Stamp.Date.UTC(),
		Kubernetes: b.Catalog.Kubernetes,
		Go:         b.Catalog.Go.Version,
		Compiler:   release.Compiler,
		Embargo:    b.Catalog.Embargo,
		Variables:  b.Settings.Variables(),
	}, Declared: b.Catalog.Licenses.DeclaredPackages()}
	if g := b.Catalog.Go; g.FIPS != "" {
		d.Release.FIPS = &release.FIPS{Version: g.FIPS, Projects: g.FIPSProjects, Environment: g.FIPSEnvironment}
	}
	for _, o := range b.Catalog.Overrides {
		d.Release.Overrides = append(d.Release.Overrides, release.Override(o))
	}
	for _, set := range t.Sets {
		d.Release.Sets = append(d.Release.Sets, string(set))
	}
	for _, of := range t.Of {
		if a, ok := of.(Artifact); ok {
			a.Describe(b, &d)
		}
	}
	patches, err1 := b.PatchInputs()
	repository, err2 := b.SourceInputs()
	d.Release.Inputs = slices.Concat(
		[]release.Input{{Kind: release.Source, Name: catalog.SourceTarball, Tree: t.tree}, t.tool}, b.Toolchains(), patches, repository)
	return d, errors.Join(err1, err2)
}
