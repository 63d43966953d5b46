package plan

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/make/pack"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/stamp"
)

// A content is everything that a request makes, resolved once: code that uses it need not ask the catalog what belongs where. It
// lists each thing once, however many tarballs hold it.
type content struct {
	binaries []program
	notices  []notice
	bases    []baseOn
	images   []imageOn
	tarballs []tarball
	sets     []string    // that a release has tarballs of
	inputs   *input.List // nil unless they are packed
}

// A program is a binary for a platform.
type program struct {
	catalog.Binary
	on catalog.Platform
}

// A notice is a folder of license texts: of everything that some binaries of one module link, or of Debian packages.
type notice struct {
	name     string // of the group, and of the folder
	on       catalog.Platform
	binaries []catalog.Binary // if none, the notice is of the Debian packages in the bases
	bases    []string
	names    bool // the names of the licenses are needed, for images and bills of materials
	texts    bool // the texts are needed, for tarballs
}

// A baseOn is a base with files of Debian packages, for a platform.
type baseOn struct {
	name string
	on   catalog.Platform
}

// An imageOn is an image for a platform.
type imageOn struct {
	catalog.Image
	on       catalog.Platform
	binaries []catalog.Binary
	notices  []string // names of the notices for what it holds
}

// A tarball is a file of the release, and the artifacts in it.
type tarball struct {
	pack.Spec
	on      catalog.Platform // zero if it is the same for all
	members []release.Member
}

// A resolver fills a content.
type resolver struct {
	*Project
	content
	seen map[string]bool
}

// once reports whether this is the first call with these words.
func (r *resolver) once(words ...string) bool {
	key := strings.Join(words, " ")
	first := !r.seen[key]
	r.seen[key] = true
	return first
}

// resolve returns what a request makes.
func (p *Project) resolve(req Request) (*content, error) {
	r := &resolver{Project: p, seen: map[string]bool{}}
	platforms := p.platforms(req)
	switch {
	case req.Tars:
		r.release(platforms, req.TestSet)
	case req.Images:
		for _, on := range platforms {
			for _, im := range p.Catalog.ImagesFor(catalog.Server, on) {
				r.image(on, im)
			}
		}
		if len(r.images) == 0 {
			return nil, &NotForError{"an image", platforms, p.Catalog.Sets[catalog.Server]}
		}
	case req.Inputs:
	default:
		if err := r.components(req.What, platforms, len(req.Platforms) == 0 && !req.Everywhere); err != nil {
			return nil, err
		}
	}
	return &r.content, nil
}

// components adds the components that WHAT names, for each platform that they are released for. If the request names no platform
// (own), the developer's machine gets every component, released for it or not, as with `go build`.
func (r *resolver) components(what string, platforms []catalog.Platform, own bool) error {
	wanted := r.Catalog.Default()
	if what != "" {
		var err error
		if wanted, err = r.Catalog.Match(what); err != nil {
			return err
		}
	}
	built := map[string]bool{}
	for _, on := range platforms {
		for _, bin := range wanted {
			if own || slices.Contains(r.Catalog.PlatformsOf(bin), on) {
				r.program(on, bin)
				built[bin.Name] = true
			}
		}
	}
	for _, bin := range wanted {
		if what != "" && !built[bin.Name] {
			return &NotForError{bin.Name, platforms, r.Catalog.PlatformsOf(bin)}
		}
	}
	return nil
}

func (r *resolver) program(on catalog.Platform, bin catalog.Binary) {
	if r.once("binary", on.String(), bin.Module, bin.Name) {
		r.binaries = append(r.binaries, program{bin, on})
	}
}

