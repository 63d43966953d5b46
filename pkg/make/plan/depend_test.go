package plan

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/tree/catalog"
)

func TestInputs(t *testing.T) {
	t.Parallel()
	module := []string{
		"cmd/go.mod", "cmd/go.sum",
		"fake/kubernetes/LICENSE", "fake/kubernetes/go.mod", "fake/kubernetes/pkg/", "fake/kubernetes/test/", // it is replaced
	}
	bin := "_output/local/bin/linux/arm64/"
	tests := []struct {
		action string
		want   []string
	}{
		{"compile linux/arm64 kubelet", append([]string{"cmd/kubelet/"}, module...)},
		{"compile linux/arm64 kube-apiserver", append([]string{"cmd/internal/letters/", "cmd/internal/words/",
			"cmd/kube-apiserver/"}, module...)},
		{"compile linux/arm64 smoke.test", append([]string{"cmd/smoke/"}, module...)},
		{"compile linux/arm64 e2e.test", module},
		{"compile linux/arm64 dns", []string{"images/dns/dns/", "images/dns/go.mod", "images/dns/go.sum", "fake/dns/LICENSE", "fake/dns/ctl/",
			"fake/dns/go.mod", "fake/dns/version/"}},
		{"image linux/arm64 dns", []string{bin + "dns", "_output/release-stage/sources/images/static/",
			"_output/release-stage/spdx/dns/linux-arm64.json"}},
		{"image linux/arm64 kube-apiserver", []string{
			bin + "kube-apiserver", bin + "kube-log-runner", "_output/release-stage/sources/images/static/",
			"_output/release-stage/spdx/components/linux-arm64.json",
		}},
		{"image layout", []string{"_output/release-stage/images/linux-arm64/dns/", "_output/release-stage/images/linux-arm64/kube-apiserver/"}},
		{"spdx linux/arm64 components", append([]string{
			"_output/release-stage/sources/LICENSE", "_output/release-stage/packages/components/linux-arm64.json",
		}, module...)},
		{"licenses linux/arm64 components", append([]string{
			"_output/release-stage/sources/LICENSE", "_output/release-stage/modules/components/linux-arm64.json",
			"_output/release-stage/packages/components/linux-arm64.json",
		}, module...)},
		{"modules linux/arm64 components", []string{bin + "kube-apiserver", bin + "kube-log-runner", bin + "kubectl", bin + "kubelet"}},
		{"package kubernetes-client-linux-arm64.tar.gz", []string{bin + "kubectl"}},
		{"package kubernetes-node-linux-arm64.tar.gz", []string{
			bin + "kubelet", bin + "kube-log-runner", bin + "kubectl",
			"_output/release-stage/licenses/components/linux-arm64.tar", "_output/release-tars/kubernetes-src.tar.gz",
		}},
		{"package kubernetes-server-linux-arm64.tar.gz", []string{
			bin + "dnsctl", bin + "kube-apiserver", bin + "kubelet", bin + "kube-log-runner", bin + "kubectl",
			"_output/release-images/arm64/kube-apiserver.tar", "_output/release-images/arm64/kube-apiserver.docker_tag",
			"_output/release-images/arm64/dns.tar", "_output/release-images/arm64/dns.docker_tag",
			"_output/release-stage/licenses/components/linux-arm64.tar", "_output/release-stage/licenses/dns/linux-arm64.tar",
			"_output/release-tars/kubernetes-src.tar.gz",
			"_output/release-stage/sources/release/manifests/addons/",
		}},
		{"package kubernetes-manifests.tar.gz", []string{"_output/release-stage/sources/release/manifests/"}},
		{"package kubernetes.tar.gz", []string{"_output/release-stage/sources/README.md", "_output/release-stage/sources/LICENSE",
			"_output/release-stage/sources/docs/"}},
	}
	g := graph(t, open(t, tree(t)), Request{Tars: true, TestSet: true, Platforms: []catalog.Platform{linuxARM64}})
	for _, tt := range tests {
		t.Run(tt.action, func(t *testing.T) {
			t.Parallel()
			got := slices.Clone(find(t, g, tt.action).Inputs)
			slices.Sort(got)
			slices.Sort(tt.want)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("inputs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChecksumsCoverEveryTarball(t *testing.T) {
	t.Parallel()
	g := graph(t, open(t, tree(t)), Request{Tars: true, TestSet: true, Everywhere: true})
	inputs := find(t, g, "checksums").Inputs
	for _, a := range g.Actions {
		for _, out := range a.Outputs {
			if strings.HasSuffix(out, ".tar.gz") && a.Phase == "package" && !slices.Contains(inputs, out) {
				t.Errorf("%s has no checksum", out)
			}
		}
	}
}

func TestBinariesOfAModuleAndPlatformAreCompiledAtOnce(t *testing.T) {
	t.Parallel()
	g := graph(t, open(t, tree(t)), Request{Tars: true, Everywhere: true})
	batches := map[string]*action.Batch{}
	for _, a := range g.Actions {
		if a.Phase != "compile" {
			continue
		}
		words := strings.Fields(a.ID)
		compile := words[1] + " of cmd"
		if strings.HasPrefix(words[2], "dns") {
			compile = words[1] + " of images/dns"
		}
		if a.Batch == nil || batches[compile] != nil && batches[compile] != a.Batch {
			t.Errorf("%s is not in the batch of %s", a.ID, compile)
		}
		batches[compile] = a.Batch
	}
	if len(batches) != 6 {
		t.Errorf("%d compiles, want 4 of components and 2 of another project: %v", len(batches), batches)
	}
}

// recipes returns the recipes of all actions, by ID.
func recipes(g *action.Graph) map[string][]string {
	all := map[string][]string{}
	for _, a := range g.Actions {
		all[a.ID] = a.Recipe
	}
	return all
}

func TestWhatASettingRebuilds(t *testing.T) {
	t.Parallel()
	every := []string{"binaries", "checksums", "compile", "image", "licenses", "package", "packages", "spdx"}
	tests := []struct {
		variable string
		want     []string // first words of the actions' names
	}{
		// A client tarball has no version file, and another project's binaries and images have versions of their own.
		{"KUBE_GIT_VERSION=v1.36.3+acme.2", []string{"compile (some)", "image (some)", "package (some)"}},
		{"SOURCE_DATE_EPOCH=1700000000", []string{"compile (some)", "image (some)", "package"}},
		{"DBG=1", []string{"compile", "packages"}},
		{"GOFLAGS=-tags=acme", []string{"compile", "packages"}},
		{"GOLDFLAGS=-w", []string{"compile"}},
		{"GOGCFLAGS=-l", []string{"compile"}},
		{"KUBE_DOCKER_REGISTRY=registry.acme.example", []string{"image (some)"}},
		{"KUBE_DOCKER_IMAGE_TAG=nightly", []string{"image (some)"}},
		{"KUBE_VERBOSE=2", nil},
	}
	root := tree(t)
	req := Request{Tars: true, TestSet: true, Everywhere: true}
	before := recipes(graph(t, open(t, root), req))
	for _, tt := range tests {
		t.Run(tt.variable, func(t *testing.T) {
			t.Parallel()
			after := recipes(graph(t, open(t, root, tt.variable), req))
			var got []string
			for _, kind := range every {
				same, changed := 0, 0
				for id, recipe := range after {
					switch {
					case strings.Fields(id)[0] != kind:
					case slices.Equal(recipe, before[id]):
						same++
					default:
						changed++
					}
				}
				switch {
				case changed > 0 && same > 0:
					got = append(got, kind+" (some)")
				case changed > 0:
					got = append(got, kind)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("changed recipes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecipesHoldNothingOfTheMachine(t *testing.T) {
	t.Parallel()
	req := Request{Tars: true, TestSet: true, Everywhere: true}
	one, other := recipes(graph(t, open(t, tree(t)), req)), recipes(graph(t, open(t, tree(t)), req))
	if diff := cmp.Diff(one, other); diff != "" {
		t.Errorf("two trees of the same sources have different recipes:\n%s", diff)
	}
}

// A job that makes one platform and a job that makes all of them share results: actions of one platform have the same recipe and inputs in
// both. The job for all has to run only those that cover several platforms.
func TestReleaseOfOnePlatformIsAPartOfTheWhole(t *testing.T) {
	t.Parallel()
	p := open(t, tree(t))
	whole := map[string]*action.Action{}
	for _, a := range graph(t, p, Request{Tars: true, TestSet: true, Everywhere: true}).Actions {
		whole[a.ID] = a
	}
	left := maps.Clone(whole)
	for _, platform := range p.Catalog.AllPlatforms() {
		for _, a := range graph(t, p, Request{Tars: true, TestSet: true, Platforms: []catalog.Platform{platform}}).Actions {
			same := whole[a.ID]
			if same == nil {
				t.Errorf("%s: %s is no part of the whole release", platform, a.ID)
				continue
			}
			if slices.Equal(a.Recipe, same.Recipe) && slices.Equal(a.Inputs, same.Inputs) {
				delete(left, a.ID)
			}
		}
	}
	want := []string{"checksums", "description", "image layout", "provenance", "release.json", "sbom"}
	if got := slices.Sorted(maps.Keys(left)); !slices.Equal(got, want) {
		t.Errorf("the last job has to make %q, want %q", got, want)
	}
}

// What only the test set has is described apart, also if it is a component that an image alone holds. So a quick release takes the other
// descriptions from a whole one.
func TestDescriptionsOfBinariesAreTheSameWithoutTheTestSet(t *testing.T) {
	t.Parallel()
	ar, err := txtar.ParseFile("testdata/tree.txtar")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(ar.Files, func(f txtar.File) bool { return f.Name == "release/release.yaml" })
	const image = "images:\n- {name: tests, set: test, base: static, binary: hyperkube, version: v1.0.0, created: 2026-02-13T18:39:11Z, " +
		"title: Tests}\n"
	edit := strings.NewReplacer("\nimages:\n", "\n"+image, "./hyperkube, only: [linux/arm64]", "./hyperkube, only: [linux/amd64, linux/arm64]")
	root := tree(t, file(ar.Files[i].Name, edit.Replace(string(ar.Files[i].Data))))
	p := open(t, root)
	with := graph(t, p, Request{Tars: true, TestSet: true, Platforms: []catalog.Platform{linuxARM64}})
	seen := map[string]bool{}
	for _, a := range graph(t, p, Request{Tars: true, Platforms: []catalog.Platform{linuxARM64}}).Actions {
		if !strings.HasPrefix(a.ID, "binaries ") {
			continue
		}
		seen[a.ID] = true
		same := with.Actions[slices.IndexFunc(with.Actions, func(other *action.Action) bool { return other.ID == a.ID })]
		if !slices.Equal(a.Recipe, same.Recipe) || !slices.Equal(a.Inputs, same.Inputs) {
			t.Errorf("%s has other inputs with the test set: %q, %q", a.ID, a.Inputs, same.Inputs)
		}
	}
	want := []string{"binaries linux/arm64 components", "binaries linux/arm64 dns"}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want) {
		t.Errorf("actions %q, want %q", got, want)
	}
	tests := with.Actions[slices.IndexFunc(with.Actions,
		func(a *action.Action) bool { return a.ID == "binaries linux/arm64 components-test" })]
	if !slices.ContainsFunc(tests.Inputs, func(in string) bool { return path.Base(in) == "hyperkube" }) {
		t.Errorf("the program of an image for tests is not in %q", tests.Inputs)
	}
}

func TestAnotherProjectHasItsOwnVersions(t *testing.T) {
	t.Parallel()
	g := graph(t, open(t, tree(t)), Request{Tars: true, Platforms: []catalog.Platform{linuxARM64}})
	all := recipes(g)
	if compile := strings.Join(all["compile linux/arm64 dnsctl"], " "); !strings.Contains(compile,
		"-X=example.com/dns/version.Version=v1.2.3") ||
		strings.Contains(compile, "acme") {
		t.Errorf("compiled by %s", compile)
	}
	image := all["image linux/arm64 dns"]
	for _, line := range []string{
		`ArchiveTags[0]="registry.example.com/dns/dns-arm64:v1.2.3"`, `ArchiveTags[1]="registry.example.com/dns/dns:v1.2.3"`,
		`Tags[0]="registry.example.com/dns/dns:v1.2.3"`, `Version="v1.2.3"`,
	} {
		if !slices.Contains(image, line) {
			t.Errorf("no %s in %q", line, image)
		}
	}
	server := strings.Join(all["package kubernetes-server-linux-arm64.tar.gz"], "\n")
	for _, member := range [][2]string{
		{"/dnsctl", "addons/bin/dnsctl"}, {"/dns.tar", "addons/images/dns.tar"}, {"/kube-apiserver.tar", "server/bin/kube-apiserver.tar"},
		{"/dns/linux-arm64.tar", "LICENSES/dns"},
	} {
		if !regexp.MustCompile(`\.From="[^"]*` + member[0] + `"\n[^\n]*\n[^\n]*\.To="` + member[1] + `"`).MatchString(server) {
			t.Errorf("no member %s in\n%s", member, server)
		}
	}
}

func TestImageOfAnotherProjectIsTheSameInEveryRelease(t *testing.T) {
	t.Parallel()
	root := tree(t)
	req := Request{Tars: true, Platforms: []catalog.Platform{linuxARM64}}
	release := graph(t, open(t, root), req)
	next := graph(t, open(t, root, "KUBE_GIT_VERSION=v1.36.3+acme.2", "KUBE_GIT_COMMIT=fedcba9876543210fedcba9876543210fedcba98",
		"SOURCE_DATE_EPOCH=1700000000"), req)
	const own, other = "image linux/arm64 kube-apiserver", "image linux/arm64 dns"
	if diff := cmp.Diff(find(t, release, other).Recipe, find(t, next, other).Recipe); diff != "" {
		t.Errorf("the recipe (-release +next):\n%s", diff)
	}
	if slices.Equal(find(t, release, own).Recipe, find(t, next, own).Recipe) {
		t.Error("the image of a component does not follow the release")
	}
}

func TestAnotherProjectIsCompiledByTheLocalRoad(t *testing.T) {
	t.Parallel()
	root := tree(t)
	req := Request{Tars: true, Platforms: []catalog.Platform{linuxARM64}}
	local, container := graph(t, open(t, root), req), graph(t, open(t, root, "ROAD=container"), req)
	find(t, container, "compile linux/arm64 by container kubelet")
	a, b := find(t, local, "compile linux/arm64 dns"), find(t, container, "compile linux/arm64 dns")
	if !slices.Equal(a.Outputs, b.Outputs) || !slices.Equal(a.Recipe, b.Recipe) || b.Batch.ID != a.Batch.ID+" by the local road" {
		t.Errorf("with the local road: %v %v; with the container road: %v %v", a.Outputs, a.Batch.ID, b.Outputs, b.Batch.ID)
	}
}

func TestBaseOfDebianPackages(t *testing.T) {
	t.Parallel()
	root := tree(t)
	name := filepath.Join(root, "release", "release.yaml")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(data), "name: kube-apiserver, base: static", "name: kube-apiserver, base: odd", 1)
	if err := os.WriteFile(name, []byte(edited), 0o644); err != nil {
		t.Fatal(err)
	}
	g := graph(t, open(t, root), Request{Tars: true, Platforms: []catalog.Platform{linuxARM64}})
	const packages = "_output/release-stage/debian/odd/linux-arm64.tar"
	if got := find(t, g, "debian linux/arm64 odd"); !slices.Equal(got.Outputs, []string{packages}) ||
		!slices.Equal(got.Inputs, []string{"_output/release-stage/sources/images/odd/debian.lock"}) {
		t.Errorf("packages %v are made from %v", got.Outputs, got.Inputs)
	}
	for _, id := range []string{"image linux/arm64 kube-apiserver", "licenses linux/arm64 debian"} {
		if got := find(t, g, id).Inputs; !slices.Contains(got, packages) {
			t.Errorf("%s is made from %v", id, got)
		}
	}
	if got := find(t, g, "image linux/arm64 kube-apiserver").Inputs; !slices.Contains(got, "_output/release-stage/sources/images/static/") {
		t.Errorf("the image is made from %v, but its base builds on static", got)
	}
	if got := recipes(g)["package kubernetes-server-linux-arm64.tar.gz"]; !slices.ContainsFunc(got, func(line string) bool {
		return strings.HasSuffix(line, `.To="LICENSES/debian"`)
	}) {
		t.Errorf("the server tarball holds %q", got)
	}
}

func TestServerTarballHasTheTreesConfigurationOfContainerd(t *testing.T) {
	t.Parallel()
	const of = "_output/release-stage/sources/release/defaults/containerd/"
	for _, has := range []bool{true, false} {
		var files []txtar.File
		if has {
			files = append(files, file("release/defaults/containerd/config.toml", "sandbox = '__REGISTRY__/pause'\n"))
		}
		g := graph(t, open(t, tree(t, files...)), Request{Tars: true, Platforms: []catalog.Platform{linuxARM64}})
		plannable(t, g)
		tar := find(t, g, "package kubernetes-server-linux-arm64.tar.gz")
		if slices.Contains(tar.Inputs, of) != has {
			t.Errorf("of a tree that has one (%v): %q", has, tar.Inputs)
		}
		if copied := find(t, g, "sources").Inputs; slices.Contains(copied, "release/defaults/containerd/config.toml") != has {
			t.Errorf("of a tree that has one (%v), copied: %q", has, copied)
		}
	}
}
