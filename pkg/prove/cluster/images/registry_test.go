package images

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func TestImagesHaveTheirNamesInTheRegistry(t *testing.T) {
	t.Parallel()
	r := Registry("198.18.0.254:5000")
	for image, want := range map[string]string{
		"registry.k8s.io/pause:3.10.2":            "198.18.0.254:5000/pause:3.10.2",
		"registry.k8s.io/coredns/coredns:v1.14.6": "198.18.0.254:5000/coredns/coredns:v1.14.6",
		"web:1": "198.18.0.254:5000/library/web:1", // on Docker Hub
	} {
		if got, err := r.tag(image); err != nil || got.Name() != want {
			t.Errorf("%s is %v there (%v), want %s", image, got, err, want)
		}
	}
	if _, err := r.tag("a b"); err == nil {
		t.Error("what is no name of an image is taken for one")
	}
}

func TestRegistryAnswers(t *testing.T) {
	t.Parallel()
	ready := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ready || r.URL.Path != "/v2/" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	r := Registry(strings.TrimPrefix(server.URL, "http://"))
	if err := r.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("before it is ready: %v", err)
	}
	ready = true
	if err := r.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := Registry("127.0.0.1:1").Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a registry that does not run: %v", err)
	}
}

// A pushed image is the one in the archive: it has the same ID and the same layers, which are as they were before.
func TestPushedImageIsThatOfTheArchive(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	to, err := name.NewTag(strings.TrimPrefix(server.URL, "http://")+"/web:1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "two.tar")
	images := map[name.Tag]v1.Image{}
	for _, known := range []string{"example.com/web:1", "example.com/other:1"} {
		tag, err := name.NewTag(known)
		if err != nil {
			t.Fatal(err)
		}
		if images[tag], err = random.Image(1000, 3); err != nil {
			t.Fatal(err)
		}
	}
	if err := tarball.MultiWriteToFile(archive, images); err != nil {
		t.Fatal(err)
	}
	for tag, image := range images {
		plain, err := Image{archive, []string{tag.Name()}}.uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(to, plain); err != nil {
			t.Fatal(err)
		}
		pushed, err := remote.Image(to)
		if err != nil {
			t.Fatal(err)
		}
		want, err := image.ConfigName()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := pushed.ConfigName(); err != nil || got != want {
			t.Errorf("%s has the ID %v (%v), want %v", tag, got, err, want)
		}
		manifest, err := pushed.Manifest()
		if err != nil || len(manifest.Layers) != 3 {
			t.Fatalf("%s: %+v, %v", tag, manifest, err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range manifest.Layers {
			if l.Digest != config.RootFS.DiffIDs[i] || l.MediaType != types.OCIUncompressedLayer {
				t.Errorf("layer %d of %s is %+v, want %s without compression", i, tag, l, config.RootFS.DiffIDs[i])
			}
		}
	}
}

func TestImagesHaveShortNames(t *testing.T) {
	t.Parallel()
	images := []Image{
		{"a", []string{"registry.example:5000/kube-apiserver-amd64:v1", "registry.example:5000/kube-apiserver:v1"}},
		{"b", []string{"registry.example:5000/coredns/coredns:v2"}},
	}
	for i, want := range map[int]map[string]string{
		0: {"kube-apiserver": "registry.example:5000", "kube-apiserver-amd64": "registry.example:5000", "kube": ""},
		1: {"coredns": "registry.example:5000/coredns", "etcd": ""},
	} {
		for short, repository := range want {
			if got := strings.Join(images[i].Repositories(short), " "); got != repository {
				t.Errorf("of %s it is %q, want %q", short, got, repository)
			}
		}
	}
	if !images[1].IsAny("etcd", "coredns") || images[0].IsAny("etcd", "coredns") {
		t.Error("the second is CoreDNS, and no etcd")
	}
}
