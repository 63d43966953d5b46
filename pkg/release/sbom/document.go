package sbom

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/package-url/packageurl-go"

	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/release"
)

//go:embed *.go
var sources embed.FS

// The code is in keys: it decides the bytes of documents.
var _ = recipe.Of("release/sbom", sources)

// A Document is a bill of materials: of the first component, and of what it consists of.
type Document struct {
	Name       string // of the file, without what says in which format it is
	Created    time.Time
	Components []*Component
	Relations  []Relation
	Files      []File // of the first component
}

// A Type says what a component is.
type Type string

// The types of components.
const (
	Product  Type = "product" // a release as a whole
	Archive  Type = "archive"
	Program  Type = "program"
	Image    Type = "image"
	Layer    Type = "layer"
	Library  Type = "library"
	Package  Type = "package" // of an operating system
	System   Type = "system"  // an operating system
	Compiler Type = "compiler"
	Sources  Type = "sources"
	Patch    Type = "patch"
)

// A Component is something that a release is, or consists of.
type Component struct {
	ID             string // unique in any document of any release, of letters, digits, "." and "-"
	Type           Type
	Name, Version  string
	PURL           string // package URL
	FileName       string
	MediaType      string
	SHA256, SHA512 string // of the file or manifest, in hex
	Sum            string // of a Go module, as go.sum has it
	License        string // SPDX expression; "" or NOASSERTION if it is not known
	LicenseFile    string // of tarballs, which has the terms
	Replaces       string // the Go module that it stands in for, as PATH@VERSION
	Patches        []*Component
	Override       string // why it is newer than upstream's, if the tree overrides it
	Repository     string // address of the git repository that it is made of, instead of a published module
	Commit         string // of Repository
	Excluded       bool   // it makes the release, and is not in it
}

// A Kind says how a component belongs to another.
type Kind string

// The kinds of relations.
const (
	Contains Kind = "contains"  // it is in it, as a file
	Links    Kind = "links"     // its code is linked into it
	MadeOf   Kind = "made of"   // it was made of it
	BuiltBy  Kind = "built by"  // it may have compiled it
	Patches  Kind = "patches"   // it was applied to it
	Describe Kind = "describes" // an index names it
)

// A Relation says that one component has to do with another.
type Relation struct {
	From, To *Component
	Kind     Kind
}

// A File is a file of a component that was not made here.
type File struct {
	Name         string
	SHA1, SHA256 string // in hex
}

// A builder turns artifacts and inputs into components, each of them once.
type builder struct {
	*Document
	release *release.Release
	inputs  map[string]*Component // by package URL
	systems map[string]*Component // of packages, by package URL
	made    map[string]*Component // artifacts by name, layers by digest
}

// Release returns the document of a whole release: every artifact and every input that it names.
func Release(r *release.Release) (*Document, error) {
	b := newBuilder(r, ofRelease)
	all := b.add(&Component{Type: Product, Name: "kubernetes", Version: r.Version, License: b.own()})
	for _, a := range r.Artifacts {
		c, err := b.artifact(a.Name)
		if err != nil {
			return nil, err
		}
		if c != nil && a.Path != "" || a.Kind == release.Index {
			b.relate(all, c, Contains)
		}
	}
	for _, in := range r.Inputs {
		switch in.Kind {
		case release.Toolchain:
			b.relate(all, b.add(&Component{Type: Compiler, Name: in.Name, Version: in.Version, PURL: in.PURL(), Sum: in.Sum,
				License: in.License}), BuiltBy)
		case release.Tool:
			b.relate(all, b.tool(in), BuiltBy)
		case release.Source:
			source, err := b.artifact(in.Name)
			if err != nil {
				return nil, err
			}
			b.relate(all, source, MadeOf)
		}
	}
	return b.done(), nil
}

// tool returns the component of slipway, with those of the modules that it links.
func (b *builder) tool(in release.Input) *Component {
	tool := b.add(&Component{Type: Compiler, Name: in.Name, Version: in.Version, PURL: in.PURL(), Sum: in.Sum, Replaces: in.Replaces,
		Excluded: true})
	for _, l := range in.Libraries {
		purl := l.Module().PURL()
		if b.inputs[purl] == nil {
			b.inputs[purl] = &Component{Type: Library, Name: l.Name, Version: l.Version, PURL: purl, Sum: l.Sum, Excluded: true}
		}
		b.relate(tool, b.inputs[purl], Links)
	}
	return tool
}

// Of returns the document of one artifact, such as an image for a platform, and of all that it consists of.
func Of(r *release.Release, artifact, name string) (*Document, error) {
	b := newBuilder(r, name)
	if _, err := b.artifact(artifact); err != nil {
		return nil, err
	}
	return b.done(), nil
}

