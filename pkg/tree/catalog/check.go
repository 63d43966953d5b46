package catalog

import (
	"crypto/sha256"
	"encoding/base64"
	goversion "go/version"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// A checker makes a catalog of a declaration and adds what is wrong with that to the problems. Texts that are empty
// were reported before and are passed over, and so is what depends on something that is wrong itself.
type checker struct {
	*problems
	root    string
	catalog *Catalog
	modules map[string]*module // that binaries are compiled in, by folder; nil if there is something wrong with one
	unsure  bool               // there is something wrong with the sets' platforms
}

func check(root string, d declaration, p *problems) *Catalog {
	c := &checker{problems: p, root: root, catalog: &Catalog{Sets: map[Set][]Platform{}}, modules: map[string]*module{}}
	c.checkModule(d.module)
	c.checkTags(d.tags)
	c.checkSets(d.sets)
	c.checkBinaries(d.binaries)
	c.checkToolchain(d)
	c.checkRegistry(d.registry)
	c.checkImages(d.images)
	return c.catalog
}

func (c *checker) checkModule(declared text) {
	if declared.value == "" {
		return
	}
	m := c.module(declared)
	if m == nil {
		return
	}
	kubernetes := m.requires["k8s.io/kubernetes"]
	if kubernetes == "" {
		c.add(declared.line, "module: %s does not require k8s.io/kubernetes, whose version is a release's", filepath.Join(m.dir, "go.mod"))
		c.modules[m.name] = nil
		return
	}
	c.catalog.Module, c.catalog.ModulePath, c.catalog.Kubernetes = m.name, m.path, kubernetes
}

// module returns the module in a folder, or nil if there is something wrong with it, which is reported once.
func (c *checker) module(declared text) *module {
	if m, known := c.modules[declared.value]; known {
		return m
	}
	m, err := loadModule(c.root, declared.value)
	if err != nil {
		c.add(declared.line, "module: %v", err)
	}
	c.modules[declared.value] = m
	return m
}

var releasedGo = regexp.MustCompile(`^go[1-9][0-9]*(\.(0|[1-9][0-9]*)){2}$`)

func (c *checker) checkToolchain(d declaration) {
	version := d.goVersion.value
	switch {
	case version == "":
	case !releasedGo.MatchString(version):
		c.add(d.goVersion.line, "%q is not a Go version like go1.26.8", version)
	default:
		for _, name := range slices.Sorted(maps.Keys(c.modules)) {
			if m := c.modules[name]; m != nil && goversion.Compare(version, "go"+m.goVersion) < 0 {
				c.add(d.goVersion.line, "%s is older than the Go that %s asks for, %s", version, m.file(), m.goVersion)
			}
		}
	}

	c.catalog.Go = Toolchain{Version: version, Sums: map[string]string{}}
	hosts := goPlatforms()
	for i, host := range hosts {
		hosts[i] = strings.Replace(host, "/", "-", 1)
	}
	for _, sum := range d.sums {
		if !slices.Contains(hosts, sum.key.value) {
			c.unknown(sum.key.line, "host", sum.key.value, hosts)
		}
		if sum.value.value != "" && !isSum(sum.value.value) {
			c.add(sum.value.line, "%q is not a sum: h1: and the base64 of %d bytes", sum.value.value, sha256.Size)
		}
		c.catalog.Go.Sums[sum.key.value] = sum.value.value
	}
}

// isSum reports whether s is a sum as go.sum has it.
func isSum(s string) bool {
	encoded, ok := strings.CutPrefix(s, "h1:")
	if !ok || strings.ContainsAny(encoded, "\r\n") { // which the decoder would pass over
		return false
	}
	sum, err := base64.StdEncoding.Strict().DecodeString(encoded)
	return err == nil && len(sum) == sha256.Size
}

var buildTag = regexp.MustCompile(`^[\pL\pN_.]+$`)

func (c *checker) checkTags(tags []text) {
	tags = c.once("tag", tags)
	for _, t := range tags {
		if !buildTag.MatchString(t.value) {
			c.add(t.line, "%q is not a build tag: letters, digits, underscores and dots", t.value)
		}
	}
	c.catalog.Tags = values(tags)
}

func (c *checker) checkSets(sets []declaredSet) {
	for _, s := range sets {
		set, ok := c.set(s.name)
		platforms := c.platforms(s.platforms)
		if ok {
			c.catalog.Sets[set] = platforms
		}
		c.unsure = c.unsure || !ok || len(platforms) < len(s.platforms)
	}
}

// set returns the set of that name.
func (c *checker) set(t text) (set Set, ok bool) {
	set = Set(t.value)
	if slices.Contains(Sets(), set) {
		return set, true
	}
	var names []string
	for _, s := range Sets() {
		names = append(names, string(s))
	}
	c.unknown(t.line, "set", t.value, names)
	return "", false
}

// platforms returns those texts that are platforms.
func (c *checker) platforms(texts []text) []Platform {
	var platforms []Platform
	for _, t := range c.once("platform", texts) {
		p, err := ParsePlatform(t.value)
		if err != nil {
			c.unknown(t.line, "platform", t.value, goPlatforms())
			continue
		}
		platforms = append(platforms, p)
	}
	return platforms
}

func (c *checker) checkRegistry(registry text) {
	c.catalog.Registry = registry.value
	if registry.value == "" {
		return
	}
	// What NewRepository doesn't refuse: "https://host", and a host without dot or port, which it takes for a folder
	// of the default registry.
	host, _, _ := strings.Cut(registry.value, "/")
	repo, err := name.NewRepository(registry.value+"/image", name.StrictValidation)
	if err != nil || repo.RegistryStr() != host || path.Clean(registry.value) != registry.value {
		c.add(registry.line, "%q is not a registry like registry.k8s.io or localhost:5000/folder", registry.value)
	}
}
