package plan

import (
	"os"
	"slices"

	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/tree/catalog"
)

// hasPackages reports whether a base has files of Debian packages.
func (b *builder) hasPackages(base string) bool {
	if base == "" {
		return false
	}
	_, err := os.Stat(b.abs(slashed("images", base, debian.WishFile)))
	return err == nil
}

// debianPackages plans the tar of a base's Debian packages for a platform.
func (b *builder) debianPackages(platform catalog.Platform, base string) debian.Spec {
	spec := debian.Spec{
		Name: base, OS: platform.OS, Arch: platform.Arch,
		Dir:    slashed(sourceDir, "images", base),
		Output: slashed(stage, "debian", base, platform.Dash()+".tar"),
	}
	if a := debian.Action(b.Root, b.Settings.DebianMirror, spec); b.first(a.ID) && !b.ofOthers(spec.Output) {
		b.add(a)
	}
	return spec
}

// debianLicenses plans the copyright files of the Debian packages in a platform's images of a set, and returns their folder,
// or "" if there are none.
func (b *builder) debianLicenses(set catalog.Set, platform catalog.Platform) string {
	spec := debian.CopyrightSpec{Name: "debian", OS: platform.OS, Arch: platform.Arch}
	if set == catalog.Test {
		spec.Name += "-test"
	}
	var bases []string
	for _, im := range b.Catalog.ImagesFor(set, platform) {
		if b.hasPackages(im.Base) && !slices.Contains(bases, im.Base) {
			bases = append(bases, im.Base)
			spec.Bases = append(spec.Bases, b.debianPackages(platform, im.Base))
		}
	}
	if len(bases) == 0 {
		return ""
	}
	spec.Output = slashed(stage, "licenses", spec.Name, platform.Dash())
	b.add(debian.CopyrightAction(b.Root, spec))
	return spec.Output
}
