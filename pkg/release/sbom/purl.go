package sbom

import (
	"path"

	"github.com/package-url/packageurl-go"
)

// ociPURL returns the package URL of an image, whose version is its digest.
func ociPURL(repository, tag, digest, arch string) string {
	var qualifiers packageurl.Qualifiers
	if arch != "" {
		qualifiers = append(qualifiers, packageurl.Qualifier{Key: "arch", Value: arch})
	}
	qualifiers = append(qualifiers, packageurl.Qualifier{Key: "repository_url", Value: repository},
		packageurl.Qualifier{Key: "tag", Value: tag})
	return packageurl.NewPackageURL(packageurl.TypeOCI, "", path.Base(repository), digest, qualifiers, "").ToString()
}
