package catalog

import (
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/imagename"
	"slipway.build/pkg/mechanism/suggest"
)

func (c *checker) checkImages() {
	first := map[string]int{}
	files := map[string]*Image{} // by the name of the archive
	for i := range c.Images {
		im := &c.Images[i]
		c.checkSet(im)
		name := im.Name
		if im.In(Test) && name != "" {
			name += ":" + im.Version // tests may need several versions of one
		}
		c.checkDuplicate("image", name, c.line(&im.Name), first)
		other := files[im.File()]
		if other != nil && im.Name != "" && (other.Name != im.Name || im.In(Test) && other.Version != im.Version) {
			c.add(c.line(&im.Name), "the archive of image %s would be %s.tar, as is that of the one on line %d", im.Name,
				im.File(), c.line(&other.Name))
		}
		files[im.File()] = im
		c.checkImage(im)
	}
}

// checkSet checks the set of an image: clients and nodes have none.
func (c *checker) checkSet(im *Image) {
	switch _, declared := c.Sets[im.Set]; {
	case im.Set == "" || im.Set == Server:
		im.Set = ""
	case im.Set != Test && im.Set != Addons:
		c.add(c.line(&im.Set), "image %s: set %s has no images; server, test and addons have", im.Name, im.Set)
		im.Set = ""
	case !declared && !c.unsure:
		c.add(c.line(&im.Set), "image %s: set %s has no platforms in this file", im.Name, im.Set)
	}
}

// Images run as numbers: what the names of users mean depends on files in the image.
var userAndGroup = regexp.MustCompile(`^[0-9]{1,9}(:[0-9]{1,9})?$`)

func (c *checker) checkImage(im *Image) {
	if im.Name != "" && imagename.Image(im.Name) != nil {
		c.add(c.line(&im.Name), "%q is not a name for an image", im.Name)
	}
	if bases := folders(filepath.Join(c.root, "images")); im.Base != "" && !slices.Contains(bases, im.Base) {
		c.add(c.line(&im.Base), "there is no folder images/%s for the base%s", im.Base, suggest.DidYouMean(suggest.Near(im.Base, bases)))
	}
	c.match(&im.User, userAndGroup, "a user and a group by number, like 65532:65532")
	switch hasBinary := c.has(&im.Binary); {
	case !hasBinary && (!c.has(&im.Base) || !c.has(&im.Entrypoint) && !c.has(&im.Arguments)):
		c.add(c.line(im), "image %s has neither a binary nor a base with something to start", im.Name)
	case !hasBinary && (c.has(&im.With) || im.SetUID):
		c.add(c.line(im), "image %s has no binary that others could go with, or that could run as root", im.Name)
	}
	once(c, "binary", im.With)
	c.checkImageBinary(im, &im.Binary)
	for i := range im.With {
		c.checkImageBinary(im, &im.With[i])
	}
	c.checkVersion(im)
	c.checkOrigin(im)
}

// checkImageBinary checks that a binary of an image is for all platforms of the server set, and in that set if the image is.
func (c *checker) checkImageBinary(im *Image, named *string) {
	if *named == "" {
		return
	}
	b, ok := c.Binary(*named)
	switch {
	case !ok:
		c.add(c.line(named), "%v", suggest.Unknown("binary", *named, c.names()))
	case len(b.Sets) > 0 && !b.In(Server) && !(im.In(Test) && b.In(Test)):
		c.add(c.line(named), "binary %q is not in the server set, which images are made from", b.Name)
	case !c.unsure:
		for _, p := range c.Sets[Server] {
			if !slices.Contains(c.PlatformsOf(b), p) {
				c.add(c.line(named), "binary %q is not for %s, which images are made for", b.Name, p)
			}
		}
	}
}

// checkVersion checks that an image has a version of its own if it needs one: for tests the one that they call it by, whatever is
// in it, unless it is a component's; otherwise that of the other project whose binary it is, perhaps with a suffix.
func (c *checker) checkVersion(im *Image) {
	b, ok := c.Binary(im.Binary)
	line := c.line(&im.Version)
	if im.Version != "" && imagename.Tag(im.Version) != nil {
		c.add(line, "%q is not a version for an image: letters, digits, and _ . -", im.Version)
		return
	}
	switch {
	case im.In(Test):
		if line == 0 && !(ok && c.IsComponent(b)) {
			c.add(c.line(im), "image %s: it needs a version: the one that tests use", im.Name)
		}
	case !ok || b.Module == "" || c.Module == "":
	case c.IsComponent(b) && line != 0:
		c.add(line, "image %s: a component's image has the release's version, and none of its own", im.Name)
	case c.IsComponent(b):
	case line == 0:
		c.add(c.line(im), "image %s: it needs a version: binary %s is of another project", im.Name, b.Name)
	case im.Version != "":
		version := c.modules[b.Module].Version(b.Package)
		rest, same := strings.CutPrefix(strings.TrimPrefix(im.Version, "v"), strings.TrimPrefix(version, "v"))
		if version != "" && (!same || rest != "" && rest[0] != '-') {
			c.add(line, "image %s: %s is not of version %s, which %s requires", im.Name, im.Version, version, path.Join(b.Module, "go.mod"))
		}
	}
}

var commit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// checkOrigin checks what an image with a version of its own says about that version.
func (c *checker) checkOrigin(im *Image) {
	if !c.has(&im.Version) {
		for _, f := range []struct {
			name string
			line int
		}{{"created", c.line(&im.Created)}, {"revision", c.line(&im.Revision)}, {"source", c.line(&im.Source)}} {
			if f.line != 0 {
				c.add(f.line, "image %s: %s is for images with a version of their own; this one has the release's", im.Name, f.name)
			}
		}
		return
	}
	if !c.has(&im.Created) {
		c.add(c.line(im), "image %s: a version needs %q: the time when it was made", im.Name, "created")
	}
	c.match(&im.Revision, commit, "a commit: 40 hexadecimal digits in lower case")
	if u, err := url.Parse(im.Source); im.Source != "" && (err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery+u.Fragment != "") {
		c.add(c.line(&im.Source), "%q is not the URL of a repository like https://github.com/etcd-io/etcd", im.Source)
	}
}
