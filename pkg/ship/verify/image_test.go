package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	ocilayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/sign"
)

// pauseIndex is the name of the index in the layout.
const pauseIndex = "registry.k8s.io/pause:v1.37.0"

// signedLayout writes a release with a real image, signs it, and returns the layout with signatures.
func signedLayout(t *testing.T) (dir string, public *signature.PublicKey) {
	t.Helper()
	folder, images, public := signedImage(t)
	if err := sign.Layout(t.Context(), folder, images, images+"-signed"); err != nil {
		t.Fatal(err)
	}
	return images + "-signed", public
}

// signedImage makes a signed release, and an OCI image layout with an index of it.
func signedImage(t *testing.T) (folder, images string, public *signature.PublicKey) {
	t.Helper()
	folder = made(t)
	images = filepath.Join(t.TempDir(), "oci")
	write := func(kind types.MediaType, data []byte) v1.Descriptor {
		sum := sha256.Sum256(data)
		d := v1.Descriptor{MediaType: kind, Size: int64(len(data)), Digest: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}}
		file := filepath.Join(images, "blobs", "sha256", d.Digest.Hex)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return d
	}
	marshal := func(v any) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	on := &v1.Platform{OS: "linux", Architecture: "amd64"}
	config := write(types.OCIConfigJSON, []byte(`{"os":"linux","architecture":"amd64","rootfs":{"type":"layers","diff_ids":[]}}`))
	manifest := write(types.OCIManifestSchema1, marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: config, Layers: []v1.Descriptor{write(types.OCILayer, []byte("a layer"))},
	}))
	manifest.Platform = on
	index := write(types.OCIImageIndex, marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex,
		Manifests: []v1.Descriptor{manifest}}))
	index.Annotations = map[string]string{sign.RefName: pauseIndex}
	top := marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{index}})
	for file, data := range map[string][]byte{"index.json": top, "oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)} {
		if err := os.WriteFile(filepath.Join(images, file), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := release.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Artifacts {
		switch a := &r.Artifacts[i]; a.Kind {
		case release.Image:
			a.SHA256, a.MediaType = manifest.Digest.Hex, string(manifest.MediaType)
		case release.Index:
			a.SHA256, a.MediaType = index.Digest.Hex, string(index.MediaType)
		}
	}
	describe(t, folder, r)
	key, err := signature.New()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sign.Folder(t.Context(), folder, key, sign.Options{}); err != nil {
		t.Fatal(err)
	}
	half := key.Public()
	return folder, images, &half
}

// bad lists the files of a report that are not OK.
func bad(r *Report) string {
	var b bytes.Buffer
	for _, f := range r.Files {
		if f.Status != OK {
			fmt.Fprintf(&b, "%s: %s %s\n", f.Path, f.Status, f.Detail)
		}
	}
	return b.String()
}

func TestSignedLayoutIsGood(t *testing.T) {
	t.Parallel()
	dir, public := signedLayout(t)
	for _, tt := range []struct {
		want      Want
		signature Signature
		ok        bool
	}{
		{Want{Trust: signedBy(public), AtLeast: "v1.37.0"}, Good, true},
		{Want{Trust: signedBy(public), AtLeast: "v1.37.1"}, Good, false},
		{Want{Trust: signedBy(public), Version: "v1.36.0"}, Good, false},
		{Want{}, NotChecked, true},
	} {
		reports, err := Layout(t.Context(), dir, pauseIndex, tt.want)
		if err != nil || len(reports) != 1 {
			t.Fatalf("%+v, %v", reports, err)
		}
		// The index and the image, a configuration and a layer, and two statements about each of the first two.
		if r := reports[0]; r.OK() != tt.ok || r.Signature != tt.signature || r.Version != "v1.37.0" || len(r.Files) != 8 {
			t.Errorf("%+v: %+v", tt.want, r)
		}
	}
	if _, err := Layout(t.Context(), dir, "registry.k8s.io/puase:v1.37.0", Want{}); err == nil ||
		!strings.Contains(err.Error(), "did you mean "+pauseIndex) {
		t.Errorf("an image that is not there: %v", err)
	}
}

func TestTamperingWithImagesIsFound(t *testing.T) {
	t.Parallel()
	index := func(t *testing.T, dir string, change func(m *v1.IndexManifest)) {
		t.Helper()
		var m v1.IndexManifest
		if err := json.Unmarshal(read(t, dir, "index.json"), &m); err != nil {
			t.Fatal(err)
		}
		change(&m)
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, "index.json", string(data))
	}
	for what, tt := range map[string]struct {
		harm func(t *testing.T, dir string)
		want string
	}{
		"a changed layer": {func(t *testing.T, dir string) {
			sum := sha256.Sum256([]byte("a layer"))
			write(t, dir, "blobs/sha256/"+hex.EncodeToString(sum[:]), "a lawyer")
		}, ": changed"},
		"a layer cut short": {func(t *testing.T, dir string) {
			sum := sha256.Sum256([]byte("a layer"))
			write(t, dir, "blobs/sha256/"+hex.EncodeToString(sum[:]), "a")
		}, ": cut short"},
		"no referrers": {func(t *testing.T, dir string) {
			index(t, dir, func(m *v1.IndexManifest) { m.Manifests = m.Manifests[:1] })
		}, " signature: missing"},
		"one referrer less": {func(t *testing.T, dir string) {
			index(t, dir, func(m *v1.IndexManifest) {
				for i, d := range m.Manifests {
					if d.Annotations["dev.sigstore.bundle.predicateType"] == sign.ImageSignature {
						m.Manifests = append(m.Manifests[:i], m.Manifests[i+1:]...)
						return
					}
				}
			})
		}, " signature: missing"},
		"another platform's image as the whole": {func(t *testing.T, dir string) {
			index(t, dir, func(m *v1.IndexManifest) { m.Manifests[0].Annotations[sign.RefName] = "registry.k8s.io/proxy:v1.37.0" })
		}, "it is about the image registry.k8s.io/pause"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir, public := signedLayout(t)
			tt.harm(t, dir)
			reports, err := Layout(t.Context(), dir, "", Want{Trust: signedBy(public)})
			if err != nil {
				t.Fatal(err)
			}
			if got := bad(reports[0]); reports[0].OK() || !strings.Contains(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
	dir, _ := signedLayout(t)
	other, err := signature.New()
	if err != nil {
		t.Fatal(err)
	}
	half := other.Public()
	reports, err := Layout(t.Context(), dir, "", Want{Trust: signedBy(&half)})
	if err != nil || reports[0].OK() || reports[0].Signature != NotConvinced || !strings.Contains(bad(reports[0]), "bad signature") {
		t.Errorf("by another key: %+v, %v", reports, err)
	}
}

func TestImagesOfARegistry(t *testing.T) {
	t.Parallel()
	dir, public := signedLayout(t)
	server := httptest.NewServer(ggcr.New(ggcr.WithReferrersSupport(true), ggcr.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	ref := strings.TrimPrefix(server.URL, "http://") + "/acme/pause:v1.37.0"
	tag, err := name.NewTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	from, err := ocilayout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := from.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	m, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range m.Manifests {
		if d.Annotations[sign.RefName] == pauseIndex {
			index, err := all.ImageIndex(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			if err := remote.WriteIndex(tag, index); err != nil {
				t.Fatal(err)
			}
		} else if d.ArtifactType != "" {
			image, err := all.Image(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			if err := remote.Write(tag.Context().Digest(d.Digest.String()), image); err != nil {
				t.Fatal(err)
			}
		}
	}
	report, err := Image(t.Context(), ref, Want{Trust: signedBy(public)})
	if err != nil || !report.OK() || report.Signature != Good || len(report.Files) != 8 {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := Image(t.Context(), strings.Replace(ref, "pause", "none", 1), Want{}); err == nil {
		t.Error("an image that is not there is verified")
	}
}

// Whatever a layout holds, it is an error or a report, and never a good one.
func FuzzLayout(f *testing.F) {
	f.Add([]byte(`{"manifests":[{"digest":"sha256:ab","annotations":{"org.opencontainers.image.ref.name":"a:b"}}]}`))
	f.Add([]byte(`{"manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json","digest":"sha256:../../etc/passwd","size":-1,"annotations":{"org.opencontainers.image.ref.name":"a:b"}}]}`))
	key, err := signature.New()
	if err != nil {
		f.Fatal(err)
	}
	public := key.Public()
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		write(t, dir, "index.json", string(data))
		reports, err := Layout(t.Context(), dir, "", Want{Trust: signedBy(&public)})
		for _, r := range reports {
			if err == nil && r.OK() {
				t.Errorf("%q is good", data)
			}
		}
	})
}
