package plan

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/input"
)

func TestInputsAreTwoActions(t *testing.T) {
	t.Parallel()
	p := open(t, tree(t))
	planned, err := New(t.Context(), p, Request{Inputs: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"inputs modules", "package " + input.Tarball}, ids(planned.Graph)); diff != "" {
		t.Error(diff)
	}
	plannable(t, planned.Graph)
	if diff := cmp.Diff([]Result{{project.Tars + "/" + input.Tarball, input.Tarball}}, planned.Results); diff != "" {
		t.Error(diff)
	}
}

func TestAReleaseNamesItsInputsIfItHasThem(t *testing.T) {
	t.Parallel()
	p := open(t, tree(t))
	for _, with := range []bool{true, false} {
		planned, err := New(t.Context(), p, Request{Tars: true, Platforms: []catalog.Platform{linuxAMD64}, Inputs: with})
		if err != nil {
			t.Fatal(err)
		}
		a, ok := planned.Release.Artifact(input.Tarball)
		sums, _ := planned.Release.Artifact("SHA256SUMS")
		if ok != with || with && (a.Kind != release.Inputs || a.Path != input.Tarball) || slices.Contains(sums.Of, input.Tarball) != with {
			t.Errorf("with inputs %v: %+v, %v", with, a, sums.Of)
		}
		for _, a := range planned.Graph.Actions {
			if find := slices.Contains(a.Inputs, project.Tars+"/"+input.Tarball); a.ID == "checksums" && find != with {
				t.Errorf("with inputs %v: the checksums depend on them: %v", with, find)
			}
		}
	}
}

func TestInputsHaveTheGoOfTheirHosts(t *testing.T) {
	t.Parallel()
	root := tree(t)
	name := filepath.Join(root, "release", "release.yaml")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	more := bytes.Replace(data, []byte("  sums:\n"), []byte("  sums:\n    darwin-arm64: h1:1mHTFcVQ1ISBoYTMwFBBNZFbXhlA6lxqTVYrMRtaKNk=\n"), 1)
	if err := os.WriteFile(name, more, 0o644); err != nil {
		t.Fatal(err)
	}
	p := open(t, root)
	for _, tt := range []struct {
		req  Request
		want []string
	}{
		{Request{}, []string{"darwin-arm64", "linux-amd64"}},
		{Request{Platforms: []catalog.Platform{linuxAMD64, windowsAMD64}}, []string{"linux-amd64"}},
		{Request{Platforms: []catalog.Platform{windowsAMD64}}, []string{"darwin-arm64", "linux-amd64"}}, // on any host that there is a Go for
		{Request{Platforms: []catalog.Platform{linuxAMD64}, Hosts: []catalog.Platform{darwinARM64}}, []string{"darwin-arm64"}},
		{Request{NoHosts: true}, nil},
	} {
		tt.req.Inputs = true
		l, err := listInputs(t.Context(), p, tt.req)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range l.Modules {
			if at := strings.LastIndex(m.Version.Version, "."); m.Path == "golang.org/toolchain" {
				got = append(got, m.Version.Version[at+1:])
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.req, diff)
		}
	}
	// The Go of slipway itself is there for the same hosts, and decides which these can be.
	own := append(more, "toolchain:\n  version: go1.99.1\n  sums:\n    linux-amd64: h1:1mHTFcVQ1ISBoYTMwFBBNZFbXhlA6lxqTVYrMRtaKNk=\n"...)
	if err := os.WriteFile(name, own, 0o644); err != nil {
		t.Fatal(err)
	}
	released, err := open(t, root).HostGo(nil, nil)
	if err != nil || len(released) != 2 || !strings.HasSuffix(released[0].Version.Version, "linux-amd64") ||
		released[1].Version.Version != "v0.0.1-go1.99.1.linux-amd64" {
		t.Errorf("released %v, error %v", released, err)
	}

	_, err = listInputs(t.Context(), p, Request{Hosts: []catalog.Platform{linuxARM64}})
	if !badrequest.Is(err) || !strings.Contains(err.Error(), "for linux/arm64; it has darwin/arm64, linux/amd64") {
		t.Errorf("error %v", err)
	}
}
