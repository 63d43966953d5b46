package catalog

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	goversion "go/version"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/imagename"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/mechanism/tail"
)

// A checker checks a catalog as it was decoded, and adds what follows from go.mod files. It passes over what is empty, as the
// decoder has reported it if it must not be, and over what depends on something wrong.
type checker struct {
	*decoder
	*Catalog
	root    string
	modules map[string]*module // that binaries are compiled in, by folder; nil if there is something wrong with one
	unsure  bool               // there is something wrong with the sets' platforms
}

func check(root string, catalog *Catalog, d *decoder) {
	c := &checker{d, catalog, root, map[string]*module{}, d.bad[&catalog.Sets]}
	c.checkModule()
	c.checkTags()
	for _, set := range Sets() {
		once(c, "platform", c.Sets[set])
	}
	c.checkBinaries()
	c.checkToolchain()
	c.checkRegistry()
	c.checkImages()
	c.checkAddons()
	c.checkPackages()
	c.checkSource()
	c.checkLicenses()
	c.checkOverrides()
	if err := debian.CheckSnapshot(c.Debian.Snapshot); c.Debian.Snapshot != "" && err != nil {
		c.add(c.line(&c.Debian.Snapshot), "debian: snapshot: %v", err)
	}
	c.checkCache()
	c.checkVulnerabilities()
}

// checkVulnerabilities checks the words. Whether a database answers is asked when it is needed.
func (c *checker) checkVulnerabilities() {
	v := &c.Vulnerabilities
	if *v == (Vulnerabilities{}) {
		return
	}
	if !slices.Contains(Severities(), v.FailOn) {
		c.add(c.line(&v.FailOn), "vulnerabilities: failOn: %q is not %s", v.FailOn, suggest.Enumerate(Severities(), "or"))
	}
	if u, err := url.Parse(v.DB); err != nil || u.Scheme != "https" && u.Scheme != "file" {
		c.add(c.line(&v.DB), "vulnerabilities: db: %q is not file:///FOLDER or https://HOST", tail.Redact(v.DB))
	}
}

// checkCache checks the address of the shared cache, and that its keys are files of the tree.
func (c *checker) checkCache() {
	if at := c.Cache.URL; at != "" {
		u, err := url.Parse(at)
		if err != nil || u.Scheme != "grpc" && u.Scheme != "grpcs" || u.Hostname() == "" || u.User != nil || u.RawQuery+u.Fragment != "" {
			c.add(c.line(&c.Cache.URL), "%q is not the URL of a cache like grpcs://cache.example/main", tail.Redact(at))
		}
	}
	once(c, "key", c.Cache.Keys)
	for i, key := range c.Cache.Keys {
		if !isFolder(key) {
			c.add(c.line(&c.Cache.Keys[i]), "%q is not a file of the tree, written with slashes", key)
		} else if info, err := os.Stat(filepath.Join(c.root, filepath.FromSlash(key))); err != nil || !info.Mode().IsRegular() {
			c.add(c.line(&c.Cache.Keys[i]), "there is no file %s with a key", key)
		}
	}
}

var gitObject = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// checkSource checks the form of the commit that Kubernetes' modules are made of. Only git knows whether it exists.
func (c *checker) checkSource() {
	c.match(&c.Source.Commit, gitObject, "a commit, in hex")
	c.match(&c.Source.Tree, gitObject, "a tree of git, in hex")
	at := c.Source.Repository
	if u, err := url.Parse(at); strings.HasPrefix(at, "-") || err == nil && u.User != nil && hasPassword(u.User) {
		c.add(c.line(&c.Source.Repository), "%q is not the address of a repository without a password", tail.Redact(at))
	}
}

func hasPassword(u *url.Userinfo) bool { _, has := u.Password(); return has }

// once reports the items of a list that are in it already.
func once[T comparable](c *checker, kind string, list []T) {
	first := map[T]int{}
	for i, item := range list {
		line := c.line(&list[i])
		if other, seen := first[item]; seen {
			c.add(line, "duplicate %s %q, first on line %d", kind, fmt.Sprint(item), other)
			continue
		}
		first[item] = line
	}
}

// match reports a text that is not empty and not of a form.
func (c *checker) match(text *string, form *regexp.Regexp, want string) {
	if *text != "" && !form.MatchString(*text) {
		c.add(c.line(text), "%q is not %s", *text, want)
	}
}

func (c *checker) checkModule() {
	folder := c.Module
	c.Module = ""
	if folder == "" {
		return
	}
	m := c.module(folder, c.line(&c.Module))
	if m == nil {
		return
	}
	kubernetes, ok := m.Require("k8s.io/kubernetes")
	if !ok {
		c.add(c.line(&c.Module), "module: %s does not require k8s.io/kubernetes, which sets a release's version", filepath.Join(m.Dir, "go.mod"))
		c.modules[folder] = nil
		return
	}
	c.Module, c.ModulePath, c.Kubernetes = m.Name, m.Path, kubernetes.Version
}

