package publish

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/tarfs"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/bundle"
	"slipway.build/pkg/ship/verify"
)

// bundled writes a bundle of a release for a platform, and returns its file.
func bundled(t *testing.T, r *Release, images, platform string) string {
	t.Helper()
	q, err := bundle.Of(r.described, platform, []string{bundle.Server}, true)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "acme.tar")
	if _, err := r.Bundle(t.Context(), q, images, file, func() {}); err != nil {
		t.Fatal(err)
	}
	return file
}

// fromBundle accepts a bundle.
func (o owner) fromBundle(t *testing.T, file string) (*Release, error) {
	t.Helper()
	b, err := bundle.Open(file)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { b.Close() })
	return AcceptBundle(t.Context(), b, o.want(), time.Now())
}

// pushBundle pushes the images of a bundle.
func (o owner) pushBundle(t *testing.T, file, repository string) *Images {
	t.Helper()
	r, err := o.fromBundle(t, file)
	if err != nil {
		t.Fatal(err)
	}
	return push(t, r, repository, "")
}

func TestBundleHasWhatMachinesOfItsPlatformNeed(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	r, images := o.pushable(t, "v1.37.0+acme.1", "", "arm64")
	for platform, want := range map[string]struct {
		packages []string
		names    int // of images that docker load finds
		kind     types.MediaType
	}{
		"linux/amd64": {[]string{"release/packages/kubelet_amd64.deb"}, 4, types.OCIManifestSchema1},
		bundle.All:    {[]string{"release/packages/kubelet_amd64.deb", "release/packages/kubelet_arm64.deb"}, 6, types.OCIImageIndex},
	} {
		file := bundled(t, r, images, platform)
		in, err := tarfs.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		var packages []string
		for _, name := range in.Files() {
			if strings.HasSuffix(name, ".deb") {
				packages = append(packages, name)
			}
		}
		if !slices.Equal(packages, want.packages) {
			t.Errorf("%s: packages %q", platform, packages)
		}
		var index v1.IndexManifest
		unmarshal(t, in, "index.json", &index)
		var names []string
		referrers := 0
		for _, d := range index.Manifests {
			if d.ArtifactType != "" { // about an image that is there
				var m v1.Manifest
				unmarshal(t, in, "blobs/sha256/"+d.Digest.Hex, &m)
				if _, err := in.Open("blobs/sha256/" + m.Subject.Digest.Hex); err != nil {
					t.Errorf("%s: %s is about %s: %v", platform, d.Digest, m.Subject.Digest, err)
				}
				referrers++
			}
			if name := d.Annotations["org.opencontainers.image.ref.name"]; name != "" {
				names = append(names, name)
				if d.MediaType != want.kind {
					t.Errorf("%s: %s is of the type %s", platform, name, d.MediaType)
				}
			}
		}
		wanted := []string{"registry.k8s.io/coredns/coredns:v1.14.6", "registry.k8s.io/coredns:v1.14.6", "registry.k8s.io/etcd:3.7.0-0",
			"registry.k8s.io/kube-proxy:v1.37.0_acme.1"}
		if !slices.Equal(names, wanted) || referrers < 2*3 {
			t.Errorf("%s: names %q, and %d referrers", platform, names, referrers)
		}
		var loadable []struct{ RepoTags []string }
		unmarshal(t, in, "manifest.json", &loadable)
		n := 0
		for _, l := range loadable {
			n += len(l.RepoTags)
		}
		if n != want.names {
			t.Errorf("%s: %d images are loadable, want %d", platform, n, want.names)
		}
	}
}

func unmarshal(t *testing.T, in *tarfs.FS, name string, v any) {
	t.Helper()
	f, err := in.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(f).Decode(v); err != nil {
		t.Fatal(err)
	}
}

