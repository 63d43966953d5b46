package sbom

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/release"
)

const (
	short = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
	sum   = "h1:l6N77U7tjwB5L056bgrBTJIEdevac/naBZ3iSvDNfpM="
)

// small returns a release of a tarball with a program and an image, of a patched module, a module and a Debian package.
func small() *release.Release {
	on := platform.Platform{OS: "linux", Arch: "amd64"}
	long := short + short
	api := release.Input{Kind: release.Module, Name: "k8s.io/api", Version: "v0.37.1-patched.p1.c2", Sum: sum, Replaces: "k8s.io/api@v0.37.1",
		License: "Apache-2.0"}
	zap := release.Input{Kind: release.Module, Name: "go.uber.org/zap", Version: "v1.0.0", Sum: sum, License: "MIT"}
	libc := release.Input{Kind: release.Debian, Name: "libc6", Version: "2.41-12+deb13u4", Platform: on, SHA256: short,
		Source: "glibc", Suite: "trixie"}
	return &release.Release{
		Format: release.Format, Version: "v1.37.1+acme.1", Date: time.Date(2026, 11, 1, 2, 3, 4, 0, time.UTC), Go: "go1.26.8",
		Artifacts: []release.Artifact{
			{Name: "kubelet.tar.gz", Kind: release.Tarball, Path: "kubelet.tar.gz", SHA256: short, SHA512: long,
				Of: []string{"linux/amd64/kubelet", "linux/amd64/proxy.tar"}},
			{Name: "linux/amd64/kubelet", Kind: release.Binary, Platform: on, SHA256: short, SHA512: long, Inputs: []string{api.PURL(), zap.PURL()}},
			{Name: "linux/amd64/other", Kind: release.Binary, Platform: on, SHA256: long[1:65], SHA512: long, Inputs: []string{zap.PURL()}},
			{Name: "linux/amd64/proxy.tar", Kind: release.Archive, Platform: on, SHA256: short, SHA512: long,
				Of: []string{"registry.k8s.io/proxy-amd64:v1"}},
			{Name: "registry.k8s.io/proxy-amd64:v1", Kind: release.Image, Platform: on, SHA256: short, SHA512: long,
				Of:     []string{"linux/amd64/other"},
				Layers: []release.Layer{{MediaType: "application/vnd.oci.image.layer.v1.tar+gzip", Digest: "sha256:" + short}},
				Inputs: []string{libc.PURL()}},
			{Name: "registry.k8s.io/proxy:v1", Kind: release.Index, SHA256: short, SHA512: long, Of: []string{"registry.k8s.io/proxy-amd64:v1"}},
			{Name: "src.tar.gz", Kind: release.Tarball, Path: "src.tar.gz", SHA256: short, SHA512: long},
			{Name: "SHA256SUMS", Kind: release.Sums, Path: "SHA256SUMS", SHA256: short, SHA512: long},
		},
		Inputs: []release.Input{
			{Kind: release.Source, Name: "src.tar.gz", SHA256: short, License: "Apache-2.0"},
			{Kind: release.Toolchain, Name: "golang.org/toolchain", Version: "v0.0.1-go1.26.8.linux-amd64", Platform: on, Sum: sum,
				License: "BSD-3-Clause"},
			{Kind: release.Patch, Name: "patches/0001-racks.patch", SHA256: short, Changes: []string{"k8s.io/api"}},
			api, zap, libc,
			{Kind: release.Tool, Name: "slipway.build", Version: "v0.2.0", Sum: sum, Libraries: []release.Library{
				{Name: zap.Name, Version: zap.Version, Sum: zap.Sum}, {Name: "golang.org/x/mod", Version: "v0.42.0", Sum: sum}}},
		},
	}
}

// names lists the components of a document by type and name, and its relations.
func names(d *Document) (components, relations []string) {
	for _, c := range d.Components {
		components = append(components, string(c.Type)+" "+c.Name)
	}
	for _, r := range d.Relations {
		relations = append(relations, r.From.Name+" "+string(r.Kind)+" "+r.To.Name)
	}
	return components, relations
}

func has(t *testing.T, list []string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !slices.Contains(list, w) {
			t.Errorf("no %q in\n%s", w, strings.Join(list, "\n"))
		}
	}
}

