package catalog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// packaged adds packages to the tree of another project.
func packaged(t *testing.T, edits ...edit) (root string) {
	t.Helper()
	root = addons(t, append([]edit{{"registry: a.b\n", `packages:
- {name: node, binaries: [kubelet], summary: Runs Pods, folders: [/var/lib/node],
   requires: [iptables >= 1.4, mount], rpm: {conflicts: [tar]}, scripts: {preremove: bye.sh}}
- {name: dns, binaries: [dnsctl], folder: /opt/dns, summary: Asks for names}
maintainer: Acme <k8s@acme.example>
basePackages: {deb: [iptables], rpm: [iptables, mount]}
registry: a.b
`}}, edits...)...)
	for name, text := range map[string]string{"node.deb/etc/default/node": "A=\n", "bye.sh": "true\n"} {
		file := filepath.Join(root, filepath.FromSlash(PackageFolder), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestPackages(t *testing.T) {
	t.Parallel()
	c, err := Load(packaged(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, on := range []Platform{{OS: "linux", Arch: "arm64"}, {OS: "windows", Arch: "amd64"}} {
		for _, p := range c.PackagesFor(on) {
			r := p.With(p.RPM)
			got = append(got, on.String()+" "+p.Name+" "+p.Version+" "+p.Path(p.Binaries[0]))
			for _, relation := range append(r.Requires, r.Conflicts...) {
				got = append(got, relation.String())
			}
		}
	}
	want := []string{"linux/arm64 node  /usr/bin/kubelet", "iptables >= 1.4", "mount", "tar", "linux/arm64 dns v1.2.3 /opt/dns/dnsctl"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestProblemsWithPackages(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		edit edit
		want string
	}{
		"unknown binary": {edit{"[kubelet], summary", "[kublet], summary"}, `unknown binary "kublet"; did you mean kubelet?`},
		"odd name": {edit{"{name: node,", "{name: Node,"},
			`"Node" is not a name for a package: two or more of a-z, 0-9, and - between them` +
				"\n" + `the folder release/packages/node.deb is no package's: unknown package "node"; did you mean Node?`},
		"odd relation": {edit{"iptables >= 1.4,", "iptables => 1.4,"},
			`"iptables => 1.4" is not a package, as in iptables or iptables >= 1.4.21`},
		"odd folder": {edit{"/var/lib/node", "/var/../node"}, `"/var/../node" is not a folder in its shortest form`},
		"odd address": {edit{"Acme <k8s@acme.example>", "k8s@acme.example"},
			`"k8s@acme.example" is not a name and an address like Acme <k8s@acme.example>`},
		"nobody": {edit{"maintainer: Acme <k8s@acme.example>\n", ""},
			"packages need a maintainer, whom users can ask, as in maintainer: Acme <k8s@acme.example>"},
		"no script": {edit{"bye.sh", "../bye.sh"}, "package node: there is no file release/bye.sh with a script"},
		"odd base package": {edit{"deb: [iptables]", "deb: [iptables >= 1]"},
			`"iptables >= 1" is not the name of a package, in any version, like iptables`},
		"own base package": {edit{"deb: [iptables]", "deb: [dns]"},
			"base package dns is one of the release, on line 15: repositories must have it"},
		"same file": {edit{"[dnsctl], folder: /opt/dns", "[kubelet]"}, "package dns: /usr/bin/kubelet is in package node, too"},
		"two versions": {edit{"[dnsctl]", "[dnsctl, kubelet]"}, `package dns: binary "kubelet" has version that of the release, ` +
			"and another one in it v1.2.3; a package has one version"},
		"nothing in it": {edit{"binaries: [dnsctl], folder: /opt/dns, ", ""},
			"package dns has neither binaries nor files in release/packages/dns"},
		"another set": {edit{"[dnsctl]", "[dns]"}, `package dns: binary "dns" is not in the server set, which packages are made of`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(packaged(t, tt.edit))
			if !errors.As(err, new(*InvalidError)) {
				t.Fatalf("got %v, want an InvalidError", err)
			}
			var got []string
			for line := range strings.Lines(err.Error()) {
				_, rest, _ := strings.Cut(line, ".yaml:")
				_, problem, _ := strings.Cut(rest, ": ")
				got = append(got, strings.TrimSpace(problem))
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
