package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"slipway.build/pkg/mechanism/archive"
)

var created = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// program is a component on the static base, with files below a folder of its own that have times of their own.
func program(t *testing.T, arch string) Contents {
	t.Helper()
	dir := t.TempDir()
	p := Program{
		Binaries: []Binary{
			{Name: "hello", File: write(t, filepath.Join(dir, "hello"), strings.Repeat("the program\n", 5000))},
			{Name: "kube-log-runner", File: write(t, filepath.Join(dir, "runner"), "the log runner\n")},
		},
		Title: "A greeting", Licenses: "Apache-2.0", OS: "linux", Arch: arch,
		Version: "v1.2.3", Revision: "0123456789abcdef", Created: created,
	}
	base, err := Static(bases)
	if err != nil {
		t.Fatal(err)
	}
	return Component([]Layer{base}, p)
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func build(t *testing.T, s Contents) *Image {
	t.Helper()
	img, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// config returns the config of an image.
func config(t *testing.T, img *Image) *v1.ConfigFile {
	t.Helper()
	var c v1.ConfigFile
	if err := json.Unmarshal(img.config, &c); err != nil {
		t.Fatal(err)
	}
	return &c
}

// members returns the names, types and contents of a layer's members, in order.
func members(t *testing.T, l *layer) (list []string, content map[string]string) {
	t.Helper()
	var packed bytes.Buffer
	if _, err := l.WriteTo(&packed); err != nil {
		t.Fatal(err)
	}
	content = map[string]string{}
	for tr := tar.NewReader(&packed); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return list, content
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(created) || h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s: time %v, owner %d:%d", h.Name, h.ModTime, h.Uid, h.Gid)
		}
		name := strings.TrimSuffix(h.Name, "/")
		line := h.FileInfo().Mode().String() + " " + name
		if h.Linkname != "" {
			line += " -> " + h.Linkname
		}
		list = append(list, line)
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		content[name] = string(data)
	}
}

func TestConfigSaysWhatTheSpecSays(t *testing.T) {
	t.Parallel()
	got := config(t, build(t, program(t, "arm")))
	if len(got.RootFS.DiffIDs) != 3 {
		t.Errorf("%d diff IDs for 3 layers", len(got.RootFS.DiffIDs))
	}
	got.RootFS.DiffIDs = nil
	at := v1.Time{Time: created}
	want := &v1.ConfigFile{
		OS: "linux", Architecture: "arm", Variant: "v7", Created: at,
		RootFS: v1.RootFS{Type: "layers"},
		History: []v1.History{
			{Created: at, CreatedBy: "slipway", Comment: "base static: users, certificates, /tmp"},
			{Created: at, CreatedBy: "slipway", Comment: "kube-log-runner"},
			{Created: at, CreatedBy: "slipway", Comment: "hello"},
		},
		Config: v1.Config{
			Entrypoint: []string{"/usr/local/bin/hello"},
			Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			WorkingDir: "/",
			Labels: map[string]string{
				"org.opencontainers.image.title":    "A greeting",
				"org.opencontainers.image.version":  "v1.2.3",
				"org.opencontainers.image.revision": "0123456789abcdef",
				"org.opencontainers.image.created":  "2026-03-04T05:06:07Z",
				"org.opencontainers.image.licenses": "Apache-2.0",
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestOnlyArmHasAVariant(t *testing.T) {
	t.Parallel()
	for _, arch := range []string{"amd64", "arm64", "ppc64le", "s390x", "386"} {
		c := config(t, build(t, program(t, arch)))
		if c.Architecture != arch || c.Variant != "" {
			t.Errorf("%s: architecture %q, variant %q", arch, c.Architecture, c.Variant)
		}
	}
}

// TestArchiveReadsBackAsTheSameImage and the tests of layouts validate whole images.
func TestLayersAreWhatTheConfigSays(t *testing.T) {
	t.Parallel()
	img := build(t, program(t, "amd64"))
	ids := config(t, img).RootFS.DiffIDs
	if len(img.layers) != 3 || len(ids) != 3 {
		t.Fatalf("layers: %d, in the config %d", len(img.layers), len(ids))
	}
	for i, l := range img.layers {
		var packed bytes.Buffer
		if _, err := l.WriteTo(&packed); err != nil {
			t.Fatal(err)
		}
		digest, size, err := v1.SHA256(&packed)
		if err != nil {
			t.Fatal(err)
		}
		if l.digest != digest || ids[i] != digest || l.Size() != size {
			t.Errorf("layer %d: %s, %d bytes, in the config %s, content is %s, %d bytes", i, l.digest, l.Size(), ids[i], digest, size)
		}
	}
}

func TestComponentHoldsItsFiles(t *testing.T) {
	t.Parallel()
	layers := build(t, program(t, "amd64")).layers
	runner, content := members(t, layers[1])
	if !slices.Contains(runner, "-rwxr-xr-x usr/local/bin/kube-log-runner") ||
		!slices.Contains(runner, "Lrwxrwxrwx go-runner -> /usr/local/bin/kube-log-runner") {
		t.Errorf("log runner's layer: %q", runner)
	}
	if got := content["usr/local/bin/kube-log-runner"]; got != "the log runner\n" {
		t.Errorf("log runner: %q", got)
	}
	binary, content := members(t, layers[2])
	if !slices.Contains(binary, "-rwxr-xr-x usr/local/bin/hello") {
		t.Errorf("binary's layer: %q", binary)
	}
	if got, want := content["usr/local/bin/hello"], strings.Repeat("the program\n", 5000); got != want {
		t.Errorf("binary: %d bytes, want %d", len(got), len(want))
	}
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*Contents)
		want   string
	}{
		"no platform": {func(s *Contents) { s.Arch = "" }, `build image: platform "linux"/"" is incomplete`},
		"no time":     {func(s *Contents) { s.Created = time.Time{} }, "build image: no creation time"},
		"no layers":   {func(s *Contents) { s.Layers = nil }, "build image: no layers"},
		"missing file": {func(s *Contents) {
			s.Layers[2].Entries = []archive.Entry{{Name: "lost", Mode: 0o644, Path: filepath.Join("no", "such", "file")}}
		}, `build image: layer "hello": `},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := program(t, "amd64")
			test.change(&s)
			_, err := Build(s)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if name == "missing file" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v does not say that the file is missing", err)
			}
		})
	}
}

func TestTagsAreWithAndWithoutArchitecture(t *testing.T) {
	t.Parallel()
	got := Tags("registry.k8s.io", "kube-proxy", "s390x", "v1.2.3")
	want := []string{"registry.k8s.io/kube-proxy-s390x:v1.2.3", "registry.k8s.io/kube-proxy:v1.2.3"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// bases is the folder of this repository's bases.
var bases = filepath.Join("..", "..", "..", "images")
