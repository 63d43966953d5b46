package target

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/make/describe"
	"slipway.build/pkg/make/inputs"
	"slipway.build/pkg/make/pack"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/source"
)

// Media types of artifacts.
const (
	gzipType    = "application/gzip"
	tarType     = "application/x-tar"
	programType = "application/octet-stream"
	textType    = "text/plain; charset=utf-8"
	debType     = "application/vnd.debian.binary-package"
	rpmType     = "application/x-rpm"
)

// A Tarball is a compressed tarball of a release.
type Tarball struct {
	Name    string
	Top     string           // the folder that all members are below; empty for the source tarball
	On      catalog.Platform // zero if it is the same for all
	Members []Member
	Also    []Target // what a release with this tarball has besides
	Version bool     // it has a file with the version of the release

	// list sets the members that Members cannot name, such as the files of a module. It may be nil.
	list func(b *Build, s *pack.Spec, at *pack.Place) error
}

// A Member is a part of a tarball: a file, or everything in a folder.
type Member struct {
	Of       Target // the target that makes it
	Artifact string // its name in release.json; empty if it is none

	From   string // ends in "/" if it is a folder
	To     string // below Top
	Unpack bool   // what is in the tar From comes below To
	Fill   bool   // replace placeholders in YAML files
	Last   bool   // packed after the rest, since it changes most often
}

// Source returns a member that is a copy of a source: a file, or a folder with a final slash.
func Source(name, to string, fill bool) Member {
	return Member{Of: &Sources{}, From: sources + "/" + name, To: to, Fill: fill}
}

// SourceTarball returns the tarball of the tree's sources.
func SourceTarball() *Tarball {
	return &Tarball{Name: catalog.SourceTarball, list: func(b *Build, s *pack.Spec, at *pack.Place) error {
		s.Tree, at.List = b.TreeID(), b.SourceList()
		at.Inputs, at.Code = b.Project.Sources.Files, source.Code.String()
		return nil
	}}
}

// kubernetes is the module that has the manifests of e2e tests.
const kubernetes = "k8s.io/kubernetes"

// PortableTestTarball returns the tarball of what the test set needs besides binaries: the manifests that upstream's e2e tests read, from
// the module that the tests are compiled from.
func PortableTestTarball() *Tarball {
	return &Tarball{
		Name: catalog.PortableTestTarball, Top: "kubernetes", Version: true,
		list: func(b *Build, s *pack.Spec, at *pack.Place) error {
			m, err := b.module(b.Catalog.Module)
			if err != nil {
				return err
			}
			s.Tree, at.Inputs = kubernetes+"@"+b.Catalog.Kubernetes, m.inputs
			at.List = pack.Module(b.Go, m.Dir, kubernetes, b.goFlags(m), "kubernetes",
				"test/e2e/testing-manifests", "test/kubemark", "LICENSE")
			return nil
		},
	}
}

// AddModuleFiles adds manifests of addons that are files of modules.
func (t *Tarball) AddModuleFiles(addons []catalog.Addon) {
	t.list = func(b *Build, s *pack.Spec, at *pack.Place) error {
		for _, a := range addons {
			if len(a.Files) == 0 {
				continue
			}
			m, err := b.module(a.Module)
			if err != nil {
				return err
			}
			s.Tree += fmt.Sprintf("%s %s@%s %q\n", a.Name, a.From, m.Version(a.From), a.Files)
			at.Inputs = append(at.Inputs, m.inputs...)
			at.List = at.List.And(pack.Module(b.Go, m.Dir, a.From, b.goFlags(m), path.Join(t.Top, AddonFolder(a)), a.Files...))
		}
		return nil
	}
}

// AddonFolder returns the folder of a tarball that has the manifests of an addon.
func AddonFolder(a catalog.Addon) string { return "addons/" + a.Name }

func (t *Tarball) ID() string { return "package " + t.Name }

// Needs lists the members' targets, and Also.
func (t *Tarball) Needs() []Target {
	needs := slices.Clone(t.Also)
	for _, m := range t.Members {
		needs = append(needs, m.Of)
	}
	return needs
}

// Binaries returns the binaries in the tarball, as files or in images.
func (t *Tarball) Binaries() []*Binary {
	var all []*Binary
	for _, m := range t.Members {
		switch of := m.Of.(type) {
		case *Binary:
			all = append(all, of)
		case *Image:
			all = append(all, of.Binaries...)
		}
	}
	return all
}

