//go:build integration

package integration

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Images of a signed release are published in a registry, where both slipway and cosign verify them.
func TestSignedImagesOfARegistry(t *testing.T) {
	need(t, "docker-registry", "docker-registry")
	containerLane.join(t)
	dir, key := signedCopy(t)
	at := registry(t)
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

// registry starts a registry on a free port, and returns its address.
func registry(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %s}\n", dir, at)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, "docker-registry", "serve", config)
	server.Stdout, server.Stderr = os.Stderr, os.Stderr
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = server.Wait()
	})
	for range 100 {
		if r, err := http.Get("http://" + at + "/v2/"); err == nil {
			r.Body.Close()
			return at
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("the registry on %s does not answer", at)
	return ""
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
