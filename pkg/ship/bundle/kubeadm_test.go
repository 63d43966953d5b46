package bundle

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/release"
)

// described returns a release with images, whose kubeadm is a script in a tarball in the folder.
func described(t *testing.T, script string, names ...string) (dir string, r *release.Release) {
	t.Helper()
	dir, on := t.TempDir(), platform.Host()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "bin/kubeadm", Size: int64(len(script))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(script)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), os.WriteFile(filepath.Join(dir, "server.tar"), b.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	program := on.String() + "/kubeadm"
	server := release.Artifact{Name: "kubernetes-server-x", Kind: release.Tarball, Platform: on, Path: "server.tar",
		Members: []release.Member{{Path: "bin/kubeadm", Artifact: program}}}
	r = &release.Release{Version: "v1.37.0+acme.1", Platforms: []platform.Platform{on}, Sets: []string{Server},
		Artifacts: []release.Artifact{{Name: program, Kind: release.Binary, Platform: on}}}
	for _, name := range names {
		archive, image := on.String()+"/"+name+".tar", "arch/"+name
		r.Artifacts = append(r.Artifacts, release.Artifact{Name: "acme.example/" + name, Kind: release.Index, Of: []string{image}},
			release.Artifact{Name: image, Kind: release.Image, Platform: on},
			release.Artifact{Name: archive, Kind: release.Archive, Platform: on, Of: []string{image}})
		server.Members = append(server.Members, release.Member{Path: name, Artifact: archive})
	}
	r.Artifacts = append(r.Artifacts, server)
	return dir, r
}

func TestImagesThatKubeadmAsksForMustBeThere(t *testing.T) {
	t.Parallel()
	const script = "#!/bin/sh\nset -eu\n" +
		`[ "$*" = "config images list --kubernetes-version=v1.37.0+acme.1 --image-repository=acme.example" ]` + "\n"
	all := []string{"kube-apiserver:v1", "kube-controller-manager:v1", "kube-scheduler:v1", "kube-proxy:v1", "etcd:3",
		"coredns/coredns:v1", "pause:3"}
	var lines strings.Builder
	for _, name := range all {
		lines.WriteString("echo acme.example/" + strings.TrimPrefix(name, "coredns/") + "\n") // as of any registry but upstream's
	}
	without := func(name string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == name })
	}
	for _, c := range []struct {
		script string
		images []string
		lacks  []string
		fails  string
	}{
		{script: script + lines.String(), images: all},
		{script: script + lines.String() + "echo acme.example/etcd:4\n", images: all, lacks: []string{"acme.example/etcd:4"}},
		{script: "#!/bin/sh\nexit 1\n", images: without("pause:3"), lacks: []string{"pause"}}, // which is not asked
		{script: "#!/bin/sh\necho no >&2; exit 1\n", images: all, fails: "no"},
		{script: "#!/bin/sh\n", images: all, fails: "names none"},
	} {
		dir, r := described(t, c.script, c.images...)
		q, err := Of(r, platform.Host().String(), []string{Server}, true)
		if err != nil {
			t.Fatal(err)
		}
		err = q.Complete(t.Context(), dir, r)
		incomplete, ok := errors.AsType[*IncompleteError](err)
		switch {
		case ok != (c.lacks != nil) || ok && !slices.Equal(incomplete.Images, c.lacks):
			t.Errorf("%q: %v, want %q", c.script, err, c.lacks)
		case c.lacks == nil && (err == nil) != (c.fails == "") || c.fails != "" && !strings.Contains(err.Error(), c.fails):
			t.Errorf("%q: %v, want %q", c.script, err, c.fails)
		}
	}
}
