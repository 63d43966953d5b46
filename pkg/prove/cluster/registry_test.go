package cluster

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
	r, err := name.NewRegistry("198.18.0.254:5000", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	for image, want := range map[string]string{
		"registry.k8s.io/pause:3.10.2":            "198.18.0.254:5000/pause:3.10.2",
		"registry.k8s.io/coredns/coredns:v1.14.6": "198.18.0.254:5000/coredns/coredns:v1.14.6",
		"web:1": "198.18.0.254:5000/library/web:1", // on Docker Hub
	} {
		if got, err := inRegistry(r, image); err != nil || got.Name() != want {
			t.Errorf("%s is %v there (%v), want %s", image, got, err, want)
		}
	}
	if _, err := inRegistry(r, "a b"); err == nil {
		t.Error("what is no name of an image is taken for one")
	}
}

func TestRegistryThatBeginsLateIsAwaited(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 || r.URL.Path != "/v2/" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	s, err := newState(t.TempDir(), "test", "", true, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.patience = time.Minute
	if err := s.awaitRegistry(t.Context(), strings.TrimPrefix(server.URL, "http://")); err != nil || asked.Load() != 3 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
	s.patience = 10 * time.Millisecond
	if err := s.awaitRegistry(t.Context(), "127.0.0.1:1"); !errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a registry that never answers: %v", err)
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
		plain, err := plainImage(archive, tag.Name())
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