func TestAReleaseConsistsOfEverythingInIt(t *testing.T) {
	t.Parallel()
	d, err := Release(small())
	if err != nil {
		t.Fatal(err)
	}
	components, relations := names(d)
	if components[0] != "product kubernetes" || len(components) != 18 {
		t.Errorf("components\n%s", strings.Join(components, "\n"))
	}
	has(t, components, "library k8s.io/api", "library go.uber.org/zap", "library stdlib", "package libc6", "patch patches/0001-racks.patch",
		"compiler golang.org/toolchain", "layer sha256:"+short)
	has(t, relations, "kubernetes contains kubelet.tar.gz", "kubelet.tar.gz contains linux/amd64/kubelet",
		"linux/amd64/kubelet links k8s.io/api",
		"linux/amd64/kubelet links stdlib", "patches/0001-racks.patch patches k8s.io/api", "registry.k8s.io/proxy-amd64:v1 contains libc6",
		"registry.k8s.io/proxy-amd64:v1 contains debian",
		"registry.k8s.io/proxy-amd64:v1 contains linux/amd64/other", "registry.k8s.io/proxy:v1 describes registry.k8s.io/proxy-amd64:v1",
		"kubernetes made of src.tar.gz", "kubernetes built by golang.org/toolchain",
		"kubernetes built by slipway.build", "slipway.build links golang.org/x/mod", "slipway.build links go.uber.org/zap")
	for _, c := range d.Components {
		if want := c.Name == "slipway.build" || c.Name == "golang.org/x/mod"; c.Excluded != want {
			t.Errorf("%s is excluded: %v, want %v", c.Name, c.Excluded, want)
		}
	}
	ids := map[string]bool{}
	for _, c := range d.Components {
		if ids[c.ID] || strings.Trim(c.ID, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") != "" {
			t.Errorf("the identifier %q is there twice, or SPDX does not allow it", c.ID)
		}
		ids[c.ID] = true
	}
}

func TestAnImageConsistsOfNothingElse(t *testing.T) {
	t.Parallel()
	d, err := Of(small(), "registry.k8s.io/proxy-amd64:v1", "proxy")
	if err != nil {
		t.Fatal(err)
	}
	components, _ := names(d)
	want := []string{"image registry.k8s.io/proxy-amd64:v1", "layer sha256:" + short, "library go.uber.org/zap", "library stdlib",
		"package libc6", "program linux/amd64/other", "system debian"}
	slices.Sort(components[1:])
	if !slices.Equal(components, want) {
		t.Errorf("components %q, want %q", components, want)
	}
	if got, want := d.Components[0].PURL,
		"pkg:oci/proxy-amd64@sha256:"+short+"?arch=amd64&repository_url=registry.k8s.io%2Fproxy-amd64&tag=v1"; got != want {
		t.Errorf("package URL %s, want %s", got, want)
	}
}