// release adds the tarballs for some platforms, and those that are the same for all.
func (r *resolver) release(platforms []catalog.Platform, testSet bool) {
	sets := []catalog.Set{catalog.Server, catalog.Node, catalog.Client}
	if testSet {
		sets = append(sets, catalog.Test)
	}
	for _, set := range sets {
		if slices.ContainsFunc(platforms, func(on catalog.Platform) bool { return r.Catalog.SetHas(set, on) }) {
			r.sets = append(r.sets, string(set))
		}
	}
	r.tarballs = append(r.tarballs, tarball{Spec: pack.Spec{
		Name: catalog.SourceTarball, Time: r.Stamp.Date, Tree: r.treeID(),
	}})
	for _, on := range platforms {
		for _, set := range sets {
			if r.Catalog.SetHas(set, on) {
				r.setTarball(set, on)
			}
		}
	}
	r.tarballs = append(r.tarballs, tarball{Spec: pack.Spec{
		Name: catalog.ManifestsTarball, Top: "kubernetes", Time: r.Stamp.Date, Texts: r.versionFile(), Values: r.values(),
		Members: []pack.Member{{From: sourceDir + "/release/manifests/", To: "manifests", Fill: true}},
	}})
	full := tarball{Spec: pack.Spec{Name: catalog.FullTarball, Top: "kubernetes", Time: r.Stamp.Date, Texts: r.versionFile()}}
	for _, part := range []string{"README.md", "LICENSE", "docs/"} {
		full.Members = append(full.Members, pack.Member{From: slashed(sourceDir, part), To: strings.TrimSuffix(part, "/")})
	}
	r.tarballs = append(r.tarballs, full)
	if testSet && len(r.Catalog.Sets[catalog.Test]) > 0 {
		r.tarballs = append(r.tarballs, tarball{Spec: pack.Spec{
			Name: catalog.PortableTestTarball, Top: "kubernetes", Time: r.Stamp.Date, Texts: r.versionFile(),
			Tree: kubernetes + "@" + r.Catalog.Kubernetes,
		}})
	}
}

// setTarball adds kubernetes-SET-OS-ARCH.tar.gz and everything that it is made from.
func (r *resolver) setTarball(set catalog.Set, on catalog.Platform) {
	t := tarball{on: on, Spec: pack.Spec{Name: catalog.Tarball(set, on), Top: "kubernetes", Time: r.Stamp.Date}}
	hold := func(artifact, from, to string) {
		t.Members = append(t.Members, pack.Member{From: from, To: to})
		t.members = append(t.members, release.Member{Path: slashed(t.Top, to), Artifact: artifact})
	}
	binaries := r.Catalog.BinariesFor(set, on)
	for _, bin := range binaries {
		r.program(on, bin)
		hold(programName(on, bin), r.binary(on, bin), slashed(bin.FolderIn(set), on.Exe(bin.Name)))
	}
	group, shipped := r.shipped(set, on)
	if set == catalog.Client {
		r.names(group, on, shipped)
		r.projects(on, binaries, r.names)
		r.tarballs = append(r.tarballs, t)
		return
	}
	t.Texts = r.versionFile()
	r.texts(group, on, shipped)
	t.Members = append(t.Members, pack.Member{From: noticeDir(group, on) + "/", To: "LICENSES"})
	hold(catalog.SourceTarball, slashed(Tars, catalog.SourceTarball), catalog.SourceTarball)
	t.Members[len(t.Members)-1].Last = true
	if set == catalog.Server || set == catalog.Test {
		some := slices.Clone(binaries)
		var bases []string
		for _, im := range r.Catalog.ImagesFor(set, on) {
			made := r.image(on, im)
			some = append(some, made.binaries...)
			if r.hasPackages(im.Base) && !slices.Contains(bases, im.Base) {
				bases = append(bases, im.Base)
			}
			to := imageFolder(set, im)
			archive, tag := imageFiles(on, im)
			hold(archiveName(on, im), archive, slashed(to, path.Base(archive)))
			t.Members = append(t.Members, pack.Member{From: tag, To: slashed(to, path.Base(tag))})
		}
		for _, name := range r.projects(on, some, r.texts) {
			t.Members = append(t.Members, pack.Member{From: noticeDir(name, on) + "/", To: slashed("LICENSES", name)})
		}
		if len(bases) > 0 {
			t.Members = append(t.Members, pack.Member{From: r.debianNotice(set, on, bases) + "/", To: "LICENSES/debian"})
		}
	}
	if set == catalog.Server {
		t.Members = append(t.Members, pack.Member{From: sourceDir + "/release/manifests/addons/", To: "addons", Fill: true})
		t.Values = r.values()
	}
	r.tarballs = append(r.tarballs, t)
}

// imageFolder returns the folder of a tarball that holds an image.
func imageFolder(set catalog.Set, im catalog.Image) string {
	switch {
	case set == catalog.Test:
		return "test/images"
	case im.Addon():
		return "addons/images"
	}
	return "server/bin"
}

