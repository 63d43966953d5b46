package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/source"
)

func TestRequestsPlanTheseActions(t *testing.T) {
	t.Parallel()
	server := []string{
		"compile linux/arm64 kube-apiserver", "compile linux/arm64 kube-log-runner", "compile linux/arm64 kubectl",
		"compile linux/arm64 kubelet",
	}
	release := append([]string{
		"binaries linux/arm64 components", "binaries linux/arm64 dns", "checksums", "compile linux/arm64 dns", "compile linux/arm64 dnsctl",
		"description", "image layout", "image linux/arm64 dns", "image linux/arm64 kube-apiserver",
		"licenses linux/arm64 components", "licenses linux/arm64 dns",
		"modules linux/arm64 components", "modules linux/arm64 dns",
		"package kubernetes-client-linux-arm64.tar.gz", "package kubernetes-manifests.tar.gz",
		"package kubernetes-node-linux-arm64.tar.gz", "package kubernetes-server-linux-arm64.tar.gz",
		"package kubernetes-src.tar.gz", "package kubernetes.tar.gz", "packages linux/arm64 components", "packages linux/arm64 dns", "provenance",
		"release.json", "sbom", "sources",
		"spdx linux/arm64 components", "spdx linux/arm64 dns",
	}, server...)
	tests := []struct {
		name string
		req  Request
		want []string
	}{
		{
			name: "one component for two platforms",
			req:  Request{What: "cmd/kubectl", Platforms: []catalog.Platform{linuxARM64, darwinARM64}},
			want: []string{"compile darwin/arm64 kubectl", "compile linux/arm64 kubectl"},
		},
		{
			name: "two components, each where it can be built",
			req:  Request{What: "kubectl kubelet", Platforms: []catalog.Platform{linuxARM64, darwinARM64}},
			want: []string{"compile darwin/arm64 kubectl", "compile linux/arm64 kubectl", "compile linux/arm64 kubelet"},
		},
		{
			name: "a component that is in no set",
			req:  Request{What: "hyperkube", Platforms: []catalog.Platform{linuxARM64}},
			want: []string{"compile linux/arm64 hyperkube"},
		},
		{
			name: "all components of a platform: those of the sets, without the test set",
			req:  Request{Platforms: []catalog.Platform{linuxARM64}},
			want: server,
		},
		{
			name: "only what a platform has",
			req:  Request{Platforms: []catalog.Platform{darwinARM64}},
			want: []string{"compile darwin/arm64 kubectl"},
		},
		{
			name: "images, with what they hold",
			req:  Request{Images: true, Platforms: []catalog.Platform{linuxARM64}},
			want: []string{
				"compile linux/arm64 dns", "compile linux/arm64 kube-apiserver", "compile linux/arm64 kube-log-runner", "image layout",
				"image linux/arm64 dns", "image linux/arm64 kube-apiserver", "packages linux/arm64 components", "packages linux/arm64 dns",
				"sources", "spdx linux/arm64 components", "spdx linux/arm64 dns",
			},
		},
		{
			name: "a release of one platform",
			req:  Request{Tars: true, Platforms: []catalog.Platform{linuxARM64}},
			want: release,
		},
		{
			name: "the same with the test set",
			req:  Request{Tars: true, TestSet: true, Platforms: []catalog.Platform{linuxARM64}},
			want: append([]string{
				"binaries linux/arm64 components-test", "compile linux/arm64 e2e.test", "compile linux/arm64 smoke.test", "licenses linux/arm64 test",
				"modules linux/arm64 test",
				"package kubernetes-test-linux-arm64.tar.gz", "package kubernetes-test-portable.tar.gz", "packages linux/arm64 test",
				"spdx linux/arm64 test",
			}, release...),
		},
		{
			name: "a release of a client platform has the client tarball alone",
			req:  Request{Tars: true, TestSet: true, Platforms: []catalog.Platform{darwinARM64}},
			want: []string{
				"binaries darwin/arm64 components", "checksums", "compile darwin/arm64 kubectl", "description",
				"package kubernetes-client-darwin-arm64.tar.gz",
				"package kubernetes-manifests.tar.gz", "package kubernetes-src.tar.gz", "package kubernetes-test-portable.tar.gz",
				"package kubernetes.tar.gz", "packages darwin/arm64 components", "provenance", "release.json", "sbom", "sources",
				"spdx darwin/arm64 components",
			},
		},
	}
	p := open(t, tree(t))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := graph(t, p, tt.req)
			slices.Sort(tt.want)
			if diff := cmp.Diff(tt.want, ids(g)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			plannable(t, g)
		})
	}
}

