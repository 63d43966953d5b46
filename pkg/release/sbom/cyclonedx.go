package sbom

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"slipway.build/pkg/release"
)

// CycloneDX returns the document as CycloneDX 1.6, in JSON. See https://cyclonedx.org/docs/1.6/json/. It has no serial number, which
// would be another for each run.
func (d *Document) CycloneDX() ([]byte, error) {
	bom := cdx.NewBOM()
	root := d.Components[0].cyclonedx()
	bom.Metadata = &cdx.Metadata{
		Timestamp: d.Created.Format(time.RFC3339), Component: &root,
		Tools: &cdx.ToolsChoice{Components: &[]cdx.Component{{Type: cdx.ComponentTypeApplication, Name: "slipway"}}},
	}
	components := []cdx.Component{}
	for _, c := range d.Components[1:] {
		if c.Type != Patch { // they are in the pedigree of what they change
			components = append(components, c.cyclonedx())
		}
	}
	for _, f := range d.Files {
		components = append(components, cdx.Component{
			BOMRef: "file:" + f.Name, Type: cdx.ComponentTypeFile, Name: f.Name,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA1, Value: f.SHA1}, {Algorithm: cdx.HashAlgoSHA256, Value: f.SHA256}},
		})
	}
	bom.Components = &components
	dependencies := map[string][]string{}
	for _, r := range d.Relations {
		if r.Kind != Patches && !slices.Contains(dependencies[r.From.ID], r.To.ID) {
			dependencies[r.From.ID] = append(dependencies[r.From.ID], r.To.ID)
		}
	}
	for _, f := range d.Files {
		dependencies[root.BOMRef] = append(dependencies[root.BOMRef], "file:"+f.Name)
	}
	graph := []cdx.Dependency{}
	for _, c := range d.Components {
		if on := dependencies[c.ID]; len(on) > 0 {
			slices.Sort(on)
			graph = append(graph, cdx.Dependency{Ref: c.ID, Dependencies: &on})
		}
	}
	bom.Dependencies = &graph
	var b bytes.Buffer
	err := cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_6)
	return b.Bytes(), err
}

var cyclonedxTypes = map[Type]cdx.ComponentType{
	Product: cdx.ComponentTypePlatform, Archive: cdx.ComponentTypeFile, Program: cdx.ComponentTypeApplication,
	Image: cdx.ComponentTypeContainer,
	Layer: cdx.ComponentTypeFile, Library: cdx.ComponentTypeLibrary, Package: cdx.ComponentTypeLibrary, Compiler: cdx.ComponentTypeApplication,
	System: cdx.ComponentTypeOS, Sources: cdx.ComponentTypeFile,
}

func (c *Component) cyclonedx() cdx.Component {
	to := cdx.Component{BOMRef: c.ID, Type: cyclonedxTypes[c.Type], Name: c.Name, Version: c.Version, PackageURL: c.PURL,
		MIMEType: mime(c.MediaType)}
	var hashes []cdx.Hash
	if c.SHA256 != "" {
		hashes = append(hashes, cdx.Hash{Algorithm: cdx.HashAlgoSHA256, Value: c.SHA256})
	}
	if c.SHA512 != "" {
		hashes = append(hashes, cdx.Hash{Algorithm: cdx.HashAlgoSHA512, Value: c.SHA512})
	}
	if c.Excluded {
		to.Scope = cdx.ScopeExcluded
	}
	if len(hashes) > 0 {
		to.Hashes = &hashes
	}
	if c.License != "" && c.License != noAssertion {
		to.Licenses = &cdx.Licenses{{Expression: c.License}}
	}
	var properties []cdx.Property
	for _, p := range []cdx.Property{{Name: "slipway:go:sum", Value: c.Sum}, {Name: "slipway:go:replaces", Value: c.Replaces},
		{Name: "slipway:license:file", Value: c.LicenseFile}} {
		if p.Value != "" {
			properties = append(properties, p)
		}
	}
	if len(properties) > 0 {
		to.Properties = &properties
	}
	if len(c.Patches) > 0 {
		var patches []cdx.Patch
		for _, p := range c.Patches {
			patches = append(patches, cdx.Patch{Type: cdx.PatchTypeUnofficial, Diff: &cdx.Diff{URL: p.Name}})
		}
		to.Pedigree = &cdx.Pedigree{Patches: &patches}
	}
	if path, version, ok := strings.Cut(c.Replaces, "@"); ok && (len(c.Patches) > 0 || c.Override != "") {
		of := release.Input{Kind: release.Module, Name: path, Version: version}
		to.Pedigree = cmp.Or(to.Pedigree, &cdx.Pedigree{})
		to.Pedigree.Ancestors = &[]cdx.Component{{Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: of.PURL()}}
	}
	if c.Repository != "" {
		to.Pedigree = cmp.Or(to.Pedigree, &cdx.Pedigree{})
		to.Pedigree.Commits = &[]cdx.Commit{{UID: c.Commit, URL: c.Repository}}
		to.ExternalReferences = &[]cdx.ExternalReference{{Type: cdx.ERTypeVCS, URL: c.Repository}}
	}
	if c.Override != "" {
		to.Pedigree = cmp.Or(to.Pedigree, &cdx.Pedigree{})
		to.Pedigree.Notes = c.Override
	}
	return to
}

// mime drops the parameters of a media type, which the format has no place for.
func mime(mediaType string) string {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	return mediaType
}