// image adds an image and everything that it is made from.
func (r *resolver) image(on catalog.Platform, im catalog.Image) imageOn {
	made := imageOn{Image: im, on: on}
	for _, name := range im.Binaries() {
		bin, _ := r.Catalog.Binary(name) // catalog.Load guarantees that it exists
		r.program(on, bin)
		made.binaries = append(made.binaries, bin)
	}
	if slices.ContainsFunc(made.binaries, r.Catalog.IsComponent) {
		group, shipped := r.shipped(cmp.Or(im.Set, catalog.Server), on)
		r.names(group, on, shipped)
		made.notices = append(made.notices, group)
	}
	made.notices = append(made.notices, r.projects(on, made.binaries, r.names)...)
	if r.hasPackages(im.Base) && r.once("base", on.String(), im.Base) {
		r.bases = append(r.bases, baseOn{im.Base, on})
	}
	if r.once("image", on.String(), im.File()) {
		r.images = append(r.images, made)
	}
	return made
}

// projects adds a notice for each other project that some binaries belong to, and returns their names in the catalog's order. A
// notice covers all programs of its project in a release for the platform, so it is the same whichever tarballs are requested.
func (r *resolver) projects(on catalog.Platform, some []catalog.Binary, notice func(string, catalog.Platform, []catalog.Binary)) []string {
	var names []string
	for _, bin := range r.Catalog.Binaries {
		needed := slices.ContainsFunc(some, func(b catalog.Binary) bool { return b.Module == bin.Module })
		if name := path.Base(bin.Module); needed && !r.Catalog.IsComponent(bin) && !slices.Contains(names, name) {
			names = append(names, name)
			notice(name, on, r.programsOf(bin.Module, on, catalog.Sets()...))
		}
	}
	return names
}

// shipped returns the components that share one LICENSES folder with those of a set, and its name. It covers every component that a
// release ships for the platform, so it is the same whichever tarballs are requested. The test set, which links much more, has its
// own.
func (r *resolver) shipped(set catalog.Set, on catalog.Platform) (name string, binaries []catalog.Binary) {
	name, sets := "components", []catalog.Set{catalog.Server, catalog.Node, catalog.Client}
	if set == catalog.Test {
		name, sets = "test", []catalog.Set{catalog.Test}
	}
	return name, r.programsOf(r.Catalog.Module, on, sets...)
}

