package catalog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// addons adds another project, with an image, to the tree: a whole release.yaml, in which tests edit.
func addons(t *testing.T, edits ...edit) (root string) {
	t.Helper()
	text := `module: cmd
go: {version: go1.26.8, sums: {linux-amd64: "h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM="}}
sets: {server: &server [linux/amd64, linux/arm64], node: [linux/amd64]}
binaries:
- {name: kubelet, package: ./kubelet, sets: [server, node]}
- {name: dns, package: ./dns, module: images/dns, only: *server}
- {name: dnsctl, package: example.com/dns/ctl, module: images/dns, stamp: example.com/dns/version.Version, sets: [server], folder: addons/bin}
- {name: dnsd, package: example.com/dns/dnsd, module: images/dns, only: *server}
images:
- {name: kubelet, base: static, binary: kubelet, title: Kubelet}
- {name: dns/dns, binary: dnsd, with: [dns, dnsctl], version: v1.2.3-4, created: 2026-02-13T18:39:11Z, revision: 0123456789abcdef0123456789abcdef01234567, source: https://example.com/dns, user: "65535:65535", title: Names}
registry: a.b
`
	for _, e := range edits {
		if strings.Count(text, e.old) != 1 {
			t.Fatalf("%q occurs %d times, want once", e.old, strings.Count(text, e.old))
		}
		text = strings.Replace(text, e.old, e.new, 1)
	}
	return tree(t, edit{"", text})
}

func TestAnotherProject(t *testing.T) {
	t.Parallel()
	c, err := Load(addons(t))
	if err != nil {
		t.Fatal(err)
	}
	want := Binary{
		Name: "dnsctl", Module: "images/dns", ModulePath: "slipway.build/images/dns", Package: "example.com/dns/ctl",
		Stamp: "example.com/dns/version.Version", Sets: []Set{Server}, Folder: "addons/bin",
	}
	if diff := cmp.Diff(want, c.Binaries[2]); diff != "" {
		t.Error(diff)
	}
	if got := c.Binaries[1].ImportPath(); got != "slipway.build/images/dns/dns" {
		t.Errorf("import path %s", got)
	}
	if got := c.Binaries[2].FolderIn(Server) + " " + c.Binaries[0].FolderIn(Node); got != "addons/bin node/bin" {
		t.Errorf("folders %s", got)
	}
	i := c.Images[1]
	if i.File() != "dns" || !i.Versioned() || c.Images[0].Versioned() || strings.Join(i.Binaries(), " ") != "dnsd dns dnsctl" {
		t.Errorf("image %+v", i)
	}
	if got := names(c.Default()); got != "kubelet" {
		t.Errorf("built when none is named: %s", got)
	}
	if got := len(c.ImagesFor(Server, Platform{OS: "linux", Arch: "arm64"})); got != 2 {
		t.Errorf("%d images", got)
	}
	for word, want := range map[string]string{
		"images/dns": "dns dnsctl dnsd", "images/...": "dns dnsctl dnsd", "images/dns/dns": "dns", "dnsctl": "dnsctl", "cmd/...": "kubelet",
		"example.com/dns/ctl": "dnsctl",
	} {
		if found, err := c.Match(word); err != nil || names(found) != want {
			t.Errorf("%s is %q (%v), want %q", word, names(found), err, want)
		}
	}
}

