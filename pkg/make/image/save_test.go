package image

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var tags = Tags("registry.example", "hello", "amd64", "v1.2.3")

func save(t *testing.T, img *Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, _, err := img.Save(t.Context(), &out, tags); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestArchiveReadsBackAsTheSameImage(t *testing.T) {
	t.Parallel()
	img := build(t, program(t, "amd64"))
	path := filepath.Join(t.TempDir(), "hello.tar")
	if err := os.WriteFile(path, save(t, img), 0o644); err != nil {
		t.Fatal(err)
	}
	want, _, err := v1.SHA256(bytes.NewReader(img.config))
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range tags {
		ref, err := name.NewTag(tag)
		if err != nil {
			t.Fatal(err)
		}
		back, err := tarball.ImageFromPath(path, &ref)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(back); err != nil {
			t.Error(err)
		}
		if got, err := back.ConfigName(); err != nil || got != want {
			t.Errorf("%s: config %s (%v), want %s", tag, got, err, want)
		}
	}
}

func TestArchivesOfTheSameFilesAreEqual(t *testing.T) {
	t.Parallel()
	a, b := save(t, build(t, program(t, "amd64"))), save(t, build(t, program(t, "amd64")))
	if !bytes.Equal(a, b) {
		t.Error("two archives of the same files in different folders differ")
	}
	if c := save(t, build(t, program(t, "arm64"))); bytes.Equal(a, c) {
		t.Error("archives for different platforms are equal")
	}
}

func TestArchiveHasMembersInOrder(t *testing.T) {
	t.Parallel()
	s := program(t, "amd64")
	s.Layers = append(s.Layers, s.Layers[1]) // the same content twice is stored once
	img := build(t, s)
	configName, _, err := v1.SHA256(bytes.NewReader(img.config))
	if err != nil {
		t.Fatal(err)
	}
	var layers []string
	for _, d := range config(t, img).RootFS.DiffIDs {
		layers = append(layers, d.Hex+".tar")
	}
	want := append([]string{"manifest.json", configName.Hex + ".json"}, layers[:3]...)

	var got []string
	var manifest tarball.Manifest
	for tr := tar.NewReader(bytes.NewReader(save(t, img))); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(created) || h.Uid != 0 || h.Gid != 0 || h.Mode != 0o644 || h.Typeflag != tar.TypeReg {
			t.Errorf("%s: %+v", h.Name, h)
		}
		got = append(got, h.Name)
		if h.Name == "manifest.json" {
			if err := json.NewDecoder(tr).Decode(&manifest); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("members are\n%q, want\n%q", got, want)
	}
	if len(manifest) != 1 || !slices.Equal(manifest[0].RepoTags, tags) || !slices.Equal(manifest[0].Layers, layers) ||
		manifest[0].Config != want[1] {
		t.Errorf("manifest: %+v", manifest)
	}
}

func TestBinariesLieInTheArchiveInOnePiece(t *testing.T) {
	t.Parallel()
	if n := bytes.Count(save(t, build(t, program(t, "amd64"))), []byte(strings.Repeat("the program\n", 5000))); n != 1 {
		t.Errorf("the binary is in the archive %d times", n)
	}
}

func TestSaveRefuses(t *testing.T) {
	t.Parallel()
	changed := program(t, "amd64")
	changedImage := build(t, changed)
	binary := changed.Layers[2].Entries[0].Path
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	write(t, binary, strings.Repeat("x", int(info.Size())))
	if err := os.Chtimes(binary, info.ModTime(), info.ModTime()); err != nil { // so that only the content shows the change
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()

	tests := map[string]struct {
		ctx  context.Context
		img  *Image
		tags []string
		want string
	}{
		"a tag that is none":    {t.Context(), build(t, program(t, "amd64")), []string{"registry.example/hello:v1+2"}, "v1+2"},
		"a tag without version": {t.Context(), build(t, program(t, "amd64")), []string{"registry.example/hello"}, "registry.example/hello"},
		"changed files":         {t.Context(), changedImage, tags, "content changed since the image was built"},
		"a canceled context":    {canceled, build(t, program(t, "amd64")), tags, context.Canceled.Error()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := test.img.Save(test.ctx, io.Discard, test.tags)
			if err == nil || !strings.HasPrefix(err.Error(), "save image: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error about %q", err, test.want)
			}
		})
	}
}