// programsOf returns the binaries of a module that the tarballs of some sets hold for a platform, as files or in images.
func (p *Project) programsOf(module string, on catalog.Platform, sets ...catalog.Set) []catalog.Binary {
	held := map[string]bool{}
	for _, set := range sets {
		for _, bin := range p.Catalog.BinariesFor(set, on) {
			held[bin.Name] = true
		}
		for _, im := range p.Catalog.ImagesFor(set, on) {
			for _, name := range im.Binaries() {
				held[name] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(p.Catalog.Binaries), func(bin catalog.Binary) bool {
		return bin.Module != module || !held[bin.Name]
	})
}

// notice returns the notice of that name for a platform. The first call adds it.
func (r *resolver) notice(name string, on catalog.Platform, binaries []catalog.Binary) *notice {
	if r.once("notice", on.String(), name) {
		r.notices = append(r.notices, notice{name: name, on: on, binaries: binaries})
	}
	i := slices.IndexFunc(r.notices, func(n notice) bool { return n.name == name && n.on == on })
	return &r.notices[i]
}

// names adds the names of the licenses of everything that binaries link.
func (r *resolver) names(name string, on catalog.Platform, binaries []catalog.Binary) {
	r.notice(name, on, binaries).names = true
}

// texts adds the texts of the licenses. It adds the binaries, too, since their build information names the modules.
func (r *resolver) texts(name string, on catalog.Platform, binaries []catalog.Binary) {
	n := r.notice(name, on, binaries)
	n.texts, n.names = true, true // a release names the licenses, too
	for _, bin := range binaries {
		r.program(on, bin)
	}
}

// debianNotice adds the copyright files of Debian packages, and returns their folder.
func (r *resolver) debianNotice(set catalog.Set, on catalog.Platform, bases []string) string {
	name := "debian"
	if set == catalog.Test {
		name += "-test"
	}
	if r.once("notice", on.String(), name) {
		r.notices = append(r.notices, notice{name: name, on: on, bases: bases})
	}
	return noticeDir(name, on)
}

// versionFile returns the file that names a tarball's version.
func (p *Project) versionFile() []pack.Text {
	return []pack.Text{{Name: "version", Content: p.Stamp.Version + "\n"}}
}

// values returns what replaces placeholders in manifests, see release/manifests/README.md.
func (p *Project) values() []pack.Value {
	values := []pack.Value{{Placeholder: "__VERSION__", Value: p.Stamp.ImageTag()}, {Placeholder: "__REGISTRY__", Value: p.Catalog.Registry}}
	for _, im := range p.Catalog.Images {
		if im.In(catalog.Server) && im.Addon() {
			name := strings.ToUpper(strings.ReplaceAll(im.File(), "-", "_"))
			values = append(values, pack.Value{Placeholder: "__" + name + "__", Value: im.Version})
		}
	}
	return values
}

// hasPackages reports whether a base has files of Debian packages.
func (p *Project) hasPackages(base string) bool {
	if base == "" {
		return false
	}
	_, err := os.Stat(p.abs(slashed("images", base, debian.WishFile)))
	return err == nil
}

// platforms returns the platforms that a request makes something for.
func (p *Project) platforms(req Request) []catalog.Platform {
	switch {
	case len(req.Platforms) > 0:
		return req.Platforms
	case req.Everywhere, req.Inputs && !req.Tars:
		return p.Catalog.AllPlatforms()
	case req.Tars || req.Images:
		return []catalog.Platform{p.serverHost()}
	default:
		return []catalog.Platform{catalog.Host()}
	}
}

// serverHost returns the Linux platform of this machine, or linux/amd64 if servers are not built for its architecture.
func (p *Project) serverHost() catalog.Platform {
	host := catalog.Platform{OS: "linux", Arch: catalog.Host().Arch}
	if !p.Catalog.SetHas(catalog.Server, host) {
		host.Arch = "amd64"
	}
	return host
}

// treeID identifies what the source tarball holds: the sources, and the version file.
func (p *Project) treeID() string { return p.tree.ID + "\n" + string(stamp.Marshal(p.Stamp)) }

// roadOf returns the road that compiles a module's binaries: the requested one, or, for other projects' modules, always the local
// one.
func (p *Project) roadOf(module string) road.Road {
	if module == p.Catalog.Module {
		return p.road
	}
	return p.Roads.Local()
}

// binaryFolders returns the name, in caches, of the folders for binaries of roads, which make the same bytes.
func binaryFolders(roads ...road.Road) map[string]string {
	folders := map[string]string{}
	for _, r := range roads {
		folders[r.Info().Output+"/"] = "binaries/"
	}
	return folders
}

// binary returns the path of a binary.
func (p *Project) binary(on catalog.Platform, bin catalog.Binary) string {
	return slashed(p.roadOf(bin.Module).Info().Output, on.String(), on.Exe(bin.Name))
}

// abs returns the absolute form of a path relative to the root.
func (p *Project) abs(path string) string { return filepath.Join(p.Root, filepath.FromSlash(path)) }

// slashed joins folders and a name into a path in the form of package action.
func slashed(parts ...string) string { return strings.Join(parts, "/") }

// Names of artifacts; package release lists them.
func programName(on catalog.Platform, bin catalog.Binary) string {
	return slashed(on.String(), on.Exe(bin.Name))
}
func archiveName(on catalog.Platform, im catalog.Image) string {
	return slashed(on.String(), im.File()+".tar")
}

// Where parts of a release are made.
const (
	layoutAction = "image layout"
	sums512      = stage + "/sha512"
)

// imageFiles returns the files of an image that a tarball holds: the docker archive, and the file with its tag that Kubernetes puts
// beside it.
func imageFiles(on catalog.Platform, im catalog.Image) (archive, tag string) {
	name := slashed(Images, on.Arch, im.File())
	return name + ".tar", name + ".docker_tag"
}

// archiveSHA512 returns the file with the SHA-512 of an image's docker archive.
func archiveSHA512(on catalog.Platform, im catalog.Image) string {
	return slashed(sums512, archiveName(on, im))
}

// imagePart returns the folder with an image's part of the layout.
func imagePart(on catalog.Platform, im catalog.Image) string {
	return slashed(stage, "images", on.Dash(), im.File())
}

func noticeDir(name string, on catalog.Platform) string {
	return slashed(stage, "licenses", name, on.Dash())
}
func licenseNames(name string, on catalog.Platform) string {
	return slashed(stage, "spdx", name, on.Dash()+".json")
}
func moduleList(name string, on catalog.Platform) string {
	return slashed(stage, "modules", name, on.Dash()+".json")
}
