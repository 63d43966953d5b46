package catalog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProblemsNameTheirLineAndWhatWasMeant(t *testing.T) {
	t.Parallel()
	const kubelet = "- {name: kubelet, package: ./kubelet, sets: [server, node]}"
	const registry = "registry: registry.k8s.io"
	for name, tt := range map[string]struct {
		edit edit
		want string // without the file, one problem a line
	}{
		"unknown field":         {edit{"tags:", "tagz:"}, `7: unknown field "tagz"; did you mean tags?`},
		"unknown field of many": {edit{"tags:", "color:"}, `7: unknown field "color"`},
		"unknown inner field": {edit{kubelet, "- {name: kubelet, pakage: ./kubelet, sets: [node]}"},
			"16: unknown field \"pakage\"; did you mean package?\n16: binary kubelet has neither a package nor a test"},
		"missing field":       {edit{"registry: registry.k8s.io", ""}, `1: the file has no field "registry"`},
		"missing inner field": {edit{", title: Kubernetes API server", ""}, `26: an image has no field "title"`},
		"missing sums": {edit{"", "module: cmd\ngo: {version: go1.26.8}\nsets: {node: [linux/386]}\n" +
			"binaries: [{name: a, package: ./kubelet, sets: [node]}]\nregistry: a.b"}, `2: go has no field "sums"`},
		"empty field":        {edit{"registry: registry.k8s.io", "registry:"}, `28: registry is empty`},
		"blank field":        {edit{"registry: registry.k8s.io", `registry: " "`}, `28: registry is empty`},
		"empty list":         {edit{"tags: [selinux, notest]", "tags: []"}, `7: tags is empty`},
		"empty item":         {edit{"tags: [selinux, notest]", "tags: [selinux, ~]"}, `7: an item of tags is empty`},
		"text for a list":    {edit{"tags: [selinux, notest]", "tags: selinux"}, `7: tags must be a list, not text`},
		"list for a text":    {edit{"module: cmd", "module: [cmd]"}, `1: module must be text, not a list`},
		"list for a mapping": {edit{kubelet, "- [kubelet]"}, `16: a binary must be a mapping, not a list`},
		"number for a text":  {edit{"Kubernetes API server", "1.36"}, `26: title must be text; put quotes around 1.36`},
		"key twice":          {edit{"registry:", "module: other\nregistry:"}, `28: duplicate key "module", first on line 1`},
		"set twice":          {edit{"  test: [", "  node: [linux/amd64]\n  test: ["}, `12: duplicate key "node", first on line 10`},

		"another form": {edit{"tags: [selinux, notest]", "form: v2\ntagz: 1"},
			"7: it has form v2, and this slipway reads form v1: another version of slipway is for this tree, see its go.mod"},

		"broken YAML":     {edit{"tags: [selinux, notest]", "tags: [selinux, notest"}, `7: did not find expected ',' or ']'`},
		"tab in YAML":     {edit{"  version: go1.26.8", "\tversion: go1.26.8"}, `3: found character that cannot start any token`},
		"stray key":       {edit{"tags: [selinux, notest]", "tags: [selinux, notest]\n stray"}, `8: did not find expected key`},
		"unknown anchor":  {edit{"tags: [selinux, notest]", "tags: *nowhere"}, ` unknown anchor 'nowhere' referenced`},
		"empty file":      {edit{"", "# nothing\n"}, ` the file is empty`},
		"text for a file": {edit{"", "kubectl"}, `1: the file must be a mapping, not text`},
		"second document": {edit{"registry: registry.k8s.io", "registry: registry.k8s.io\n---\na: b"},
			`29: a second document begins here; the file must have only one`},
		"module elsewhere": {edit{"module: cmd", "module: ../cmd"},
			`1: module: "../cmd" is not a folder of the repository, written with slashes`},
		"module of tests": {edit{"module: cmd", "module: test/cmd"},
			`1: module: no release is made of test/cmd: use a folder outside of test and testdata, with no name that begins with _ or a dot`},
		"module of data": {edit{"module: cmd", "module: cmd/testdata/a"},
			`1: module: no release is made of cmd/testdata/a: use a folder outside of test and testdata, with no name that begins with _ or a dot`},
		"no kubernetes": {edit{"	k8s.io/kubernetes v1.36.3\n", ""},
			"1: module: ROOT/cmd/go.mod does not require k8s.io/kubernetes, which sets a release's version"},
		"broken go.mod": {edit{"go 1.26.0", "g0 1.26.0"}, `1: module: ROOT/cmd/go.mod:3: unknown directive: g0`},

		"odd Go version": {edit{"go1.26.8", "1.26.8"}, `3: "1.26.8" is not a Go version like go1.26.8`},
		"Go candidate":   {edit{"go1.26.8", "go1.26rc1"}, `3: "go1.26rc1" is not a Go version like go1.26.8`},
		"Go too old":     {edit{"go1.26.8", "go1.25.9"}, `3: go1.25.9 is older than the Go that cmd/go.mod asks for, 1.26.0`},
		"odd FIPS module": {edit{"go1.26.8", "go1.26.8\n  fips: latest"},
			`4: "latest" is not a version of Go's cryptographic module like v1.0.0`},
		"FIPS projects without": {edit{"go1.26.8", "go1.26.8\n  fipsProjects: true"},
			`4: fipsProjects has no effect without fips: v1.0.0`},
		"FIPS mode without": {edit{"go1.26.8", "go1.26.8\n  fipsEnvironment: true"},
			`4: fipsEnvironment has no effect without fips: v1.0.0`},
		"FIPS module of slipway": {edit{"tags: [", "toolchain: {version: go1.26.8, fips: v1.0.0, sums: {linux-amd64: " +
			"'h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM='}}\ntags: ["},
			`7: toolchain: fips and what begins with it stand under go, as they are about what is released`},
		"source that is no commit": {edit{"tags: [", "source: {repository: /k, commit: v1.37.2, tree: '01'}\ntags: ["},
			`7: "v1.37.2" is not a commit, in hex
7: "01" is not a tree of git, in hex`},
		"source with a password": {edit{"tags: [", "source: {repository: 'https://me:secret@git.example/k', commit: '" +
			strings.Repeat("0", 40) + "', tree: '" + strings.Repeat("0", 40) + "'}\ntags: ["},
			`7: "https://***@git.example/k" is not the address of a repository without a password`},
		"source without a tree": {edit{"tags: [", "source: {repository: /k, commit: '" + strings.Repeat("0", 40) + "'}\ntags: ["},
			`7: source has no field "tree"`},
		"override of no module": {edit{"tags: [", "overrides: [{module: a//b, version: v1.2.3}]\ntags: ["},
			`7: override: malformed module path "a//b": double slash`},
		"override by a branch": {edit{"tags: [", "overrides: [{module: k8s.io/component-base, version: master}]\ntags: ["},
			`7: override of k8s.io/component-base: "master" is not a version of it like v1.2.3`},
		"override by another major version": {edit{"tags: [", "overrides: [{module: k8s.io/component-base, version: v2.0.0}]\ntags: ["},
			`7: override of k8s.io/component-base: "v2.0.0" is not a version of it like v1.2.3`},
		"override that is not in go.mod": {edit{"tags: [", "overrides: [{module: k8s.io/component-base, version: v0.36.4}]\ntags: ["},
			`7: override of k8s.io/component-base: cmd/go.mod has k8s.io/component-base@v0.36.3, not v0.36.4 or newer`},
		"override with a branch of a fork": {edit{"tags: [",
			"overrides: [{module: k8s.io/component-base, version: v0.36.3, with: example.com/fork@main}]\ntags: ["},
			`7: override of k8s.io/component-base: "example.com/fork@main" is not another module and its version ` +
				`like example.com/fork@v1.2.3`},
		"override with another version of itself": {edit{"tags: [",
			"overrides: [{module: k8s.io/component-base, version: v0.36.3, with: k8s.io/component-base@v0.36.2}]\ntags: ["},
			`7: override of k8s.io/component-base: "k8s.io/component-base@v0.36.2" is not another module and its version ` +
				`like example.com/fork@v1.2.3`},
		"override with a fork that is not in go.mod": {edit{"tags: [",
			"overrides: [{module: k8s.io/component-base, version: v0.36.3, with: example.com/fork@v0.36.3}]\ntags: ["},
			`7: override of k8s.io/component-base: cmd/go.mod has k8s.io/component-base@v0.36.3, not example.com/fork@v0.36.3 for v0.36.3`},
		"override of what nothing requires": {edit{"tags: [", "overrides: [{module: example.com/a, version: v1.0.0}]\ntags: ["},
			`7: override of example.com/a: no go.mod that it is for requires the module`},
		"override where nothing is compiled": {edit{"tags: [",
			"overrides: [{module: k8s.io/component-base, version: v0.36.3, in: [cmd, images/static]}]\ntags: ["},
			`7: override of k8s.io/component-base: no binary is compiled in "images/static"`},
		"override twice": {edit{"tags: [", "overrides:\n- {module: k8s.io/component-base, version: v0.36.3}\n" +
			"- {module: k8s.io/component-base, version: v0.36.2}\ntags: ["},
			`9: duplicate override of k8s.io/component-base, first on line 8`},
		"override that fixes words": {edit{"tags: [",
			"overrides: [{module: k8s.io/component-base, version: v0.36.3, fixes: [a leak]}]\ntags: ["},
			`7: override of k8s.io/component-base: "a leak" is not the name of a vulnerability like CVE-2026-12345`},
		"override with a long reason": {edit{"tags: [",
			"overrides: [{module: k8s.io/component-base, version: v0.36.3, reason: \"one\\ntwo\"}]\ntags: ["},
			`7: override of k8s.io/component-base: the reason has more than one line`},
		"override without a version": {edit{"tags: [", "overrides: [{module: k8s.io/component-base}]\ntags: ["},
			`7: an override has no field "version"`},
		"sum of other kind": {edit{"h1:ZOm", "h2:ZOm"},
			`5: "h2:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM=" is not a sum: h1: and the base64 of 32 bytes`},
		"sum cut short": {edit{"4nis1RXM=", ""}, `5: "h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ" is not a sum: h1: and the base64 of 32 bytes`},
		"sum left out":  {edit{"h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM=", ""}, `5: the sum of linux-amd64 is empty`},
		"unknown host":  {edit{"linux-amd64:", "linux-amd46:"}, `5: unknown host "linux-amd46"; did you mean linux-amd64?`},
		"unknown license": {edit{"tags: [", "licenses: {example.com/a: Free Software}\ntags: ["},
			`7: "Free Software" is not an SPDX license expression like MIT or (Apache-2.0 AND BSD-3-Clause)`},
		"denied expression": {edit{"tags: [", "licenses: {deny: [MIT OR ISC]}\ntags: ["},
			`7: "MIT OR ISC" is not the SPDX identifier of a license, like MIT or GPL-2.0-only`},
		"policy of nothing": {edit{"tags: [", "licenses: {allow: []}\ntags: ["}, `7: allow is empty`},
		"policy in words":   {edit{"tags: [", "licenses: {deny: GPL}\ntags: ["}, `7: deny must be a list, not text`},
		"denied and allowed": {edit{"tags: [", "licenses:\n  deny: [GPL-2.0-only]\n  allow: [MIT, GPL-2.0]\ntags: ["},
			`9: GPL-2.0-only is denied, too`},
		"license of what": {edit{"tags: [", "licenses: {a//b: MIT}\ntags: ["}, `7: licenses: malformed module path "a//b": double slash`},
		"odd snapshot": {edit{"tags: [", "debian: {snapshot: 'http://a.example/{time}'}\ntags: ["},
			`7: debian: snapshot: "http://a.example/{time}" is not an address such as http://snapshot.example.com/{archive}/{time}`},
		"odd tag":   {edit{"notest", "no-test"}, `7: "no-test" is not a build tag: letters, digits, underscores and dots`},
		"tag twice": {edit{"notest", "selinux"}, `7: duplicate tag "selinux", first on line 7`},

		"unknown set":        {edit{"  test: [", "  tset: ["}, `12: unknown set "tset"; did you mean test?`},
		"unknown set of all": {edit{"  test: [", "  desktop: ["}, `12: unknown set "desktop"; it can be server, node, client, test or addons`},
		"unknown platform": {edit{"server: [linux/amd64,", "server: [linux/amd46,"},
			`9: unknown platform "linux/amd46"; did you mean linux/amd64?`},
		"platform twice": {edit{"server: [linux/amd64,", "server: [linux/arm64,"},
			"9: duplicate platform \"linux/arm64\", first on line 9"},
		"unknown binary set": {edit{"[server, node, client]", "[server, node, clent]"}, `18: unknown set "clent"; did you mean client?`},
		"binary set twice":   {edit{"[server, node, client]", "[server, client, client]"}, `18: duplicate set "client", first on line 18`},
		"set not declared": {edit{"  client: [linux/amd64, darwin/arm64, windows/amd64]\n", ""},
			`17: binary kubectl: set client has no platforms in this file`},
		"binary twice": {edit{"name: kubelet,", "name: kubectl,"}, `18: duplicate binary "kubectl", first on line 16`},
		"binary in a folder": {edit{"name: kubelet,", "name: ../kubelet,"},
			`16: "../kubelet" is not a name for a binary: letters, digits, and .-_ between them`},
		"package and test": {edit{"package: ./kubelet,", "package: ./kubelet, test: ./smoke,"},
			`16: binary kubelet has both a package and a test`},
		"only is nowhere": {edit{"sets: [test], only: [linux/amd64]", "sets: [test], only: [darwin/arm64]"},
			`23: binary e2e_node.test: only darwin/arm64, but none of its sets has that platform`},
		"only in no set": {edit{"only: [linux/arm64,", "only: [plan9/arm,"},
			`19: binary hyperkube: only plan9/arm, but no set has that platform`},
		"only is unknown": {edit{"only: [linux/arm64,", "only: [linux/arm65,"},
			`19: unknown platform "linux/arm65"; did you mean linux/arm64?`},
		"neither set nor only": {edit{", only: [linux/arm64, linux/amd64]", ""},
			`19: binary hyperkube has neither sets nor only, so there is no platform for it`},

		"one Go name": {edit{"package: k8s.io/kubernetes/test/conformance/image/go-runner,",
			"package: k8s.io/component-base/other/ginkgo,"},
			`22: binary go-runner: the Go command calls it ginkgo, as it does binary ginkgo on line 21, and both are for linux/amd64`},
		"one package twice": {edit{"package: ./kube-aggregator,", "package: ./kube-apiserver,"},
			`15: binary kube-aggregator: the Go command calls it kube-apiserver, as it does binary kube-apiserver on line 14, and both are for linux/amd64`},
		"one Go name of two": {edit{"name: e2e_node.test, test: k8s.io/kubernetes/test/e2e_node,",
			"name: e2e_node.test, test: k8s.io/component-base/e2e,"},
			`23: binary e2e_node.test: the Go command calls it e2e.test, as it does binary e2e.test on line 20, and both are for linux/amd64`},

		"missing package": {edit{"package: ./kubectl,", "package: ./kubctl,"},
			`18: binary kubectl: there is no folder cmd/kubctl; did you mean ./kubectl?`},
		"package elsewhere": {edit{"package: ./kubectl,", "package: ./../kubectl,"},
			`18: binary kubectl: "./../kubectl" is not a folder below cmd, written with slashes`},
		"package without Go": {edit{"package: ./kubectl,", "package: ./nothing,"}, `18: binary kubectl: cmd/nothing has no .go files`},
		"package of tests":   {edit{"package: ./kubectl,", "package: ./smoke,"}, `18: binary kubectl: cmd/smoke has no .go files`},
		"test without tests": {edit{"test: ./smoke", "test: ./kubectl"}, `24: binary smoke.test: cmd/kubectl has no _test.go files`},
		"package without ./": {edit{"package: ./kubectl,", "package: cmd/kubectl,"},
			`18: binary kubectl: no module that cmd/go.mod requires has package cmd/kubectl; did you mean ./kubectl?`},
		"package in full": {edit{"package: ./kubectl,", "package: slipway.build/cmd/kubectl,"},
			`18: binary kubectl: no module that cmd/go.mod requires has package slipway.build/cmd/kubectl; did you mean ./kubectl?`},
		"not an import path": {edit{"package: ./kubectl,", "package: k8s.io//kubectl,"},
			`18: binary kubectl: malformed import path "k8s.io//kubectl": double slash`},
		"module not required": {edit{"	k8s.io/component-base v0.36.3\n", ""},
			`17: binary kube-log-runner: no module that cmd/go.mod requires has package k8s.io/component-base/logs/kube-log-runner`},
		"module misspelled": {edit{"package: k8s.io/component-base/", "package: k8s.io/component-bas/"},
			`17: binary kube-log-runner: no module that cmd/go.mod requires has package k8s.io/component-bas/logs/kube-log-runner; did you mean k8s.io/component-base?`},
		"module's namesake": {edit{"package: k8s.io/component-base/", "package: k8s.io/component-base2/"},
			`17: binary kube-log-runner: no module that cmd/go.mod requires has package k8s.io/component-base2/logs/kube-log-runner; did you mean k8s.io/component-base?`},

		"unknown image binary": {edit{"binary: kubectl,", "binary: kubctl,"}, `27: unknown binary "kubctl"; did you mean kubectl?`},
		"image not of server": {edit{"binary: kubectl,", "binary: ginkgo,"},
			`27: binary "ginkgo" is not in the server set, which images are made from`},
		"missing base": {edit{"{name: kubectl, base: static,", "{name: kubectl, base: statik,"},
			`27: there is no folder images/statik for the base; did you mean static?`},
		"base elsewhere": {edit{"{name: kubectl, base: static,", "{name: kubectl, base: ../images/static,"},
			`27: there is no folder images/../images/static for the base`},
		"image twice": {edit{"{name: kubectl, base:", "{name: kube-apiserver, base:"},
			`27: duplicate image "kube-apiserver", first on line 26`},
		"odd image name": {edit{"{name: kubectl, base:", "{name: KubeCtl, base:"}, `27: "KubeCtl" is not a name for an image`},
		"odd registry": {edit{registry, "registry: https://registry.k8s.io"},
			`28: "https://registry.k8s.io" is not a registry like registry.k8s.io or localhost:5000/folder`},
		"registry with a slash": {edit{registry, "registry: registry.k8s.io/"},
			`28: "registry.k8s.io/" is not a registry like registry.k8s.io or localhost:5000/folder`},
		"registry of a port": {edit{registry, "registry: \":5000\""},
			`28: ":5000" is not a registry like registry.k8s.io or localhost:5000/folder`},
		"registry in capitals": {edit{registry, "registry: registry.k8s.io/Team"},
			`28: "registry.k8s.io/Team" is not a registry like registry.k8s.io or localhost:5000/folder`},
		"image name of dashes": {edit{"{name: kubectl, base:", "{name: kube//ctl, base:"}, `27: "kube//ctl" is not a name for an image`},
		"cache of the web": {edit{registry, registry + "\ncache: {url: \"https://cache.example\", keys: [cmd/go.mod]}"},
			`29: "https://cache.example" is not the URL of a cache like grpcs://cache.example/main`},
		"cache with a password": {edit{registry, registry + "\ncache: {url: \"grpcs://me:p@ss@cache.example\", keys: [cmd/go.mod]}"},
			`29: "grpcs://***@cache.example" is not the URL of a cache like grpcs://cache.example/main`},
		"keys of a cache": {edit{registry, registry + "\ncache: {url: \"grpcs://cache.example\", keys: [../a.pub, none.pub, cmd, cmd/go.mod, " +
			"cmd/go.mod]}"},
			"29: duplicate key \"cmd/go.mod\", first on line 29\n29: \"../a.pub\" is not a file of the tree, written with slashes\n" +
				"29: there is no file none.pub with a key\n" +
				"29: there is no file cmd with a key"},
		"registry of no host": {edit{registry, "registry: kubernetes"},
			`28: "kubernetes" is not a registry like registry.k8s.io or localhost:5000/folder`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := tree(t, tt.edit)
			file := filepath.Join(root, "release", "release.yaml")
			_, err := Load(root)
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("got %v, want an InvalidError", err)
			}
			got := strings.ReplaceAll(err.Error(), file+":", "")
			got = filepath.ToSlash(strings.ReplaceAll(got, root, "ROOT"))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRegistryIsTheOneThatKubeadmAsks(t *testing.T) {
	t.Parallel()
	root := tree(t)
	file := filepath.Join(root, filepath.FromSlash(KubeadmDefaults))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	for registry, ok := range map[string]bool{"registry.k8s.io": true, `"registry.k8s.io"`: true, "registry.acme.example": false} {
		if err := os.WriteFile(file, []byte("kind: ClusterConfiguration\nimageRepository: "+registry+" # mine\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Load(root)
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "has kubeadm ask for those of registry.acme.example") {
			t.Errorf("%s: error %v", registry, err)
		}
	}
}

func TestRegistryMayHaveAPortAndFolders(t *testing.T) {
	t.Parallel()
	for _, registry := range []string{"localhost:5000", "gcr.io/k8s-staging/release", "localhost:5000/a"} {
		c, err := Load(tree(t, edit{"registry: registry.k8s.io", "registry: " + registry}))
		if err != nil {
			t.Error(err)
			continue
		}
		if c.Registry != registry {
			t.Errorf("got %q, want %q", c.Registry, registry)
		}
	}
}

func TestAllProblemsComeAtOnceByLine(t *testing.T) {
	t.Parallel()
	root := tree(t,
		edit{"registry: registry.k8s.io", "registry: https://registry.k8s.io"},
		edit{"module: cmd", "modul: cmd"},
		edit{"package: ./kubectl,", "package: [./kubectl],"},
		edit{"server: [linux/amd64,", "server: [linux/amd46,"},
		edit{"go1.26.8", "1.26"},
		edit{"binary: kubectl,", "binary: kublet,"},
	)
	file := filepath.Join(root, "release", "release.yaml")
	_, err := Load(root)
	want := &InvalidError{[]Problem{
		{file, 1, `unknown field "modul"; did you mean module?`},
		{file, 1, `the file has no field "module"`},
		{file, 3, `version must be text; put quotes around 1.26`},
		{file, 9, `unknown platform "linux/amd46"; did you mean linux/amd64?`},
		{file, 18, `package must be text, not a list`},
		{file, 27, `unknown binary "kublet"; did you mean kubelet?`},
		{file, 28, `"https://registry.k8s.io" is not a registry like registry.k8s.io or localhost:5000/folder`},
	}}
	var got *InvalidError
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want an InvalidError", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if first, _, _ := strings.Cut(err.Error(), "\n"); first != file+`:1: unknown field "modul"; did you mean module?` {
		t.Errorf("the error begins with %q", first)
	}
}

func TestMissingModuleIsNamed(t *testing.T) {
	t.Parallel()
	root := tree(t)
	file := filepath.Join(root, "cmd", "go.mod")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	_, err := Load(root)
	if err == nil || !strings.Contains(err.Error(), "release.yaml:1: module: open "+file) {
		t.Errorf("got %v, want an error on line 1 that names %s", err, file)
	}
}