// Source returns the document of the release's source tarball: its files, and the modules that programs are made of with them.
func Source(r *release.Release, files []File) (*Document, error) {
	b := newBuilder(r, ofSource)
	i := slices.IndexFunc(r.Inputs, func(in release.Input) bool { return in.Kind == release.Source })
	if i < 0 {
		return nil, fmt.Errorf("release %s names no sources", r.Version)
	}
	c, err := b.artifact(r.Inputs[i].Name)
	if err != nil {
		return nil, err
	}
	c.Type = Sources
	for _, in := range r.Inputs {
		if in.Kind == release.Module {
			b.relate(c, b.inputs[in.PURL()], Links)
		}
	}
	b.relate(c, b.standardLibrary(), Links)
	b.Files = slices.Clone(files) // done sorts them, and other documents have them, too
	return b.done(), nil
}

func newBuilder(r *release.Release, name string) *builder {
	b := &builder{
		Document: &Document{Name: name, Created: r.Date.UTC()}, release: r,
		inputs: map[string]*Component{}, systems: map[string]*Component{}, made: map[string]*Component{},
	}
	suites := map[string]*Component{}
	repository := repositories(r)
	modules := map[string][]*Component{} // that are patched, by path
	for _, in := range r.Inputs {
		c := &Component{Name: in.Name, Version: in.Version, PURL: in.PURL(), SHA256: in.SHA256, Sum: in.Sum, License: in.License,
			Replaces: in.Replaces}
		switch in.Kind {
		case release.Module:
			from := repository[unpatched(in)]
			c.Type, c.Repository, c.Commit = Library, from.Name, from.Commit
			if o, ok := r.Override(in); ok {
				c.Override = o.String()
			}
			if in.Patched() {
				modules[in.Name] = append(modules[in.Name], c)
			}
		case release.Debian:
			c.Type, c.LicenseFile = Package, "LICENSES/debian/"+in.Name+"/copyright"
			if in.Suite != "" && suites[in.Suite] == nil {
				suites[in.Suite] = debianSystem(in.Suite)
			}
			b.systems[c.PURL] = suites[in.Suite]
		default:
			continue
		}
		b.inputs[c.PURL] = c
	}
	for _, in := range r.Inputs {
		if in.Kind != release.Patch {
			continue
		}
		p := &Component{Type: Patch, Name: in.Name, FileName: in.Name, SHA256: in.SHA256}
		for _, path := range in.Changes {
			for _, m := range modules[path] {
				m.Patches = append(m.Patches, p)
			}
		}
	}
	return b
}

// repositories returns the git repositories that modules are made of, by PATH@VERSION. Another project may have the published module in
// another version.
func repositories(r *release.Release) map[string]release.Input {
	of := map[string]release.Input{}
	staging := "v0" + strings.TrimPrefix(r.Kubernetes, "v1") // upstream's rule for versions of staging modules
	for _, in := range r.Inputs {
		if in.Kind != release.Repository {
			continue
		}
		for _, path := range in.Changes {
			of[path+"@"+r.Kubernetes], of[path+"@"+staging] = in, in
		}
	}
	return of
}

// unpatched returns PATH@VERSION of a module, before patches.
func unpatched(in release.Input) string {
	if strings.HasPrefix(in.Replaces, in.Name+"@") {
		return in.Replaces
	}
	return in.Name + "@" + in.Version
}

// debianSystem returns the operating system that packages of a suite belong to: scanners look for faults of packages in lists for it.
func debianSystem(suite string) *Component {
	name, version, _ := strings.Cut(debian.Distribution(suite), "-")
	return &Component{Type: System, Name: cmp.Or(name, "debian"), Version: cmp.Or(version, suite)}
}

// own returns the license of the release's own sources.
func (b *builder) own() string {
	for _, in := range b.release.Inputs {
		if in.Kind == release.Source {
			return in.License
		}
	}
	return ""
}

