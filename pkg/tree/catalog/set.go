package catalog

import (
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/suggest"
)

// A Platform is an operating system and a processor, by Go's names.
type Platform = platform.Platform

// Host returns the platform that this process runs on.
func Host() Platform { return platform.Host() }

// Enumerate lists platforms for messages.
func Enumerate(platforms []Platform) string {
	names := make([]string, len(platforms))
	for i, p := range platforms {
		names[i] = p.String()
	}
	return strings.Join(names, ", ")
}

// A Set is a part of a release with tarballs of its own, one for each of its platforms.
type Set string

const (
	Server Set = "server" // runs the control plane
	Node   Set = "node"   // runs on every machine
	Client Set = "client" // runs on users' machines
	Test   Set = "test"   // checks a cluster
	Addons Set = "addons" // what a cluster has on request
)

// Sets returns all sets, in the order they are listed everywhere.
func Sets() []Set { return []Set{Server, Node, Client, Test, Addons} }

// UnmarshalText reads the name of a set. The error for another name is a *suggest.UnknownError.
func (s *Set) UnmarshalText(text []byte) error {
	var names []string
	for _, set := range Sets() {
		names = append(names, string(set))
	}
	if !slices.Contains(names, string(text)) {
		return suggest.Unknown("set", string(text), names)
	}
	*s = Set(text)
	return nil
}

// SetHas reports whether a set is released for a platform.
func (c *Catalog) SetHas(set Set, p Platform) bool { return slices.Contains(c.Sets[set], p) }

// AllPlatforms returns the platforms of all sets, each once.
func (c *Catalog) AllPlatforms() []Platform {
	var all []Platform
	for _, set := range Sets() {
		for _, p := range c.Sets[set] {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// The tarballs of a release that are the same for every platform.
const (
	SourceTarball       = "kubernetes-src.tar.gz"
	ManifestsTarball    = "kubernetes-manifests.tar.gz"
	PortableTestTarball = "kubernetes-test-portable.tar.gz" // what the test set needs besides binaries
	APITarball          = "kubernetes-api.tar.gz"           // what the API is, as files
	FullTarball         = "kubernetes.tar.gz"               // scripts and docs, without binaries
)

// Tarball returns the name of a set's tarball for a platform.
func Tarball(set Set, p Platform) string {
	return "kubernetes-" + string(set) + "-" + p.Dash() + ".tar.gz"
}

// Tarballs returns the names of all tarballs of a release for some platforms: those of the sets that have them,
// then those that are the same for every platform.
func (c *Catalog) Tarballs(platforms []Platform) []string {
	var names []string
	for _, set := range Sets() {
		for _, p := range platforms {
			if c.SetHas(set, p) {
				names = append(names, Tarball(set, p))
			}
		}
	}
	if len(c.Sets[Test]) > 0 {
		names = append(names, PortableTestTarball)
	}
	if _, _, ok := c.APIPrograms(); ok {
		names = append(names, APITarball)
	}
	return append(names, ManifestsTarball, SourceTarball, FullTarball)
}

// APIPrograms returns the programs that say what the API is, if the catalog has them.
func (c *Catalog) APIPrograms() (server, etcd Binary, ok bool) {
	server, hasServer := c.Binary("kube-apiserver")
	etcd, hasEtcd := c.Binary("etcd")
	return server, etcd, hasServer && hasEtcd
}
