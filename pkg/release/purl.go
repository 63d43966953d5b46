package release

import (
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

// StandardLibrary returns the package URL of the standard library of the release's Go.
func (r *Release) StandardLibrary() string { return golang("stdlib", strings.TrimPrefix(r.Go, "go")) }

func golang(module, version string) string {
	namespace, name := path.Split(module)
	return packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(namespace, "/"), name, version, nil, "").ToString()
}
