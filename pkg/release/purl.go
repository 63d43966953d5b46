package release

import (
	"fmt"
	"path"
	"strings"

	"github.com/package-url/packageurl-go"

	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/platform"
)

// PURL returns the package URL of a module, toolchain or Debian package, and "" of other inputs. The form is that of
// https://github.com/package-url/purl-spec.
func (in Input) PURL() string {
	switch in.Kind {
	case Module:
		name := in.Name
		if strings.HasPrefix(name, ".") || path.IsAbs(name) { // a folder, which has no name elsewhere
			name, _, _ = strings.Cut(in.Replaces, "@")
		}
		return golang(name, in.Version)
	case Toolchain:
		return golang(in.Name, in.Version)
	case Debian:
		arch := packageurl.Qualifiers{{Key: "arch", Value: "all"}}
		if (in.Platform != platform.Platform{}) {
			arch[0].Value = debian.Arch(in.Platform.Arch)
		}
		return packageurl.NewPackageURL(packageurl.TypeDebian, "debian", in.Name, in.Version, arch, "").ToString()
	}
	return ""
}

// ParsePURL returns what kind of input a package URL names, and its version.
func ParsePURL(purl string) (kind InputKind, version string, err error) {
	p, err := packageurl.FromString(purl)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("%q: %w", purl, err)
	case p.Type == packageurl.TypeDebian:
		kind = Debian
	case p.Type == packageurl.TypeGolang && p.Namespace+"/"+p.Name == ToolchainModule:
		kind = Toolchain
	case p.Type == packageurl.TypeGolang:
		kind = Module
	default:
		return "", "", fmt.Errorf("%q names nothing that a release is made of", purl)
	}
	return kind, p.Version, nil
}

// ToolchainModule is the module that Go's toolchains are versions of.
const ToolchainModule = "golang.org/toolchain"

// StandardLibrary returns the package URL of the standard library of the release's Go.
func (r *Release) StandardLibrary() string { return golang("stdlib", strings.TrimPrefix(r.Go, "go")) }

func golang(module, version string) string {
	namespace, name := path.Split(module)
	return packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(namespace, "/"), name, version, nil, "").ToString()
}

// ProductPURL returns the package URL of an artifact of a release, for documents about what a release has.
func ProductPURL(a Artifact, version string) string {
	name := path.Base(a.Name)
	if at := strings.IndexByte(name, ':'); at >= 0 { // an image's tag
		name = name[:at]
	}
	qualifiers := packageurl.Qualifiers{{Key: "checksum", Value: "sha256:" + a.SHA256}}
	if (a.Platform != platform.Platform{}) {
		qualifiers = append(qualifiers, packageurl.Qualifier{Key: "platform", Value: a.Platform.String()})
	}
	return packageurl.NewPackageURL(packageurl.TypeGeneric, "kubernetes", name, version, qualifiers, "").ToString()
}