func (t *Tarball) path() string   { return path.Join(project.Tars, t.Name) }
func (t *Tarball) sha512() string { return path.Join(project.Sums512, t.Name) }

// Member returns the tarball as a member of another one.
func (t *Tarball) Member() Member {
	return Member{Of: t, Artifact: t.Name, From: t.path(), To: t.Name, Last: true}
}

// Actions packs the tarball.
func (t *Tarball) Actions(b *Build) ([]*action.Action, error) {
	s := pack.Spec{Name: t.Name, Top: t.Top, Time: b.Stamp.Date}
	at := pack.Place{Root: b.Root, Tarballs: project.Tars, Sums: project.Sums512, Cache: b.ArchiveCache()}
	for _, m := range t.Members {
		s.Members = append(s.Members, pack.Member{From: m.From, To: m.To, Unpack: m.Unpack, Fill: m.Fill, Last: m.Last})
	}
	if t.Version {
		s.Texts = []pack.Text{{Name: "version", Content: b.Stamp.Version + "\n"}}
	}
	if slices.ContainsFunc(t.Members, func(m Member) bool { return m.Fill }) {
		s.Values = values(b.Project)
	}
	if t.list != nil {
		if err := t.list(b, &s, &at); err != nil {
			return nil, err
		}
	}
	return one(pack.Action(s, at))
}

// values returns what replaces placeholders in manifests, see release/manifests/README.md.
func values(p *project.Project) []pack.Value {
	values := []pack.Value{{Placeholder: "__VERSION__", Value: p.Stamp.ImageTag()}, {Placeholder: "__REGISTRY__", Value: p.Catalog.Registry}}
	for _, im := range p.Catalog.Images {
		if !im.In(catalog.Test) && im.Versioned() {
			name := strings.ToUpper(strings.ReplaceAll(im.File(), "-", "_"))
			values = append(values, pack.Value{Placeholder: "__" + name + "__", Value: im.Version})
		}
	}
	return values
}

// Describe adds the tarball, and which artifacts are in it.
func (t *Tarball) Describe(_ *Build, d *describe.Spec) {
	a := release.Artifact{Name: t.Name, Kind: release.Tarball, Platform: t.On, MediaType: gzipType, Path: t.Name, Action: t.ID()}
	for _, m := range t.Members {
		if m.Artifact != "" {
			a.Of = append(a.Of, m.Artifact)
			a.Members = append(a.Members, release.Member{Path: path.Join(t.Top, m.To), Artifact: m.Artifact})
		}
	}
	d.AddFile(a, t.path(), t.sha512())
	if (t.On != catalog.Platform{}) && !slices.Contains(d.Release.Platforms, t.On) {
		d.Release.Platforms = append(d.Release.Platforms, t.On)
	}
}

// Inputs is the tarball of the tree and everything that it is made of.
type Inputs struct{ List *input.List }

func (*Inputs) ID() string      { return "package " + input.Tarball }
func (*Inputs) Needs() []Target { return nil }

// File returns the tarball.
func (*Inputs) File() (_, _ string) { return path.Join(project.Tars, input.Tarball), input.Tarball }

// Actions gathers the modules, and packs the tarball.
func (t *Inputs) Actions(b *Build) ([]*action.Action, error) {
	const modules = project.Stage + "/inputs/go"
	return []*action.Action{
		inputs.ModulesAction(b.Go, inputs.ModulesSpec{Modules: t.List.Modules, Output: modules}),
		inputs.Action(
			inputs.Spec{Name: input.Tarball, Time: b.Stamp.Date, Tree: b.TreeID(), Modules: modules, Debian: t.List.Debian},
			inputs.Place{
				Place: pack.Place{
					Root: b.Root, Tarballs: project.Tars, Sums: project.Sums512,
					List: b.SourceList(), Inputs: b.Project.Sources.Files, Code: source.Code.String(),
				},
				Debian: b.Settings.Debian,
			},
		),
	}, nil
}

// Describe adds the tarball.
func (t *Inputs) Describe(_ *Build, d *describe.Spec) {
	file, name := t.File()
	d.AddFile(release.Artifact{
		Name: name, Kind: release.Inputs, MediaType: tarType, Path: name, Action: t.ID(),
	}, file, path.Join(project.Sums512, name))
}