func TestBundleIsPublishedAsItsRelease(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	r, images := o.pushable(t, "v1.37.0+acme.1", "", "arm64")
	all := bundled(t, r, images, bundle.All)
	one := bundled(t, r, images, "linux/amd64")
	tags := []string{"/coredns:v1.14.6", "/coredns/coredns:v1.14.6", "/etcd:3.7.0-0", "/kube-proxy:v1.37.0_acme.1"}
	at := serve(t, false, nil)
	if p := o.pushBundle(t, all, at); len(p.Tags) != 4 || p.Sent == 0 {
		t.Errorf("sent %d bytes for %d tags", p.Sent, len(p.Tags))
	}
	for _, tag := range tags {
		if err := o.trusted(t.Context(), at+tag); err != nil {
			t.Errorf("%s: %v", tag, err)
		}
	}
	if p := push(t, r, at, images); p.Sent != 0 {
		t.Errorf("the release's folder after its bundle: %d bytes are sent", p.Sent)
	}
	// A tag over all platforms stays there for one of them, and one for a platform becomes that over all.
	for _, tag := range o.pushBundle(t, one, at).Tags {
		if tag.State != There || tag.Note != "it stays at the image over all platforms, which has this one" {
			t.Errorf("%+v", tag)
		}
	}
	// It does not become that of another platform.
	other, ok := r.described.Artifact("registry.k8s.io/etcd-arm64:3.7.0-0")
	etcd, err := name.NewTag(at + "/etcd:3.7.0-0")
	if err != nil || !ok {
		t.Fatal(err)
	}
	image, err := remote.Image(etcd.Digest("sha256:" + other.SHA256))
	if err == nil {
		err = remote.Tag(etcd, image)
	}
	if err != nil {
		t.Fatal(err)
	}
	again, err := o.fromBundle(t, one)
	if err != nil {
		t.Fatal(err)
	}
	_, err = again.PlanImages(t.Context(), at, "", nil)
	refused, ok := errors.AsType[*TagError](err)
	if !ok || len(refused.Tags) != 1 || !strings.Contains(err.Error(), "of another platform") {
		t.Errorf("to another platform: %v", err)
	}
	at = serve(t, true, nil)
	for range 2 {
		o.pushBundle(t, one, at)
		for _, tag := range tags {
			if err := o.trusted(t.Context(), at+tag); err != nil {
				t.Errorf("%s for one platform: %v", tag, err)
			}
		}
	}
	for _, tag := range o.pushBundle(t, all, at).Tags {
		if tag.State != Sent || tag.Note != "it had the image of one platform, and gets that over all" {
			t.Errorf("%+v", tag)
		}
	}
}

func TestAlteredBundleSendsNothing(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	r, images := o.pushable(t, "v1.37.0+acme.1", "")
	file := bundled(t, r, images, "linux/amd64")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	at := serve(t, false, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1); h.ServeHTTP(w, r) })
	})
	refused := func(what string, data []byte) {
		t.Helper()
		altered := filepath.Join(t.TempDir(), "acme.tar")
		if err := os.WriteFile(altered, data, 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := o.fromBundle(t, altered)
		if err == nil {
			_, err = got.PlanImages(t.Context(), at, "", nil)
			t.Errorf("%s is accepted: %v", what, err)
		}
		if strings.Contains(err.Error(), "\n") || badrequest.Is(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	names := members(t, whole)
	for _, name := range names {
		refused("another "+name, repacked(t, whole, func(h *tar.Header, data []byte) []byte {
			if h.Name == name && len(data) > 0 {
				data[len(data)/2] ^= 1
			}
			return data
		}))
		if strings.HasSuffix(name, release.SignatureSuffix) || strings.HasSuffix(name, release.RootFile) {
			continue // the same signature is beside it, and nobody needs a root
		}
		refused("without "+name, repacked(t, whole, func(h *tar.Header, data []byte) []byte {
			if h.Name == name {
				h.Name = "" // it is left out
			}
			return data
		}))
	}
	// Others' bundles have other requests: one for nothing would have nothing to verify.
	for from, to := range map[string]string{`"server"`: `"addons"`, "linux/amd64": "linux/arm64", "v1.37.0+acme.1": "v1.37.0+acme.2"} {
		refused("a request for "+to, repacked(t, whole, func(h *tar.Header, data []byte) []byte {
			if h.Name == "bundle.json" {
				return bytes.ReplaceAll(data, []byte(from), []byte(to))
			}
			return data
		}))
	}
	for _, name := range []string{"../images.txt", "/images.txt", "release/evil", "blobs/sha256/evil", "evil", "images.txt"} {
		var b bytes.Buffer
		b.Write(whole[:len(whole)-1024]) // without its end
		w := tar.NewWriter(&b)
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: name}), w.Close()); err != nil {
			t.Fatal(err)
		}
		refused("with "+name, b.Bytes())
	}
	for n := 0; n < len(whole); n += 1 + len(whole)/200 {
		refused("a part", whole[:n])
	}
	if _, err := newOwner(t).fromBundle(t, file); !errors.As(err, new(*RefusedError)) {
		t.Errorf("by another key: %v", err)
	}
	if asked.Load() > 0 {
		t.Errorf("the registry was asked %d times", asked.Load())
	}
	if len(names) < 30 {
		t.Errorf("only %d files were changed", len(names))
	}
}