func TestProblemsWithAnotherProject(t *testing.T) {
	t.Parallel()
	const dns = "- {name: dns, package: ./dns, module: images/dns,"
	for name, tt := range map[string]struct {
		edit edit
		want string
	}{
		"no such module": {edit{dns, "- {name: dns, package: ./dns, module: images/dnsx,"},
			"6: module: open ROOT/images/dnsx/go.mod: no such file or directory"},
		"unknown field": {edit{"folder: addons/bin", "foldr: addons/bin"}, `7: unknown field "foldr"; did you mean folder?`},
		"no such package": {edit{dns, "- {name: dns, package: ./dn, module: images/dns,"},
			`6: binary dns: there is no folder images/dns/dn; did you mean ./dns?`},
		"package of others": {edit{dns, "- {name: dns, package: k8s.io/kubernetes/a, module: images/dns,"},
			`6: binary dns: no module that images/dns/go.mod requires has package k8s.io/kubernetes/a`},
		"folder outside": {edit{"folder: addons/bin", "folder: ../bin"},
			`7: binary dnsctl: "../bin" is not a folder below a tarball's top, written with slashes`},
		"folder in no tarball": {edit{dns, dns + " folder: a,"}, `6: binary dns has a folder, but is in no set whose tarballs could have it`},
		"stamp of nothing": {edit{"stamp: example.com/dns/version.Version", "stamp: example.com/dns/version"},
			`7: binary dnsctl: "example.com/dns/version" is not a variable like example.com/project/version.Version`},
		"stamp of a component": {edit{"package: ./kubelet,", "package: ./kubelet, stamp: a.b/c.V,"},
			`5: binary kubelet: stamp is for other projects; components have the release's version`},
		"stamp of our own": {edit{dns, dns + " stamp: a.b/c.V,"},
			`6: binary dns: its package is in images/dns itself, which has no version`},
		"version of others": {edit{"v1.2.3-4", "v1.2.4"},
			`11: image dns/dns: v1.2.4 is not of version v1.2.3, which images/dns/go.mod requires`},
		"version of a kin": {edit{"v1.2.3-4", "v1.2.34"},
			`11: image dns/dns: v1.2.34 is not of version v1.2.3, which images/dns/go.mod requires`},
		"no version": {edit{" version: v1.2.3-4, created: 2026-02-13T18:39:11Z, revision: 0123456789abcdef0123456789abcdef01234567, " +
			"source: https://example.com/dns,", ""}, `11: image dns/dns: it needs a version: binary dnsd is of another project`},
		"no time": {edit{"created: 2026-02-13T18:39:11Z, ", ""},
			`11: image dns/dns: a version needs "created": the time when it was made`},
		"odd time": {edit{"created: 2026-02-13T18:39:11Z", "created: 2026-02-13"},
			`11: created: "2026-02-13" is not a time like 2006-01-02T15:04:05Z`},
		"odd commit": {edit{"revision: 0123456789abcdef", "revision: v"},
			`11: "v0123456789abcdef01234567" is not a commit: 40 hexadecimal digits in lower case`},
		"odd source": {edit{"https://example.com/dns", "git@example.com:dns"},
			`11: "git@example.com:dns" is not the URL of a repository like https://github.com/etcd-io/etcd`},
		"source with password": {edit{"https://example.com/dns", "https://a:b@example.com/dns"},
			`11: "https://a:b@example.com/dns" is not the URL of a repository like https://github.com/etcd-io/etcd`},
		"source of components": {edit{"base: static,", "base: static, source: https://example.com,"},
			`10: image kubelet: source is for images with a version of their own; this one has the release's`},
		"version of components": {edit{"base: static,", "base: static, created: 2026-02-13T18:39:11Z, version: v1,"},
			`10: image kubelet: a component's image has the release's version, and none of its own`},
		"odd version":  {edit{"v1.2.3-4", "v1.2.3+4"}, `11: "v1.2.3+4" is not a version for an image: letters, digits, and _ . -`},
		"odd user":     {edit{`"65535:65535"`, "nobody"}, `11: "nobody" is not a user and a group by number, like 65532:65532`},
		"unknown with": {edit{"with: [dns,", "with: [dms,"}, `11: unknown binary "dms"; did you mean dns?`},
		"archives of one name": {edit{"name: kubelet, base", "name: other/dns, base"},
			`11: the archive of image dns/dns would be dns.tar, as is that of the one on line 10`},
		"not for a platform": {edit{"example.com/dns/dnsd, module: images/dns, only: *server",
			"example.com/dns/dnsd, module: images/dns, only: [linux/amd64]"}, `11: binary "dnsd" is not for linux/arm64, which images are made for`},
		"Go too old": {edit{"go1.26.8", "go1.26.2"}, `2: go1.26.2 is older than the Go that images/dns/go.mod asks for, 1.26.4`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := addons(t, tt.edit)
			_, err := Load(root)
			if !errors.As(err, new(*InvalidError)) {
				t.Fatalf("got %v, want an InvalidError", err)
			}
			got := strings.ReplaceAll(err.Error(), filepath.Join(root, "release", "release.yaml")+":", "")
			if diff := cmp.Diff(tt.want, filepath.ToSlash(strings.ReplaceAll(got, root, "ROOT"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// optional adds an addon to the tree of another project.
func optional(t *testing.T, edits ...edit) (root string) {
	t.Helper()
	root = addons(t, append([]edit{
		{"node: [linux/amd64]}", "node: [linux/amd64], addons: [linux/arm64]}"},
		{"registry: a.b\n", "- {name: disk, set: addons, base: static, binary: kubelet, title: Disk}\n" +
			"addons:\n- {name: storage, module: images/dns, from: example.com/dns, files: [crd/a.yaml, crd/b.yaml]}\nregistry: a.b\n"},
	}, edits...)...)
	if err := os.MkdirAll(filepath.Join(root, "release", "addons", "storage"), 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestOptionalAddon(t *testing.T) {
	t.Parallel()
	c, err := Load(optional(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []Addon{{Name: "storage", Module: "images/dns", From: "example.com/dns", Files: []string{"crd/a.yaml", "crd/b.yaml"}}}
	if diff := cmp.Diff(want, c.Addons); diff != "" {
		t.Error(diff)
	}
	arm := Platform{OS: "linux", Arch: "arm64"}
	if got := c.ImagesFor(Addons, arm); len(got) != 1 || got[0].Name != "disk" || got[0].File() != "disk" {
		t.Errorf("images of addons: %+v", got)
	}
	if got := len(c.ImagesFor(Server, arm)); got != 2 {
		t.Errorf("%d images for servers", got)
	}
}

func TestProblemsWithOptionalAddons(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		edit edit
		want string
	}{
		"no manifests": {edit{"{name: storage,", "{name: storge,"}, `14: there is no folder release/addons/storge; did you mean storage?`},
		"odd name": {edit{"{name: storage,", "{name: ../storage,"},
			`14: "../storage" is not a name for an addon: a-z, 0-9, and - between them`},
		"no platforms": {edit{", addons: [linux/arm64]}", "}"}, "12: image disk: set addons has no platforms in this file\n" +
			"14: addon storage: set addons has no platforms in this file"},
		"files of none": {edit{"module: images/dns, from", "from"}, `14: addon storage: module, from and files go together`},
		"files of another": {edit{"from: example.com/dns", "from: example.com/other"},
			`14: addon storage: images/dns/go.mod does not require example.com/other`},
		"file outside": {edit{"crd/b.yaml", "../b.yaml"}, `14: addon storage: "../b.yaml" is not a file of a module, written with slashes`},
		"file twice":   {edit{"crd/b.yaml", "crd/a.yaml"}, `14: duplicate file "crd/a.yaml", first on line 14`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := optional(t, tt.edit)
			_, err := Load(root)
			if !errors.As(err, new(*InvalidError)) {
				t.Fatalf("got %v, want an InvalidError", err)
			}
			got := strings.ReplaceAll(err.Error(), filepath.Join(root, "release", "release.yaml")+":", "")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
