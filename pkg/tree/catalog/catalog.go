package catalog

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"slipway.build/pkg/mechanism/debian"
)

// File is where the catalog is declared, relative to the repository's root.
const File = "release/release.yaml"

// KubeadmDefaults is the file with what kubeadm does by default, relative to the repository's root.
const KubeadmDefaults = "cmd/kubeadm/defaults/kubeadm.yaml"

// imageRepository is the registry in it.
var imageRepository = regexp.MustCompile(`(?m)^imageRepository: *"?([^\s"]+)`)

// A Catalog is all that can be built. It is what release.yaml declares, in its order.
//
// Fields with a tag `file` are those of release.yaml: see decoder.
type Catalog struct {
	Form       string             `json:"form,omitempty" file:"optional"` // of release.yaml: see checkForm
	Module     string             `json:"module" file:"required"`         // the components' module: a folder below the root, slash-separated
	ModulePath string             `json:"modulePath"`                     // what its go.mod calls it
	Kubernetes string             `json:"kubernetes"`                     // base version: the k8s.io/kubernetes that its go.mod requires
	Go         Toolchain          `json:"go" file:"required"`
	Tools      Toolchain          `json:"toolchain,omitzero" file:"optional"` // compiles slipway itself, if that needs another Go: see Own
	Tags       []string           `json:"tags" file:"optional"`               // build tags of every compile
	Sets       map[Set][]Platform `json:"sets" file:"required" each:"set %s"`
	Binaries   []Binary           `json:"binaries" file:"required" each:"a binary"`
	Images     []Image            `json:"images" file:"optional" each:"an image"`
	Addons     []Addon            `json:"addons,omitempty" file:"optional" each:"an addon"`
	Packages   []Package          `json:"packages,omitempty" file:"optional" each:"a package"`
	Maintainer string             `json:"maintainer,omitempty" file:"optional"` // of packages: "NAME <ADDRESS>"
	Registry   string             `json:"registry" file:"required"`             // the images' names begin with it

	// BasePackages are those that packages may require though no repository of the release has them.
	BasePackages BasePackages `json:"basePackages,omitzero" file:"optional"`

	// Embargo is the time until which nothing of the tree may leave this machine; zero: there is none.
	Embargo time.Time `json:"embargo,omitzero" file:"optional"`

	// Licenses says which licenses a release may have, and declares those that nothing recognizes.
	Licenses Licenses `json:"licenses,omitzero" file:"optional"`

	// Overrides are modules that are newer than upstream selected.
	Overrides []Override `json:"overrides,omitempty" file:"optional" each:"an override"`

	// Debian says where Debian packages are that mirrors have removed.
	Debian Debian `json:"debian,omitzero" file:"optional"`

	// Vulnerabilities says which known ones stop the tree's release.
	Vulnerabilities Vulnerabilities `json:"vulnerabilities,omitzero" file:"optional"`

	// Source is the commit that Kubernetes' modules are made of, if they do not come from a module proxy.
	Source Source `json:"source,omitzero" file:"optional"`

	// Cache is a server that keeps results of this tree's actions, unless the user names another.
	Cache SharedCache `json:"cache,omitzero" file:"optional"`
}

// Debian is where the Debian packages of images are.
type Debian struct {
	Snapshot string `json:"snapshot" file:"required"` // an archive of Debian's past, such as debian.PublicSnapshot: see DebianSnapshot
}

// A Source is a commit of Kubernetes' repository, or of a fork.
type Source struct {
	Repository string `json:"repository" file:"required"`    // a URL that git can fetch, or an absolute folder
	Ref        string `json:"ref,omitempty" file:"optional"` // the tag or branch that was asked for; empty: the commit itself
	Commit     string `json:"commit" file:"required"`        // in hex
	Tree       string `json:"tree" file:"required"`          // of the commit, in hex
}

// DebianSnapshot returns the address of an archive of Debian's past: the public one, unless the tree declares another.
func (c *Catalog) DebianSnapshot() string { return cmp.Or(c.Debian.Snapshot, debian.PublicSnapshot) }

// Vulnerabilities says which known vulnerabilities keep the tree's release from being signed, and who knows them.
type Vulnerabilities struct {
	FailOn  string `json:"failOn" file:"required"`            // the least severity, one of Severities
	DB      string `json:"db" file:"required"`                // a database of Go's vulnerabilities: file:///FOLDER or https://HOST
	Tracker string `json:"tracker,omitempty" file:"optional"` // of Debian's: an address, a file relative to the tree, or off
}

// Severities lists how bad vulnerabilities are, from the least.
func Severities() []string { return []string{"low", "medium", "high", "critical"} }

// A SharedCache is a server of the Remote Execution API.
type SharedCache struct {
	URL  string   `json:"url" file:"required"`               // grpcs://cache.example/main
	Keys []string `json:"keys" file:"required" each:"a key"` // files with the public keys whose results count, relative to the tree
}

