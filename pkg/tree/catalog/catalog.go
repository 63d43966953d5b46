package catalog

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// File is where the catalog is declared, relative to the repository's root.
const File = "release/release.yaml"

// A Catalog is all that can be built. It is what release.yaml declares, in its order.
type Catalog struct {
	Module     string             `json:"module"`     // the components' module: a folder below the root, slash-separated
	ModulePath string             `json:"modulePath"` // what its go.mod calls it
	Kubernetes string             `json:"kubernetes"` // base version: the k8s.io/kubernetes that its go.mod requires
	Go         Toolchain          `json:"go"`
	Tags       []string           `json:"tags"` // build tags of every compile
	Sets       map[Set][]Platform `json:"sets"`
	Binaries   []Binary           `json:"binaries"`
	Images     []Image            `json:"images"`
	Registry   string             `json:"registry"` // where the images' names say they are
}

// A Toolchain is the Go that compiles, whatever is installed.
type Toolchain struct {
	Version string `json:"version"` // "go1.26.8"

	// Sums are the h1 sums of golang.org/toolchain@v0.0.1-VERSION.HOST, by host in dashed form ("linux-amd64").
	Sums map[string]string `json:"sums"`
}

// An Image is a container image for the platforms of the server set: a binary on a base, or what the base has.
type Image struct {
	Name    string   `json:"name"`              // in the registry, folders included
	Title   string   `json:"title"`             // for people
	Base    string   `json:"base,omitempty"`    // the folder below images/ that describes the base; empty: the binary is all there is
	Binary  string   `json:"binary,omitempty"`  // that is started; empty: the base has what is started
	With    []string `json:"with,omitempty"`    // other binaries that the image holds
	Version string   `json:"version,omitempty"` // its tag; empty: the release's
	User    string   `json:"user,omitempty"`    // UID:GID to run as; empty: root

	Set        Set      `json:"set,omitempty"`        // whose tarballs hold it: Test, or, if empty, Server
	Entrypoint []string `json:"entrypoint,omitempty"` // what is started, if it is not the binary by its own name
	Arguments  []string `json:"arguments,omitempty"`  // that it gets where nobody gives others
	SetUID     bool     `json:"setuid,omitempty"`     // the binary runs as root, whoever starts it
}

// File returns what the image's archive is called, without ".tar". Those for tests have their version in it, as a test may want
// two of them.
func (i Image) File() string {
	if i.In(Test) {
		return path.Base(i.Name) + "-" + i.Version
	}
	return path.Base(i.Name)
}

// Addon reports whether the image is of another project, and so has a version of its own.
func (i Image) Addon() bool { return i.Version != "" }

// In reports whether a set's tarballs hold the image.
func (i Image) In(set Set) bool { return cmp.Or(i.Set, Server) == set }

// Binaries returns the names of all binaries that the image holds, the one that is started first.
func (i Image) Binaries() []string {
	if i.Binary == "" {
		return nil
	}
	return append([]string{i.Binary}, i.With...)
}

// Load reads and validates the catalog of the repository at root. Everything that is wrong with it comes in one
// *InvalidError.
func Load(root string) (*Catalog, error) {
	file := filepath.Join(root, filepath.FromSlash(File))
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read catalog: %w", err)
	}
	p := &problems{file: file}
	c := check(root, parse(data, p), p)
	if err := p.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// IsComponent reports whether a binary is Kubernetes' own, of the components' module, and not of another project.
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

// ImagesFor returns the images that a set's tarball for a platform holds: nothing, if the set is not released for it, or no servers
// are.
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
