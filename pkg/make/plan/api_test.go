package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/tree/catalog"
)

// treeWithEtcd is tree with what the API's files are made with.
func treeWithEtcd(t *testing.T) (root string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(tree(t), "release", "release.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const next = "- {name: dnsctl"
	const etcd = "- {name: etcd, package: example.com/dns/etcd, module: images/dns, sets: [server], folder: addons/bin}\n"
	return tree(t, file("release/release.yaml", strings.Replace(string(data), next, etcd+next, 1)))
}

func TestTheAPIIsThatOfTheHostsPrograms(t *testing.T) {
	t.Parallel()
	p := open(t, treeWithEtcd(t))
	host := catalog.Host().String()
	api := []string{"api", "compile " + host + " etcd", "compile " + host + " kube-apiserver"}
	alone, err := New(t.Context(), p, Request{API: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(api, ids(alone.Graph)); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Result{{"_output/api", "api"}}, alone.Results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	req := Request{Tars: true, Platforms: []catalog.Platform{windowsAMD64}} // no host is Windows
	without := ids(graph(t, p, req))
	req.API = true
	planned, err := New(t.Context(), p, req)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Concat(without, api, []string{"package kubernetes-api.tar.gz"})
	slices.Sort(want)
	if diff := cmp.Diff(want, ids(planned.Graph)); diff != "" {
		t.Errorf("actions of a release (-want +got):\n%s", diff)
	}
	if a, ok := planned.Release.Artifact(catalog.APITarball); !ok || (a.Platform != catalog.Platform{}) || len(a.Of) > 0 {
		t.Errorf("the tarball is %+v, want one that is the same for all platforms", a)
	}
	if i := slices.IndexFunc(planned.Release.Platforms, func(on catalog.Platform) bool { return on != windowsAMD64 }); i >= 0 {
		t.Errorf("the release is for %s, too", planned.Release.Platforms[i])
	}
	plannable(t, planned.Graph)
}

func TestCatalogWithoutEtcdHasNoAPI(t *testing.T) {
	t.Parallel()
	p := open(t, tree(t))
	_, err := New(t.Context(), p, Request{API: true})
	if err == nil || !strings.Contains(err.Error(), "release.yaml lacks kube-apiserver or etcd") {
		t.Errorf("error %v", err)
	}
	if all := ids(graph(t, p, Request{Tars: true, API: true})); slices.Contains(all, "package "+catalog.APITarball) {
		t.Errorf("actions %q", all)
	}
}
