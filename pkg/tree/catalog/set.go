package catalog

import "slices"

// A Set is a part of a release with tarballs of its own, one for each of its platforms.
type Set string

const (
	Server Set = "server" // runs the control plane
	Node   Set = "node"   // runs on every machine
	Client Set = "client" // runs on people's machines
	Test   Set = "test"   // checks a cluster
)

// Sets returns all sets, in the order they are listed everywhere.
func Sets() []Set { return []Set{Server, Node, Client, Test} }

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
