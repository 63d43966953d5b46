package catalog

// The tarballs of a release that are the same for every platform.
const (
	SourceTarball       = "kubernetes-src.tar.gz"
	ManifestsTarball    = "kubernetes-manifests.tar.gz"
	PortableTestTarball = "kubernetes-test-portable.tar.gz" // what the test set needs besides binaries
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
	return append(names, ManifestsTarball, SourceTarball, FullTarball)
}