// members lists the files of a tar.
func members(t *testing.T, data []byte) (names []string) {
	t.Helper()
	repacked(t, data, func(h *tar.Header, data []byte) []byte {
		if h.Typeflag == tar.TypeReg {
			names = append(names, h.Name)
		}
		return data
	})
	return names
}

// repacked changes the members of a tar. Without a name, one is left out.
func repacked(t *testing.T, data []byte, change func(*tar.Header, []byte) []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if err == io.EOF {
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		content = change(h, content)
		if h.Name == "" {
			continue
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBundleOfTheSameReleaseHasTheSameBytes(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	r, images := o.pushable(t, "v1.37.0+acme.1", "")
	first := bundled(t, r, images, "linux/amd64")
	// Elsewhere, with other times and permissions.
	dir := t.TempDir()
	for from, to := range map[string]string{r.dir: "release", images: "oci"} {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "release", release.File), 0o600); err != nil {
		t.Fatal(err)
	}
	copied, err := Accept(t.Context(), filepath.Join(dir, "release"), o.want(), "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	second := bundled(t, copied, filepath.Join(dir, "oci"), "linux/amd64")
	a, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(second); err != nil || !bytes.Equal(a, b) {
		t.Errorf("they differ: %d and %d bytes, %v", len(a), len(b), err)
	}
	repacked(t, a, func(h *tar.Header, data []byte) []byte {
		if h.ModTime.Unix() != 0 { // the release has no date
			t.Errorf("%s is of %v", h.Name, h.ModTime)
		}
		return data
	})
}

// Whatever stops a bundle from being written, there is no file of its name, or the one that was there.
func TestUnfinishedBundleHasNoName(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	r, images := o.pushable(t, "v1.37.0+acme.1", "")
	q, err := bundle.Of(r.described, "linux/amd64", []string{bundle.Server}, true)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "acme.tar")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Bundle(ctx, q, images, file, func() {}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	missing := filepath.Join(images, "blobs", "sha256", ownLayer(t, r, images))
	content, err := os.ReadFile(missing)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(missing); err != nil {
		t.Fatal(err)
	}
	_, err = r.Bundle(t.Context(), q, images, file, func() {})
	if lacks, ok := errors.AsType[*bundle.MissingError](err); !ok || !strings.HasPrefix(lacks.Image, "registry.k8s.io/") {
		t.Errorf("without a layer: %v", err)
	}
	if err := os.WriteFile(missing, append([]byte("x"), content[1:]...), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err = r.Bundle(t.Context(), q, images, file, func() {}); err == nil || !strings.Contains(err.Error(), filepath.Base(missing)) {
		t.Errorf("with another layer: %v", err)
	}
	if left, err := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

// ownLayer returns the digest of a layer that only one image of a release has.
func ownLayer(t *testing.T, r *Release, images string) string {
	t.Helper()
	a := r.described.Select(release.Image, platform.Platform{})[0]
	data, err := os.ReadFile(filepath.Join(images, "blobs", "sha256", a.SHA256))
	if err != nil {
		t.Fatal(err)
	}
	var m v1.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m.Layers[len(m.Layers)-1].Digest.Hex
}

// What a bundle has beside the release's folder keeps its name in reports.
func TestFilesOfAPartKeepTheirNames(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	r, _ := o.pushable(t, "v1.37.0+acme.1", "")
	files := append(make([]verify.File, 0, 500), verify.File{Path: "zero/blob", Status: verify.OK}) // with room for what is sorted in
	report, err := verify.Part(t.Context(), os.DirFS(r.dir), r.dir, "release", func(release.Artifact) bool { return true }, files, o.want())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Files {
		if f.Path != "zero/blob" && !strings.HasPrefix(f.Path, "release/") || f.Path == "release/zero/blob" {
			t.Errorf("the report has %s", f.Path)
		}
	}
	if len(report.Files) < 3 {
		t.Errorf("the report has only %v", report.Files)
	}
}
