package catalog

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const draft = `# All that is released.
module: cmd

# Compiles use it – this one.
go:
  version: go1.26.8
  sums:
    linux-amd64: h1:a
    linux-arm64: h1:b

tags: [selinux] # of every compile
images:
- {name: etcd, version: 3.7.0-0, created: 2026-07-08T18:18:55Z,
   source: https://github.com/etcd-io/etcd, title: etcd}
- {name: pause, version: "3.10.2", created: 2026-11-21T13:13:24Z}
- {name: agnhost, version: 2.66.1, created: &kubernetes 2026-09-23T17:06:22Z, title: "– é"}
- {name: agnhost, version: "2.55", created: *kubernetes}
- {name: sample, version: 1.29.2, created: 2026-05-12T19:47:40Z,
   revision: adfe804de7f72f9cc828d264093f0dfe4e5e3a23, title: Sample}
- name: block
  version: v1.2.3
  revision: adfe804de7f72f9cc828d264093f0dfe4e5e3a23
  created: 2026-05-12T19:47:40Z
`

func TestDraftChangesNothingElse(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	hash := strings.Repeat("0a", 20)
	for _, tt := range []struct {
		name     string
		change   func(d *Draft) error
		old, new string
	}{
		{"nothing", func(*Draft) error { return nil }, "", ""},
		{"version and time", func(d *Draft) error { return d.SetImage(0, Image{Version: "3.6.8-0", Created: at}) },
			"3.7.0-0, created: 2026-07-08T18:18:55Z", "3.6.8-0, created: 2027-01-02T03:04:05Z"},
		{"a new commit", func(d *Draft) error { return d.SetImage(0, Image{Version: "3.6.8-0", Revision: hash}) },
			"3.7.0-0, created: 2026-07-08T18:18:55Z", "3.6.8-0, created: 2026-07-08T18:18:55Z, revision: " + hash},
		{"another commit", func(d *Draft) error { return d.SetImage(4, Image{Version: "1.30.0", Revision: hash}) },
			"1.29.2, created: 2026-05-12T19:47:40Z,\n   revision: adfe804de7f72f9cc828d264093f0dfe4e5e3a23",
			"1.30.0, created: 2026-05-12T19:47:40Z,\n   revision: " + hash},
		{"no commit any more", func(d *Draft) error { return d.SetImage(4, Image{Version: "1.30.0"}) },
			"1.29.2, created: 2026-05-12T19:47:40Z,\n   revision: adfe804de7f72f9cc828d264093f0dfe4e5e3a23",
			"1.30.0, created: 2026-05-12T19:47:40Z"},
		{"in lines", func(d *Draft) error { return d.SetImage(5, Image{Version: "v1.2.4"}) },
			"v1.2.3\n  revision: adfe804de7f72f9cc828d264093f0dfe4e5e3a23", "v1.2.4"},
		{"a commit in lines", func(d *Draft) error {
			if err := d.SetImage(5, Image{Version: "v1.2.4"}); err != nil {
				return err
			}
			return d.SetImage(5, Image{Version: "v1.2.4", Revision: hash})
		}, "v1.2.3\n  revision: adfe804de7f72f9cc828d264093f0dfe4e5e3a23\n  created: 2026-05-12T19:47:40Z",
			"v1.2.4\n  created: 2026-05-12T19:47:40Z\n  revision: " + hash},
		{"one has what another had", func(d *Draft) error {
			if err := d.SetImage(2, Image{Version: "2.55"}); err != nil {
				return err
			}
			return d.SetImage(3, Image{Version: "2.40"})
		}, "version: 2.66.1, created: &kubernetes 2026-09-23T17:06:22Z, title: \"– é\"}\n- {name: agnhost, version: \"2.55\"",
			"version: \"2.55\", created: &kubernetes 2026-09-23T17:06:22Z, title: \"– é\"}\n- {name: agnhost, version: \"2.40\""},
		{"quotes stay", func(d *Draft) error { return d.SetImage(1, Image{Version: "3.10.1"}) }, `"3.10.2"`, `"3.10.1"`},
		{"quotes come", func(d *Draft) error { return d.SetImage(2, Image{Version: "2.59"}) }, "2.66.1", `"2.59"`},
		{"an anchor", func(d *Draft) error { return d.SetImage(3, Image{Created: at}) },
			"&kubernetes 2026-09-23T17:06:22Z", "&kubernetes 2027-01-02T03:04:05Z"},
		{"a name", func(d *Draft) error { return d.SetImage(3, Image{Name: "dns/old"}) },
			`agnhost, version: "2.55"`, `dns/old, version: "2.55"`},
		{"another Go", func(d *Draft) error {
			return d.SetToolchain("go", "", Toolchain{Version: "go1.25.9", Sums: map[string]string{"linux-amd64": "h1:c", "darwin-arm64": "h1:d"}})
		}, "go1.26.8\n  sums:\n    linux-amd64: h1:a\n    linux-arm64: h1:b", "go1.25.9\n  sums:\n    linux-amd64: h1:c\n    darwin-arm64: h1:d"},
		{"another Go with a cryptographic module", func(d *Draft) error {
			return d.SetToolchain("go", "", Toolchain{Version: "go1.25.9", Sums: map[string]string{"linux-amd64": "h1:c"},
				FIPS: "v1.0.0", FIPSProjects: true, FIPSEnvironment: true})
		}, "go1.26.8\n  sums:\n    linux-amd64: h1:a\n    linux-arm64: h1:b",
			"go1.25.9\n  sums:\n    linux-amd64: h1:c\n  fips: v1.0.0\n  fipsProjects: true\n  fipsEnvironment: true"},
		{"a second Go", func(d *Draft) error {
			return d.SetToolchain("toolchain", "Slipway's.", Toolchain{Version: "go1.27.1", Sums: map[string]string{"linux-amd64": "h1:c"}})
		}, "h1:b\n", "h1:b\n\n# Slipway's.\ntoolchain:\n  version: go1.27.1\n  sums:\n    linux-amd64: h1:c\n"},
		{"a source", func(d *Draft) error {
			return d.SetSource(Source{Repository: "https://git.example/kubernetes", Ref: "#1", Commit: strings.Repeat("1", 40), Tree: hash})
		}, "h1:b\n", "h1:b\n\n# Kubernetes' modules are made of this commit, and do not come from a module proxy.\nsource:\n" +
			"  repository: https://git.example/kubernetes\n  ref: '#1'\n  commit: \"" + strings.Repeat("1", 40) + "\"\n  tree: " + hash + "\n"},
		{"another source, then none", func(d *Draft) error {
			return errors.Join(d.SetSource(Source{Repository: "/a", Ref: "b", Commit: hash, Tree: hash}),
				d.SetSource(Source{Repository: "/c", Commit: hash, Tree: hash}), d.SetSource(Source{}))
		}, "", ""},
	} {
		d := &Draft{[]byte(draft)}
		if err := tt.change(d); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff(strings.Replace(draft, tt.old, tt.new, 1), string(d.Bytes())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestDroppedProjectIsGoneAlone(t *testing.T) {
	t.Parallel()
	const others = `binaries:
- {name: etcd, package: ./etcd, module: images/etcd}
- {name: etcdctl, package: ./etcdctl, module: images/etcd,
   stamp: example.org/version}
- {name: pause, package: ./pause, module: images/pause}
images:
- {name: etcd, binary: etcd,
   version: 3.7.0-0}
- {name: tools, binary: etcdctl}
- {name: more, binary: pause, with: [etcdctl]}
# The last.
- {name: pause, binary: pause}
`
	d := &Draft{[]byte(others)}
	for range 2 {
		if err := d.DropProject("images/etcd"); err != nil {
			t.Fatal(err)
		}
	}
	const want = `binaries:
- {name: pause, package: ./pause, module: images/pause}
images:
# The last.
- {name: pause, binary: pause}
`
	if diff := cmp.Diff(want, string(d.Bytes())); diff != "" {
		t.Error(diff)
	}
}

func TestDroppedToolchainLeavesNoTrace(t *testing.T) {
	t.Parallel()
	d := &Draft{[]byte(draft)}
	for range 2 {
		own := Toolchain{Version: "go1.27.1", Sums: map[string]string{"linux-amd64": "h1:c"}}
		if err := d.SetToolchain("toolchain", "Slipway's.", own); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := d.DropToolchain("toolchain"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(draft, string(d.Bytes())); diff != "" {
		t.Error(diff)
	}
}

func TestDraftOfNoSuchImage(t *testing.T) {
	t.Parallel()
	d := &Draft{[]byte(draft)}
	for _, at := range []int{-1, 6} {
		err := d.SetImage(at, Image{Version: "1"})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("no image at position %d", at)) {
			t.Error(err)
		}
	}
}

// Every version in this repository's release.yaml can be changed, and changed back.
func TestDraftOfThisRepository(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	c, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	d, err := ReadDraft(root)
	if err != nil {
		t.Fatal(err)
	}
	before := string(d.Bytes())
	for at, im := range c.Images {
		if !im.Versioned() {
			continue
		}
		other := im
		other.Version, other.Created = "v0.0.1", time.Unix(0, 0)
		if err := d.SetImage(at, other); err != nil {
			t.Fatal(err)
		}
		if err := d.SetImage(at, im); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.SetToolchain("go", "", c.Go); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, string(d.Bytes())); diff != "" {
		t.Error(diff)
	}
}

func TestDroppedAddonIsGoneWithTheListIfItWasTheLast(t *testing.T) {
	t.Parallel()
	d := &Draft{[]byte("registry: r\n\n# On request.\naddons:\n- {name: storage,\n   files: [a]}\n# Small.\n- {name: hello}\nimages: []\n")}
	for _, step := range []struct{ drop, want string }{
		{"none", "registry: r\n\n# On request.\naddons:\n- {name: storage,\n   files: [a]}\n# Small.\n- {name: hello}\nimages: []\n"},
		{"storage", "registry: r\n\n# On request.\naddons:\n# Small.\n- {name: hello}\nimages: []\n"},
		{"hello", "registry: r\nimages: []\n"},
		{"hello", "registry: r\nimages: []\n"},
	} {
		if err := d.DropAddon(step.drop); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, string(d.Bytes())); diff != "" {
			t.Errorf("without %s (-want +got):\n%s", step.drop, diff)
		}
	}
}