func TestFullReleaseHasTheTarballsOfTheCatalog(t *testing.T) {
	t.Parallel()
	p := open(t, treeWithEtcd(t))
	g := graph(t, p, Request{Tars: true, TestSet: true, API: true, Everywhere: true})
	plannable(t, g)
	var got []string
	for _, id := range ids(g) {
		if name, ok := strings.CutPrefix(id, "package "); ok {
			got = append(got, name)
		}
	}
	want := p.Catalog.Tarballs(p.Catalog.AllPlatforms())
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tarballs (-want +got):\n%s", diff)
	}
}

func TestTreeWithoutTestSetHasNoTestTarballs(t *testing.T) {
	t.Parallel()
	root := tree(t,
		file("release/release.yaml", "module: cmd\ngo: {version: go1.26.8, sums: {linux-amd64: "+
			"\"h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM=\"}}\nsets: {client: [linux/arm64]}\n"+
			"binaries: [{name: kubectl, package: ./kubectl, sets: [client]}]\nregistry: registry.example.com\n"))
	if err := os.RemoveAll(filepath.Join(root, "release", "packages")); err != nil {
		t.Fatal(err)
	}
	g := graph(t, open(t, root), Request{Tars: true, TestSet: true, Everywhere: true})
	want := []string{
		"binaries linux/arm64 components", "checksums", "compile linux/arm64 kubectl", "description",
		"package kubernetes-client-linux-arm64.tar.gz",
		"package kubernetes-manifests.tar.gz", "package kubernetes-src.tar.gz", "package kubernetes.tar.gz",
		"packages linux/arm64 components", "provenance", "release.json", "sbom", "sources", "spdx linux/arm64 components",
	}
	if diff := cmp.Diff(want, ids(g)); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

func TestOwnMachineGetsComponentsThatAreNotReleasedForIt(t *testing.T) {
	t.Parallel()
	p := open(t, tree(t))
	host := catalog.Host().String()
	// hyperkube is for linux/arm64 alone, kubelet not for macOS.
	for _, component := range []string{"hyperkube", "kubelet"} {
		g := graph(t, p, Request{What: component})
		if diff := cmp.Diff([]string{"compile " + host + " " + component}, ids(g)); diff != "" {
			t.Errorf("actions (-want +got):\n%s", diff)
		}
	}
}

func TestEverywherePlansThePlatformsOfTheCatalog(t *testing.T) {
	t.Parallel()
	g := graph(t, open(t, tree(t)), Request{What: "hyperkube", Everywhere: true})
	if diff := cmp.Diff([]string{"compile linux/arm64 hyperkube"}, ids(g)); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

func TestRequestsThatCannotBeFulfilled(t *testing.T) {
	t.Parallel()
	p := open(t, tree(t))
	tests := []struct {
		name string
		req  Request
		want string
	}{
		{"a component nowhere asked for", Request{What: "kubelet", Platforms: []catalog.Platform{darwinARM64}},
			"kubelet is not built for darwin/arm64; it is for linux/amd64, linux/arm64, windows/amd64"},
		{"one of two", Request{What: "kubectl hyperkube", Platforms: []catalog.Platform{linuxAMD64, windowsAMD64}},
			"hyperkube is not built for linux/amd64, windows/amd64; it is for linux/arm64"},
		{"images of a client platform", Request{Images: true, Platforms: []catalog.Platform{darwinARM64}},
			"an image is not built for darwin/arm64; it is for linux/amd64, linux/arm64"},
		{"an unknown component", Request{What: "hypercube"}, `unknown component "hypercube"; did you mean hyperkube?`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := New(t.Context(), p, tt.req)
			if err == nil || err.Error() != tt.want {
				t.Fatalf("error %q, want %q", err, tt.want)
			}
			if !badrequest.Is(err) {
				t.Errorf("%T is not the request's fault", err)
			}
		})
	}
}

func TestCopiesOfTheSourcesDependOnTheCodeThatReadsThem(t *testing.T) {
	t.Parallel()
	g, err := New(t.Context(), open(t, tree(t)), Request{Tars: true, Platforms: []catalog.Platform{linuxARM64}})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range g.Graph.Actions {
		if (a.ID == "sources" || a.ID == "package kubernetes-src.tar.gz") && !slices.Contains(a.Recipe, source.Code.String()) {
			t.Errorf("%s does not depend on the code that reads the sources", a.ID)
		}
	}
}
