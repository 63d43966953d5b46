package catalog

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

func (c *checker) checkImages(images []declaredImage) {
	var names []text
	files := map[string]int{} // line of the image that has this name for its archive
	for _, d := range images {
		i := Image{
			Name: d.name.value, Title: d.title.value, Base: d.base.value, Binary: d.binary.value,
			With: values(c.once("binary", d.with)), Version: d.version.value, User: d.user.value,
		}
		names = append(names, d.name)
		if line, taken := files[i.File()]; taken && i.Name != "" && !slices.ContainsFunc(c.catalog.Images, func(o Image) bool { return o.Name == i.Name }) {
			c.add(d.name.line, "the archive of image %s would be %s.tar, as is that of the one on line %d", i.Name, i.File(), line)
		}
		files[i.File()] = d.name.line
		c.checkImage(d)
		c.catalog.Images = append(c.catalog.Images, i)
	}
	c.once("image", names)
}

// An image runs as numbers: what the names of users mean depends on its files.
var userAndGroup = regexp.MustCompile(`^[0-9]{1,9}(:[0-9]{1,9})?$`)

func (c *checker) checkImage(d declaredImage) {
	if d.name.value != "" {
		if _, err := name.NewRepository("registry.invalid/"+d.name.value, name.StrictValidation); err != nil {
			c.add(d.name.line, "%q is not a name for an image", d.name.value)
		}
	}
	if bases := filepath.Join(c.root, "images"); d.base.value != "" && !slices.Contains(folders(bases), d.base.value) {
		c.add(d.base.line, "there is no folder images/%s for the base%s", d.base.value,
			didYouMean(near(d.base.value, folders(bases))))
	}
	if d.user.value != "" && !userAndGroup.MatchString(d.user.value) {
		c.add(d.user.line, "%q is not a user and a group by number, like 65532:65532", d.user.value)
	}
	for _, declared := range append([]text{d.binary}, d.with...) {
		c.checkImageBinary(d, declared)
	}
}

// checkImageBinary checks that there is a binary for an image on all platforms of the server set, with the image's version.
func (c *checker) checkImageBinary(d declaredImage, declared text) {
	if declared.value == "" {
		return
	}
	b, ok := c.catalog.Binary(declared.value)
	if !ok {
		c.unknown(declared.line, "binary", declared.value, c.catalog.names())
		return
	}
	if len(b.Sets) > 0 && !b.In(Server) {
		c.add(declared.line, "binary %q is not in the server set, and images are made of that", b.Name)
		return
	}
	if !c.unsure {
		for _, p := range c.catalog.Sets[Server] {
			if !slices.Contains(c.catalog.PlatformsOf(b), p) {
				c.add(declared.line, "binary %q is not for %s, which images are made for", b.Name, p)
			}
		}
	}
	c.checkImageVersion(d, b)
}

// checkImageVersion checks that an image whose binary is another project's has that project's version, perhaps with a suffix.
func (c *checker) checkImageVersion(d declaredImage, b Binary) {
	if d.binary.value != b.Name || b.Module == "" || c.catalog.Module == "" {
		return
	}
	if c.catalog.IsComponent(b) {
		if d.version.line != 0 {
			c.add(d.version.line, "image %s: a component's image has the release's version, and none of its own", d.name.value)
		}
		return
	}
	if d.version.line == 0 {
		c.add(d.line, "image %s: it needs a version: binary %s is of another project", d.name.value, b.Name)
		return
	}
	if d.version.value == "" {
		return
	}
	if _, err := name.NewTag("registry.invalid/image:"+d.version.value, name.StrictValidation); err != nil {
		c.add(d.version.line, "%q is not a version for an image: letters, digits, and _ . -", d.version.value)
		return
	}
	m := c.modules[b.Module]
	if m == nil {
		return
	}
	version := m.version(b.Package)
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(d.version.value, "v"), strings.TrimPrefix(version, "v")); version != "" && (!ok || rest != "" && rest[0] != '-') {
		c.add(d.version.line, "image %s: %s is not of version %s, which %s requires", d.name.value, d.version.value, version, path.Join(b.Module, "go.mod"))
	}
}
