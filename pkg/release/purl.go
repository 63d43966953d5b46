package release

import (
	"fmt"
	"path"
	"strings"

	"github.com/package-url/packageurl-go"

	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/platform"
)

// PURL returns the package URL of a module, toolchain, tool or Debian package, and "" of other inputs. The form is that of
// https://github.com/package-url/purl-spec. Of a Debian package it says, as scanners need it, the release of Debian (distro) and the source
// package (upstream), which faults are known of.
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
	case Tool:
		if in.Sum != "" { // a folder has no name elsewhere
			return golang(in.Name, in.Version)
		}
	case Debian:
		about := in.debianArch()
		if distro := debian.Distribution(in.Suite); distro != "" {
			about = append(about, packageurl.Qualifier{Key: "distro", Value: distro})
		}
		switch {
		case in.SourceVersion != "":
			about = append(about, packageurl.Qualifier{Key: "upstream", Value: in.Source + "@" + in.SourceVersion})
		case in.Source != "" && in.Source != in.Name:
			about = append(about, packageurl.Qualifier{Key: "upstream", Value: in.Source})
		}
		return debianPURL(in, about)
	}
	return ""
}

// Patched reports whether the input is a module that patches change.
func (in Input) Patched() bool {
	return in.Kind == Module && strings.Contains(in.Version, "-patched.p")
}

func (in Input) debianArch() packageurl.Qualifiers {
	arch := "all"
	if (in.Platform != platform.Platform{}) {
		arch = debian.Arch(in.Platform.Arch)
	}
	return packageurl.Qualifiers{{Key: "arch", Value: arch}}
}

func debianPURL(in Input, about packageurl.Qualifiers) string {
	return packageurl.NewPackageURL(packageurl.TypeDebian, "debian", in.Name, in.Version, about, "").ToString()
}

// renamePackages gives artifacts the package URLs that Debian packages have now: in older descriptions, these say only the architecture.
func (r *Release) renamePackages() {
	names := map[string]string{}
	for _, in := range r.Inputs {
		if in.Kind == Debian {
			names[debianPURL(in, in.debianArch())] = in.PURL()
		}
	}
	for _, a := range r.Artifacts {
		for i, purl := range a.Inputs {
			if name := names[purl]; name != "" {
				a.Inputs[i] = name
			}
		}
	}
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
	name, _, _ := strings.Cut(path.Base(a.Name), ":") // without an image's tag
	qualifiers := packageurl.Qualifiers{{Key: "checksum", Value: "sha256:" + a.SHA256}}
	if (a.Platform != platform.Platform{}) {
		qualifiers = append(qualifiers, packageurl.Qualifier{Key: "platform", Value: a.Platform.String()})
	}
	return packageurl.NewPackageURL(packageurl.TypeGeneric, "kubernetes", name, version, qualifiers, "").ToString()
}