// artifact returns the component of an artifact, with all that it consists of. Those that only speak about others have none.
func (b *builder) artifact(name string) (*Component, error) {
	if c := b.made[name]; c != nil {
		return c, nil
	}
	a, ok := b.release.Artifact(name)
	if !ok {
		return nil, fmt.Errorf("%s is not in release %s", name, b.release.Version)
	}
	types := map[release.Kind]Type{
		release.Tarball: Archive, release.Inputs: Archive, release.Archive: Archive,
		release.Binary: Program, release.Image: Image, release.Index: Image, release.Deb: Archive, release.RPM: Archive,
	}
	if types[a.Kind] == "" {
		return nil, nil
	}
	c := b.add(&Component{
		Type: types[a.Kind], Name: name, Version: b.release.Version, FileName: a.Path, MediaType: a.MediaType, SHA256: a.SHA256, SHA512: a.SHA512,
	})
	b.made[name] = c
	if a.Kind == release.Image || a.Kind == release.Index {
		c.PURL = imagePURL(a)
		_, c.Version = splitTag(name)
	}
	if a.Identity != nil {
		c.Version = a.Identity.Version
	}
	for _, l := range a.Layers {
		b.relate(c, b.layer(l), Contains)
	}
	kind := Contains
	if a.Kind == release.Index {
		kind = Describe
	}
	for _, part := range a.Of {
		of, err := b.artifact(part)
		if err != nil {
			return nil, err
		}
		if of != nil {
			b.relate(c, of, kind)
		}
	}
	for _, purl := range a.Inputs {
		in := b.inputs[purl]
		if in == nil {
			return nil, fmt.Errorf("%s has %s, which is no input of release %s", name, purl, b.release.Version)
		}
		if in.Type == Package {
			b.relate(c, in, Contains)
			if system := b.systems[purl]; system != nil {
				b.relate(c, system, Contains)
			}
		} else {
			b.relate(c, in, Links)
		}
	}
	if a.Kind == release.Binary {
		b.relate(c, b.standardLibrary(), Links)
	}
	return c, nil
}

func (b *builder) layer(l release.Layer) *Component {
	if c := b.made[l.Digest]; c != nil {
		return c
	}
	c := b.add(&Component{Type: Layer, Name: l.Digest, MediaType: l.MediaType, SHA256: strings.TrimPrefix(l.Digest, "sha256:")})
	b.made[l.Digest] = c
	return c
}

func (b *builder) standardLibrary() *Component {
	purl := b.release.StandardLibrary()
	if b.inputs[purl] == nil {
		c := &Component{Type: Library, Name: "stdlib", Version: strings.TrimPrefix(b.release.Go, "go"), PURL: purl}
		for _, in := range b.release.Inputs {
			if in.Kind == release.Toolchain {
				c.License = in.License
			}
		}
		b.inputs[purl] = c
	}
	return b.inputs[purl]
}

// relate adds a relation, and what belongs to it.
func (b *builder) relate(from, to *Component, kind Kind) {
	for _, c := range []*Component{from, to} {
		if c.ID == "" {
			b.add(c)
		}
	}
	b.Relations = append(b.Relations, Relation{from, to, kind})
}

// add adds a component, with its patches.
func (b *builder) add(c *Component) *Component {
	c.ID = id(c)
	b.Components = append(b.Components, c)
	for _, p := range c.Patches {
		b.relate(p, c, Patches)
	}
	return c
}

// done sorts all but the first component, and drops what is there twice.
func (b *builder) done() *Document {
	compare := func(x, y *Component) int { return strings.Compare(x.ID, y.ID) }
	slices.SortFunc(b.Components[1:], compare)
	key := func(r Relation) string { return r.From.ID + " " + string(r.Kind) + " " + r.To.ID }
	slices.SortFunc(b.Relations, func(x, y Relation) int { return strings.Compare(key(x), key(y)) })
	b.Relations = slices.CompactFunc(b.Relations, func(x, y Relation) bool { return key(x) == key(y) })
	slices.SortFunc(b.Files, func(x, y File) int { return strings.Compare(x.Name, y.Name) })
	return b.Document
}

// id names a component: readable, and different from all others by a digest of what it is.
func id(c *Component) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s\n%s", c.Type, c.Name, c.Version, c.PURL, c.SHA256))
	readable := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, path.Base(c.Name))
	return fmt.Sprintf("%s-%s-%s", c.Type, strings.Trim(readable, "-"), hex.EncodeToString(sum[:6]))
}

// imagePURL returns the package URL of an image or index, as https://github.com/package-url/purl-spec has them for the type oci.
func imagePURL(a release.Artifact) string {
	repository, tag := splitTag(a.Name)
	var qualifiers packageurl.Qualifiers
	if (a.Platform != platform.Platform{}) {
		qualifiers = append(qualifiers, packageurl.Qualifier{Key: "arch", Value: a.Platform.Arch})
	}
	qualifiers = append(qualifiers, packageurl.Qualifier{Key: "repository_url", Value: repository},
		packageurl.Qualifier{Key: "tag", Value: tag})
	return packageurl.NewPackageURL(packageurl.TypeOCI, "", path.Base(repository), "sha256:"+a.SHA256, qualifiers, "").ToString()
}

// splitTag splits an image's name at its last colon.
func splitTag(name string) (repository, tag string) {
	i := strings.LastIndex(name, ":")
	if i < 0 {
		return name, ""
	}
	return name[:i], name[i+1:]
}
