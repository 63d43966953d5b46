package vulns

import (
	"testing"

	"slipway.build/pkg/mechanism/govulns"
	"slipway.build/pkg/release"
)

func TestWhatMendsIsACommand(t *testing.T) {
	t.Parallel()
	s := &scan{Options: Options{Bump: "bump", Override: "override", Release: &release.Release{Kubernetes: "v1.37.2"},
		Project: func(binary, module string) string {
			if binary == "etcdctl" && module == "go.etcd.io/etcd/client/v3" {
				return "etcd"
			}
			return ""
		}}}
	known := govulns.Vulnerability{ID: "GO-2026-1", Aliases: []string{"GHSA-1", "CVE-2026-1"}}
	for _, tt := range []struct{ binary, module, has, fixed, want string }{
		{"kubelet", "stdlib", "", "v1.26.11", "bump go@go1.26.11"},
		{"kubelet", "k8s.io/kubernetes", "v1.37.2", "v1.37.3", "bump v1.37.3"},
		{"kubelet", "k8s.io/client-go", "v0.37.2-patched.p1.c2", "v0.37.3", "bump v1.37.3"},
		{"csi-attacher", "k8s.io/client-go", "v0.36.1", "v0.36.2", "override k8s.io/client-go@v0.36.2 --fixes CVE-2026-1"},
		{"etcdctl", "go.etcd.io/etcd/client/v3", "v3.7.0", "v3.7.1", "bump etcd@v3.7.1"},
		{"kubelet", "golang.org/x/net", "v0.57.0", "v0.60.0", "override golang.org/x/net@v0.60.0 --fixes CVE-2026-1"},
		{"kubelet", "acme.io/net", "v0.57.0-1", "v0.57.0-2",
			"override golang.org/x/net@v0.57.0 --with acme.io/net@v0.57.0-2 --fixes CVE-2026-1"},
		{"kubelet", "golang.org/x/net", "v0.57.0", "", "nothing yet: no version is fixed"},
	} {
		in := release.Input{Kind: release.Module, Name: tt.module, Version: tt.has}
		f := govulns.Finding{ID: "GO-2026-1", Module: tt.module, Version: tt.has, Fixed: tt.fixed}
		if tt.module == "acme.io/net" {
			in.Replaces = "golang.org/x/net@v0.57.0"
		}
		if got := s.mend(release.Artifact{Name: "linux/amd64/" + tt.binary}, in, f, known); got != tt.want {
			t.Errorf("%s of %s: %q, want %q", tt.module, tt.binary, got, tt.want)
		}
	}
}