// Own returns the Go that compiles slipway itself. It is the components' unless they need one that is too old for slipway.
func (c *Catalog) Own() Toolchain {
	if c.Tools.Version != "" {
		return c.Tools
	}
	return Toolchain{Version: c.Go.Version, Sums: c.Go.Sums}
}

// A Toolchain is the Go that compiles, whatever is installed.
type Toolchain struct {
	Version string `json:"version" file:"required"` // "go1.26.8"

	// Sums are the h1 sums of golang.org/toolchain@v0.0.1-VERSION.HOST, by host in dashed form ("linux-amd64").
	Sums map[string]string `json:"sums" file:"required" each:"the sum of %s"`

	// FIPS is the version of Go's own cryptographic module that components are compiled with, such as v1.0.0; empty: the one of Version.
	FIPS string `json:"fips,omitempty" file:"optional"`

	FIPSProjects    bool `json:"fipsProjects,omitempty" file:"optional"`    // so are the programs of other projects
	FIPSEnvironment bool `json:"fipsEnvironment,omitempty" file:"optional"` // images and units ask for FIPS mode
}

// An Image is a container image for the platforms of the server set: a binary on a base, or what the base has.
type Image struct {
	Name  string `json:"name" file:"required"`  // in the registry, folders included
	Title string `json:"title" file:"required"` // for people to read
	// the folder in images/ that describes the base; empty: the image holds nothing but binaries
	Base   string   `json:"base,omitempty" file:"optional"`
	Binary string   `json:"binary,omitempty" file:"optional"` // the program that is started; empty: it is in the base
	With   []string `json:"with,omitempty" file:"optional"`   // other binaries that the image holds
	User   string   `json:"user,omitempty" file:"optional"`   // UID:GID to run as; empty: root

	// Images of other projects say by themselves what and when they are, so that they are the same in every release.
	// Components' images leave all four out: they have the version and the commit of the release.
	Version  string    `json:"version,omitempty" file:"optional"`  // its tag
	Created  time.Time `json:"created,omitzero" file:"optional"`   // when that version was built
	Revision string    `json:"revision,omitempty" file:"optional"` // its commit, if that is known
	Source   string    `json:"source,omitempty" file:"optional"`   // https URL of the repository with the commit

	Set        Set      `json:"set,omitempty" file:"optional"`        // the set whose tarballs hold it: Test, Addons, or, if empty, Server
	Entrypoint []string `json:"entrypoint,omitempty" file:"optional"` // the command, if it is not the binary alone
	Arguments  []string `json:"arguments,omitempty" file:"optional"`  // defaults, which a Pod can replace
	SetUID     bool     `json:"setuid,omitempty" file:"optional"`     // the binary runs as root for every user
}

// File returns the name of the image's archive, without ".tar". Images for tests that have a version of their own have it there, as a
// test may need two versions.
func (i Image) File() string {
	if i.In(Test) && i.Versioned() {
		return path.Base(i.Name) + "-" + i.Version
	}
	return path.Base(i.Name)
}

// Versioned reports whether the image has a version of its own, as those of other projects and most for tests have.
func (i Image) Versioned() bool { return i.Version != "" }

// In reports whether a set's tarballs hold the image.
func (i Image) In(set Set) bool { return cmp.Or(i.Set, Server) == set }

// Binaries returns the names of all binaries that the image holds, beginning with the one that is started.
func (i Image) Binaries() []string {
	if i.Binary == "" {
		return nil
	}
	return append([]string{i.Binary}, i.With...)
}

// Load reads and validates the catalog of the repository at root. It returns all problems at once, as an *InvalidError.
func Load(root string) (*Catalog, error) {
	file := filepath.Join(root, filepath.FromSlash(File))
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read catalog: %w", err)
	}
	p := &problems{file: file}
	c, d := decode(data, p)
	check(root, c, d)
	if err := p.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// IsComponent reports whether a binary is of the components' module, and not of another project.
func (c *Catalog) IsComponent(b Binary) bool { return b.Module == c.Module }

// Binary returns the binary of that name.
func (c *Catalog) Binary(name string) (Binary, bool) {
	for _, b := range c.Binaries {
		if b.Name == name {
			return b, true
		}
	}
	return Binary{}, false
}

// ImagesFor returns the images that a set's tarball for a platform holds: none if the set or the server set is not released
// for it.
func (c *Catalog) ImagesFor(set Set, p Platform) []Image {
	if !c.SetHas(Server, p) || !c.SetHas(set, p) {
		return nil
	}
	var images []Image
	for _, i := range c.Images {
		b, ok := c.Binary(i.Binary)
		if i.In(set) && (i.Binary == "" || ok && slices.Contains(c.PlatformsOf(b), p)) {
			images = append(images, i)
		}
	}
	return images
}