func TestLicensesOfDebianPackages(t *testing.T) {
	t.Parallel()
	const ref = "LicenseRef-Debian-glibc-public-domain"
	for license, want := range map[string]struct{ declared, expression, other string }{
		"LGPL-2.1-or-later AND " + ref: {"LGPL-2.1-or-later AND " + ref, "LGPL-2.1-or-later AND " + ref, ref},
		"NOASSERTION":                  {declared: "NOASSERTION"}, // which is no license in CycloneDX
		"":                             {declared: "NOASSERTION"},
	} {
		r := small()
		for i := range r.Inputs {
			if r.Inputs[i].Kind == release.Debian {
				r.Inputs[i].License = license
			}
		}
		d, err := Release(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range d.Components {
			if c.Name != "libc6" {
				continue
			}
			got := c.spdx()
			if got.PackageLicenseDeclared != want.declared || !strings.Contains(got.PackageLicenseComments, "LICENSES/debian/libc6/copyright") {
				t.Errorf("%q: SPDX has %q, and %q", license, got.PackageLicenseDeclared, got.PackageLicenseComments)
			}
			other := c.cyclonedx()
			if want.expression == "" && other.Licenses != nil {
				t.Errorf("%q: CycloneDX has %v", license, *other.Licenses)
			} else if want.expression != "" && (*other.Licenses)[0].Expression != want.expression {
				t.Errorf("%q: CycloneDX has %v", license, *other.Licenses)
			}
		}
		all := d.otherLicenses()
		if want.other == "" && len(all) > 0 || want.other != "" && (len(all) != 1 || all[0].LicenseIdentifier != want.other) {
			t.Errorf("%q: other licenses %v", license, all)
		}
	}
}

func TestSourcesListTheirFiles(t *testing.T) {
	t.Parallel()
	files := []File{{"b/c.go", "22", "2222"}, {"a.go", "11", "1111"}}
	d, err := Source(small(), files)
	if err != nil {
		t.Fatal(err)
	}
	if files[0].Name != "b/c.go" {
		t.Error("the list has been sorted, which other documents may be reading")
	}
	data, err := d.SPDX()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"fileName": "./a.go"`, `"packageVerificationCodeValue": "00fd4b4549a1094aae926ef62e9dbd3cdcc2e456"`, // printf 1122 | sha1sum
	} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("no %s in\n%s", want, data)
		}
	}
}

// The sum of a module is no digest of a file, and never stands where one is expected.
func TestSumsOfModulesAreNoDigests(t *testing.T) {
	t.Parallel()
	d, err := Release(small())
	if err != nil {
		t.Fatal(err)
	}
	spdx, err := d.SPDX()
	if err != nil {
		t.Fatal(err)
	}
	cyclonedx, err := d.CycloneDX()
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Packages []struct {
			Name, SourceInfo string
			Checksums        []any
		}
	}
	var c struct {
		Components []struct {
			Name       string
			Hashes     []any
			Properties []struct{ Name, Value string }
			Pedigree   struct {
				Ancestors []struct{ PURL string }
				Patches   []struct {
					Diff struct{ URL string }
				}
			}
		}
	}
	if err := json.Unmarshal(spdx, &s); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(cyclonedx, &c); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range s.Packages {
		if p.Name == "k8s.io/api" {
			n++
			if len(p.Checksums) > 0 || !strings.Contains(p.SourceInfo, "go.sum: "+sum) || !strings.Contains(p.SourceInfo, "k8s.io/api@v0.37.1") {
				t.Errorf("SPDX has %+v", p)
			}
		}
	}
	for _, p := range c.Components {
		if p.Name == "k8s.io/api" {
			n++
			if len(p.Hashes) > 0 || len(p.Properties) == 0 || p.Properties[0].Value != sum {
				t.Errorf("CycloneDX has %+v", p)
			}
			if len(p.Pedigree.Patches) != 1 || p.Pedigree.Patches[0].Diff.URL != "patches/0001-racks.patch" ||
				len(p.Pedigree.Ancestors) != 1 || p.Pedigree.Ancestors[0].PURL != "pkg:golang/k8s.io/api@v0.37.1" {
				t.Errorf("CycloneDX has the pedigree %+v", p.Pedigree)
			}
		}
	}
	if n != 2 {
		t.Errorf("the module is in %d documents", n)
	}
}

func TestDocumentsDependOnTheDescriptionAlone(t *testing.T) {
	t.Parallel()
	again := small()
	slices.Reverse(again.Inputs)
	for _, a := range Artifacts(small(), "sbom") {
		sources := func() ([]File, error) { return []File{{"a.go", "11", "1111"}}, nil }
		x, err := Make(small(), a, sources)
		if err != nil {
			t.Fatal(err)
		}
		y, err := Make(again, a, sources)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, y) {
			t.Errorf("%s depends on the order of inputs", a.Name)
		}
		if bytes.Contains(x, []byte(`"created": "2026-11-01T02:03:04Z"`)) == bytes.Contains(x, []byte(`"timestamp": "2026-11-01T02:03:04Z"`)) {
			t.Errorf("%s is not of the commit's time", a.Name)
		}
		other := small()
		other.Version = "v2"
		other.Artifacts[4].SHA256 = strings.Repeat("0", 64)
		z, err := Make(other, a, sources)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(x, z) {
			t.Errorf("%s is the same for another release", a.Name)
		}
	}
	if n := len(Artifacts(small(), "sbom")); n != 6 {
		t.Errorf("%d documents, want those of the release, of its sources and of an image, in two formats", n)
	}
}

func TestWhatIsInAnArtifactMustBeAnInput(t *testing.T) {
	t.Parallel()
	r := small()
	r.Inputs = slices.DeleteFunc(r.Inputs, func(in release.Input) bool { return in.Name == "go.uber.org/zap" })
	if _, err := Release(r); err == nil || !strings.Contains(err.Error(), "pkg:golang/go.uber.org/zap@v1.0.0, which is no input") {
		t.Errorf("error %v", err)
	}
}

func TestForksNameWhatTheyReplace(t *testing.T) {
	t.Parallel()
	fork := release.Input{Kind: release.Module, Name: "acme.io/net", Version: "v0.60.0-1", Replaces: "golang.org/x/net@v0.60.0"}
	patched := fork
	patched.Version += ".patched.p1.c2"
	r := &release.Release{
		Inputs:    []release.Input{fork, patched},
		Overrides: []release.Override{{Module: "golang.org/x/net", Version: "v0.60.0", With: "acme.io/net@v0.60.0-1", Reason: "frames"}},
	}
	b := newBuilder(r, "test")
	for _, c := range b.inputs {
		to := c.cyclonedx()
		if to.Pedigree == nil || to.Pedigree.Notes != "replaced by acme.io/net@v0.60.0-1: frames" {
			t.Errorf("CycloneDX has the pedigree %+v", to.Pedigree)
		} else if to.Pedigree.Ancestors == nil || (*to.Pedigree.Ancestors)[0].PackageURL != "pkg:golang/golang.org/x/net@v0.60.0" {
			t.Errorf("CycloneDX has the ancestors %+v", to.Pedigree.Ancestors)
		}
	}
	if len(b.inputs) != 2 {
		t.Errorf("%d components", len(b.inputs))
	}
}

func TestOverriddenModulesSayWhy(t *testing.T) {
	t.Parallel()
	r := &release.Release{
		Version: "v1.37.2",
		Inputs: []release.Input{{Kind: release.Module, Name: "golang.org/x/net", Version: "v0.60.0",
			Sum: "h1:" + strings.Repeat("A", 43) + "="}},
		Overrides: []release.Override{{Module: "golang.org/x/net", Version: "v0.60.0", Reason: "frames", Fixes: []string{"CVE-2026-12345"}}},
	}
	const want = "raised above upstream's version: frames; fixes CVE-2026-12345"
	b := newBuilder(r, "test")
	for _, c := range b.inputs {
		if to := c.cyclonedx(); to.Pedigree == nil || to.Pedigree.Notes != want || to.Pedigree.Patches != nil {
			t.Errorf("CycloneDX has the pedigree %+v", to.Pedigree)
		}
		if to := c.spdx(); !strings.HasSuffix(to.PackageSourceInfo, "; "+want) {
			t.Errorf("SPDX has %q", to.PackageSourceInfo)
		}
	}
	if len(b.inputs) != 1 {
		t.Errorf("%d components", len(b.inputs))
	}
}

// A module that is made of a git repository says so; the published one, which another project may have, does not.
func TestModulesNameTheirRepository(t *testing.T) {
	t.Parallel()
	const url, commit = "https://git.example/kubernetes", "0123456789012345678901234567890123456789"
	r := &release.Release{Version: "v1.37.2-acme.1", Kubernetes: "v1.37.2-0.acme.1", Inputs: []release.Input{
		{Kind: release.Module, Name: "k8s.io/kubernetes", Version: "v1.37.2-0.acme.1-patched.p1.c2",
			Replaces: "k8s.io/kubernetes@v1.37.2-0.acme.1"},
		{Kind: release.Module, Name: "k8s.io/api", Version: "v0.37.2-0.acme.1"},
		{Kind: release.Module, Name: "k8s.io/api", Version: "v0.36.0"},
		{Kind: release.Module, Name: "golang.org/x/net", Version: "v0.60.0"},
		{Kind: release.Repository, Name: url, Version: "fix", Commit: commit, Changes: []string{"k8s.io/api", "k8s.io/kubernetes"}},
	}}
	of := map[string]bool{}
	for purl, c := range newBuilder(r, "test").inputs {
		x, s := c.cyclonedx(), c.spdx()
		of[purl] = strings.HasSuffix(s.PackageSourceInfo, "made of the git repository "+url+"@"+commit)
		if of[purl] != (x.Pedigree != nil && (*x.Pedigree.Commits)[0] == (cdx.Commit{UID: commit, URL: url})) {
			t.Errorf("%s: SPDX says %q, and CycloneDX %+v", purl, s.PackageSourceInfo, x.Pedigree)
		}
	}
	want := map[string]bool{
		"pkg:golang/k8s.io/kubernetes@v1.37.2-0.acme.1-patched.p1.c2": true, "pkg:golang/k8s.io/api@v0.37.2-0.acme.1": true,
		"pkg:golang/k8s.io/api@v0.36.0": false, "pkg:golang/golang.org/x/net@v0.60.0": false}
	if !maps.Equal(of, want) {
		t.Errorf("made of the repository: %v", of)
	}
}

// Another project may have a module that is patched for Kubernetes, and not for it.
func TestPatchesAreOfPatchedModulesAlone(t *testing.T) {
	t.Parallel()
	r := small()
	other := release.Input{Kind: release.Module, Name: "k8s.io/api", Version: "v0.36.0", Sum: sum, License: "Apache-2.0"}
	r.Inputs = append(r.Inputs, other)
	r.Artifacts[2].Inputs = append(r.Artifacts[2].Inputs, other.PURL())
	d, err := Release(r)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, c := range d.Components {
		if c.Name != "k8s.io/api" {
			continue
		}
		found++
		if patched := c.Version != other.Version; patched != (len(c.Patches) == 1) {
			t.Errorf("%s %s has %d patches", c.Name, c.Version, len(c.Patches))
		}
	}
	if found != 2 {
		t.Errorf("%d modules", found)
	}
	for at, want := range map[int]bool{1: true, 2: false} {
		inputs, err := release.OriginsOf(r).Of(r.Artifacts[at])
		if err != nil || slices.ContainsFunc(inputs, func(in release.Input) bool { return in.Kind == release.Patch }) != want {
			t.Errorf("%s: %v, %v", r.Artifacts[at].Name, inputs, err)
		}
	}
}
