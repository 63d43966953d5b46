//go:build integration

package integration

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"slipway.build/test/registry"
)

// Images of a signed release are published in a registry, where both slipway and cosign verify them.
func TestSignedImagesOfARegistry(t *testing.T) {
	need(t, "docker-registry", "docker-registry")
	containerLane.join(t)
	dir, key := signedCopy(t)
	at := registryServer(t)
	env := []string{"HOME=" + dir}
	publish := []string{"publish", "release-tars", "--layout=oci", "--key=" + key, "--registry=" + at + "/k8s"}
	images := map[string]string{} // by their last parts
	said := run(t, dir, env, slipway(t), publish...).ok(t).stdout
	for line := range strings.Lines(said) {
		if ref, ok := strings.CutSuffix(line, ": new\n"); ok {
			name, _, _ := strings.Cut(ref[strings.LastIndex(ref, "/")+1:], ":")
			images[name] = ref
		}
	}
	again := run(t, dir, env, slipway(t), publish...).ok(t).stdout
	if len(images) < 12 || !strings.Contains(again, ": 0 images and 0 referrers sent, 0 B; ") {
		t.Errorf("published\n%s\nand again\n%s", said, again)
	}
	cosign := cosign(t)
	for _, image := range []string{"kube-apiserver", "pause"} {
		ref := images[image]
		run(t, dir, env, slipway(t), "verify", ref, "--key", key).ok(t)
		run(t, dir, env, cosign, "verify", "--key", key, "--insecure-ignore-tlog", ref).ok(t)
		for _, kind := range []string{"slsaprovenance1"} {
			run(t, dir, env, cosign, "verify-attestation", "--key", key, "--insecure-ignore-tlog", "--type", kind, ref).ok(t)
		}
		// Who pulls by the digest of a platform finds its signature and its bill of materials, too.
		at, err := name.ParseReference(ref)
		if err != nil {
			t.Fatal(err)
		}
		platform, err := remote.Image(at, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
		if err != nil {
			t.Fatal(err)
		}
		digest, err := platform.Digest()
		if err != nil {
			t.Fatal(err)
		}
		byDigest := at.Context().Digest(digest.String()).String()
		run(t, dir, env, slipway(t), "verify", byDigest, "--key", key).ok(t)
		run(t, dir, env, cosign, "verify", "--key", key, "--insecure-ignore-tlog", byDigest).ok(t)
		run(t, dir, env, cosign, "verify-attestation", "--key", key, "--insecure-ignore-tlog", "--type", "spdxjson", byDigest).ok(t)
	}

	// Another signed image under this name, and an image whose referrer is gone.
	proxy, err := name.ParseReference(images["kube-proxy"])
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(proxy)
	if err != nil {
		t.Fatal(err)
	}
	swapped := at + "/kube-scheduler:swapped"
	copyIndex(t, dir, images["kube-proxy"], swapped, index)
	run(t, dir, env, slipway(t), "verify", swapped, "--key", key).fails(t, 1, "is not to be trusted")
	bare, err := name.NewTag(at + "/bare/kube-proxy:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(bare, index); err != nil {
		t.Fatal(err)
	}
	got := run(t, dir, env, slipway(t), "verify", bare.String(), "--key", key).fails(t, 1, "is not to be trusted")
	if !strings.Contains(got.stdout, " signature: missing") {
		t.Errorf("without referrers: %s", got.stdout)
	}
}

// registryServer starts a registry on a free port, and returns its address.
func registryServer(t *testing.T) string {
	t.Helper()
	r, err := registry.Start(context.Background(), filepath.Join(t.TempDir(), "registry"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
	})
	return r.At
}

// copyIndex copies an image with its referrers to another name.
func copyIndex(t *testing.T, dir, from, to string, index v1.ImageIndex) {
	t.Helper()
	at, err := name.ParseReference(to)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(at, index); err != nil {
		t.Fatal(err)
	}
	source, err := name.ParseReference(from)
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	top, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	digests := []v1.Hash{top}
	for _, d := range m.Manifests {
		digests = append(digests, d.Digest)
	}
	for _, of := range digests {
		referrers, err := remote.Referrers(source.Context().Digest(of.String()))
		if err != nil {
			t.Fatal(err)
		}
		list, err := referrers.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range list.Manifests {
			image, err := remote.Image(source.Context().Digest(d.Digest.String()))
			if err != nil {
				t.Fatal(err)
			}
			if err := remote.Write(at.Context().Digest(d.Digest.String()), image); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A release on a web server is verified where it is, even if connections break; and what is wrong with it is named.