// module returns the module in a folder, or nil if there is something wrong with it, which it reports once.
func (c *checker) module(folder string, line int) *module {
	if m, known := c.modules[folder]; known {
		return m
	}
	m, err := loadModule(c.root, folder)
	if err != nil {
		c.add(line, "module: %v", err)
	}
	c.modules[folder] = m
	return m
}

var releasedGo = regexp.MustCompile(`^go[1-9][0-9]*(\.(0|[1-9][0-9]*)){2}$`)

// fipsModule is a version of Go's cryptographic module, perhaps with the commit that Go has in the name of its file. Names such as latest
// and certified mean another one with another Go.
var fipsModule = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-f]{8,})?$`)

// checkFIPS checks the form of the version. Which versions there are is known by the Go that compiles.
func (c *checker) checkFIPS() {
	c.match(&c.Go.FIPS, fipsModule, "a version of Go's cryptographic module like v1.0.0")
	for _, t := range []struct {
		address any
		set     bool
		name    string
	}{{&c.Go.FIPSProjects, c.Go.FIPSProjects, "fipsProjects"}, {&c.Go.FIPSEnvironment, c.Go.FIPSEnvironment, "fipsEnvironment"}} {
		if t.set && !c.has(&c.Go.FIPS) {
			c.add(c.line(t.address), "%s has no effect without fips: v1.0.0", t.name)
		}
	}
	for _, address := range []any{&c.Tools.FIPS, &c.Tools.FIPSProjects, &c.Tools.FIPSEnvironment} {
		if c.has(address) {
			c.add(c.line(address), "toolchain: fips and what begins with it stand under go, as they are about what is released")
		}
	}
}

func (c *checker) checkToolchain() {
	c.checkGo(&c.Tools)
	c.checkFIPS()
	if c.checkGo(&c.Go) {
		version, line := c.Go.Version, c.line(&c.Go.Version)
		for _, name := range slices.Sorted(maps.Keys(c.modules)) {
			if m := c.modules[name]; m != nil && goversion.Compare(version, "go"+m.Go) < 0 {
				c.add(line, "%s is older than the Go that %s asks for, %s", version, m.file(), m.Go)
			}
		}
	}
}

// checkGo checks a version with its sums, and reports whether there is one.
func (c *checker) checkGo(t *Toolchain) bool {
	c.match(&t.Version, releasedGo, "a Go version like go1.26.8")
	var hosts []string
	for _, p := range platform.All() {
		hosts = append(hosts, p.Dash())
	}
	for _, host := range slices.Sorted(maps.Keys(t.Sums)) {
		sum := t.Sums[host]
		line := c.line(entry{&t.Sums, host})
		if !slices.Contains(hosts, host) {
			c.add(line, "%v", suggest.Unknown("host", host, hosts))
		}
		if sum != "" && !isSum(sum) {
			c.add(line, "%q is not a sum: h1: and the base64 of %d bytes", sum, sha256.Size)
		}
	}
	return releasedGo.MatchString(t.Version)
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

func (c *checker) checkTags() {
	once(c, "tag", c.Tags)
	for i := range c.Tags {
		c.match(&c.Tags[i], buildTag, "a build tag: letters, digits, underscores and dots")
	}
}

func (c *checker) checkRegistry() {
	if c.Registry != "" && imagename.RegistryHost(c.Registry) != nil {
		c.add(c.line(&c.Registry), "%q is not a registry like registry.k8s.io or localhost:5000/folder", c.Registry)
		return
	}
	data, err := os.ReadFile(filepath.Join(c.root, filepath.FromSlash(KubeadmDefaults)))
	if err != nil {
		return // kubeadm is upstream's
	}
	if m := imageRepository.FindSubmatch(data); m != nil && string(m[1]) != c.Registry {
		c.add(c.line(&c.Registry), "the images are of %s, and %s has kubeadm ask for those of %s", c.Registry, KubeadmDefaults, m[1])
	}
}

func (c *checker) checkBinaries() {
	first := map[string]int{} // line, by name
	for i := range c.Binaries {
		b := &c.Binaries[i]
		c.checkBinary(b)
		c.checkDuplicate("binary", b.Name, c.line(&b.Name), first)
	}
	c.checkGoNames()
}

// checkDuplicate reports a name that something else has: first has the line of that.
func (c *checker) checkDuplicate(kind, name string, line int, first map[string]int) {
	if other, seen := first[name]; seen && name != "" {
		c.add(line, "duplicate %s %q, first on line %d", kind, name, other)
		return
	}
	first[name] = line
}

// checkGoNames checks that no two binaries are one file when they are compiled together. All main packages of a module are compiled
// into one folder for a platform, and so are all tests; the Go command names the files there.
func (c *checker) checkGoNames() {
	if c.unsure {
		return
	}
	type file struct {
		module   string
		name     string
		test     bool
		platform Platform
	}
	first := map[file]*Binary{}
	for i := range c.Binaries {
		b := &c.Binaries[i]
		if b.Package == "" == (b.Test == "") {
			continue // which was reported
		}
		for _, p := range c.PlatformsOf(*b) {
			f := file{b.Module, GoName(b.ImportPath(), b.IsTest()), b.IsTest(), p}
			other, taken := first[f]
			if !taken {
				first[f] = b
				continue
			}
			c.add(c.line(b), "binary %s: the Go command calls it %s, as it does binary %s on line %d, and both are for %s",
				b.Name, f.name, other.Name, c.line(other), p)
			break
		}
	}
}

// A binary's name is a file's, on every system.
var fileName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

func (c *checker) checkBinary(b *Binary) {
	c.match(&b.Name, fileName, "a name for a binary: letters, digits, and .-_ between them")
	m := c.modules[c.Module]
	if b.Module != "" {
		m = c.module(b.Module, c.line(&b.Module))
	}
	b.Module = ""
	if m != nil {
		b.Module, b.ModulePath = m.Name, m.Path
	}
	c.checkPackage(b, m)
	c.checkStamp(b, m)
	c.checkFolder(b)
	once(c, "set", b.Sets)
	for i, set := range b.Sets {
		if _, declared := c.Sets[set]; !declared && !c.unsure {
			c.add(c.line(&b.Sets[i]), "binary %s: set %s has no platforms in this file", b.Name, set)
		}
	}
	c.checkOnly(b)
}

func (c *checker) checkPackage(b *Binary, m *module) {
	pkg := &b.Package
	if c.has(&b.Test) {
		pkg = &b.Test
	}
	switch {
	case c.has(&b.Package) && c.has(&b.Test):
		c.add(c.line(b), "binary %s has both a package and a test", b.Name)
	case !c.has(pkg):
		c.add(c.line(b), "binary %s has neither a package nor a test", b.Name)
	case *pkg != "" && m != nil:
		if err := m.find(*pkg, pkg == &b.Test); err != nil {
			c.add(c.line(pkg), "binary %s: %v", b.Name, err)
		}
	}
}

// A variable is what the linker's -X sets: an import path, a dot, a name.
var variable = regexp.MustCompile(`^[A-Za-z0-9._~/-]+\.[\pL_][\pL\pN_]*$`)

func (c *checker) checkStamp(b *Binary, m *module) {
	switch line := c.line(&b.Stamp); {
	case b.Stamp == "":
	case m != nil && m.Name == c.Module:
		c.add(line, "binary %s: stamp is for other projects; components have the release's version", b.Name)
	case !variable.MatchString(b.Stamp):
		c.add(line, "binary %s: %q is not a variable like example.com/project/version.Version", b.Name, b.Stamp)
	case m != nil && b.Package != "" && m.Version(b.Package) == "":
		c.add(line, "binary %s: its package is in %s itself, which has no version", b.Name, m.Name)
	}
}

// checkFolder checks where tarballs have a binary. No two can be one file there, as all binaries differ in their names.
func (c *checker) checkFolder(b *Binary) {
	switch line := c.line(&b.Folder); {
	case b.Folder == "":
	case !isFolder(b.Folder):
		c.add(line, "binary %s: %q is not a folder below a tarball's top, written with slashes", b.Name, b.Folder)
	case !c.has(&b.Sets):
		c.add(line, "binary %s has a folder, but is in no set whose tarballs could have it", b.Name)
	}
}

// checkOnly checks that each platform of `only` narrows something.
func (c *checker) checkOnly(b *Binary) {
	once(c, "platform", b.Only)
	if !c.has(&b.Sets) && !c.has(&b.Only) {
		c.add(c.line(b), "binary %s has neither sets nor only, so there is no platform for it", b.Name)
	}
	if c.unsure || c.bad[&b.Sets] {
		return // the platforms that it could have are not known
	}
	possible := c.PlatformsOf(Binary{Sets: b.Sets})
	whose := "none of its sets"
	if len(b.Sets) == 0 {
		whose = "no set"
	}
	for i, p := range b.Only {
		if !slices.Contains(possible, p) {
			c.add(c.line(&b.Only[i]), "binary %s: only %s, but %s has that platform", b.Name, p, whose)
		}
	}
}
