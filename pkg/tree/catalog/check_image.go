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
			Set: c.imageSet(d), Entrypoint: values(d.entrypoint), Arguments: values(d.arguments), SetUID: d.setuid,
		}
		called := d.name
		if i.In(Test) && i.Name != "" {
			called.value += ":" + i.Version // tests want several versions of one
		}
		names = append(names, called)
		same := func(o Image) bool { return o.Name == i.Name && (!i.In(Test) || o.Version == i.Version) }
		if line, taken := files[i.File()]; taken && i.Name != "" && !slices.ContainsFunc(c.catalog.Images, same) {
			c.add(d.name.line, "the archive of image %s would be %s.tar, as is that of the one on line %d", i.Name, i.File(), line)
		}
		files[i.File()] = d.name.line
		c.checkImage(d)
		c.catalog.Images = append(c.catalog.Images, i)
	}
	c.once("image", names)
}

// imageSet returns the set that an image is declared to be in, or "" for the server set. Only tests have images besides.
func (c *checker) imageSet(d declaredImage) Set {
	if d.set.value == "" {
		return ""
	}
	set, ok := c.set(d.set)
	switch {
	case !ok || set == Server:
		return ""
	case set != Test:
		c.add(d.set.line, "image %s: set %s has no images; server and test have", d.name.value, set)
		return ""
	}
	if _, declared := c.catalog.Sets[Test]; !declared && !c.unsure {
		c.add(d.set.line, "image %s: set %s has no platforms in this file", d.name.value, set)
	}
	return set
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
	switch {
	case d.binary.line == 0 && (d.base.line == 0 || d.entrypoint == nil && d.arguments == nil):
		c.add(d.line, "image %s has neither a binary nor a base with something to start", d.name.value)
	case d.binary.line == 0 && (d.with != nil || d.setuid):
		c.add(d.line, "image %s has no binary that others could go with, or that could run as root", d.name.value)
	}
	if d.set.value == string(Test) {
		c.checkTestVersion(d)
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
	if d.set.value != string(Test) {
		c.checkImageVersion(d, b)
	}
}

// checkTestVersion checks that an image for tests has a version: the one that the tests call it by, whatever is in it.
func (c *checker) checkTestVersion(d declaredImage) {
	if d.version.line == 0 {
		c.add(d.line, "image %s: it needs a version: the one that tests call it by", d.name.value)
		return
	}
	c.isImageVersion(d.version)
}

// isImageVersion reports whether a version can be a tag.
func (c *checker) isImageVersion(version text) bool {
	if version.value == "" {
		return false
	}
	if _, err := name.NewTag("registry.invalid/image:"+version.value, name.StrictValidation); err != nil {
		c.add(version.line, "%q is not a version for an image: letters, digits, and _ . -", version.value)
		return false
	}
	return true
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
	if !c.isImageVersion(d.version) {
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
