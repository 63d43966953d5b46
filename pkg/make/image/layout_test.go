package image

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/needs"
	"slipway.build/pkg/mechanism/recipe/recipetest"
)

// A bench is a tree with images to make.
type bench struct {
	action.Graph
	layout string // absolute
	ran    []string
}

// spec describes an image of a program for a platform, in two versions of one name.
func spec(file, arch string) Spec {
	return Spec{
		Name: file,
		Program: Program{
			Binaries: []Binary{{Name: "hello", File: "bin/hello"}, {Name: "kube-log-runner", File: "bin/hello"}},
			Title:    "A greeting", OS: "linux", Arch: arch, Version: "v1.2.3", Revision: "0123", Created: created,
		},
		Base: "static", Bases: "images", Tag: "v1.2.3",
		ArchiveTags: Tags("registry.example", file, arch, "v1.2.3"),
		Tags:        []string{"registry.example/" + file + ":v1.2.3", "acme.example/" + file + ":nightly"},
		Archive:     "out/" + arch + "/" + file + ".tar", SHA512: "out/" + arch + "/" + file + ".sha512",
		DockerTag: "out/" + arch + "/" + file + ".docker_tag",
		Part:      "stage/" + arch + "/" + file,
	}
}

func newBench(t *testing.T, specs ...Spec) *bench {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "images", "static"), os.DirFS(filepath.Join("..", "..", "..", "images", "static"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "bin", "hello"), []byte(strings.Repeat("the program\n", 20_000)), 0o755); err != nil {
		t.Fatal(err)
	}
	b := &bench{Graph: action.Graph{Root: root, State: "state"}, layout: filepath.Join(root, "out", "oci")}
	join := LayoutSpec{Output: "out/oci"}
	for _, s := range specs {
		b.Actions = append(b.Actions, Action(root, filepath.Join(root, "cache"), s))
		join.Parts = append(join.Parts, s.Part)
	}
	b.Actions = append(b.Actions, LayoutAction(root, join))
	return b
}

func (b *bench) run(t *testing.T) *bench {
	t.Helper()
	b.ran = nil
	err := b.Run(t.Context(), action.Options{Budget: action.Budget{CPU: 2}, Events: func(e action.Event) {
		if e.Kind == action.Done {
			b.ran = append(b.ran, e.Action)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// images returns the image indexes of a layout, by tag.
func (b *bench) images(t *testing.T) map[string]v1.ImageIndex {
	t.Helper()
	top, err := layout.ImageIndexFromPath(b.layout)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Errorf("the layout is not valid: %v", err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.ImageIndex{}
	for _, d := range manifest.Manifests {
		tag := d.Annotations["org.opencontainers.image.ref.name"]
		if d.Annotations["io.containerd.image.name"] != tag || d.ArtifactType != "" {
			t.Errorf("%s: descriptor %+v", tag, d)
		}
		if images[tag], err = top.ImageIndex(d.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return images
}

// digest returns the digest of the image for a platform.
func (b *bench) digest(t *testing.T, tag, arch string) v1.Hash {
	t.Helper()
	manifest, err := b.images(t)[tag].IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range manifest.Manifests {
		if d.Platform.Architecture == arch {
			return d.Digest
		}
	}
	t.Fatalf("%s is not for %s: %+v", tag, arch, manifest.Manifests)
	return v1.Hash{}
}

func TestLayoutHasAnIndexOfAllPlatformsForEachTag(t *testing.T) {
	t.Parallel()
	b := newBench(t, spec("hello", "arm"), spec("hello", "amd64"), spec("other", "amd64")).run(t)
	images := b.images(t)
	got := map[string]string{}
	for tag, index := range images {
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range manifest.Manifests {
			got[tag] += " " + d.Platform.String()
		}
	}
	want := map[string]string{
		"registry.example/hello:v1.2.3": " linux/amd64 linux/arm/v7", "acme.example/hello:nightly": " linux/amd64 linux/arm/v7",
		"registry.example/other:v1.2.3": " linux/amd64", "acme.example/other:nightly": " linux/amd64",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

func TestImageIsTheSameInLayoutAndArchive(t *testing.T) {
	t.Parallel()
	s := spec("hello", "amd64")
	b := newBench(t, s).run(t)
	tag, err := name.NewTag(s.ArchiveTags[1])
	if err != nil {
		t.Fatal(err)
	}
	archived, err := tarball.ImageFromPath(filepath.Join(b.Root, s.Archive), &tag)
	if err != nil {
		t.Fatal(err)
	}
	img, err := b.images(t)[s.Tags[0]].Image(b.digest(t, s.Tags[0], "amd64"))
	if err != nil {
		t.Fatal(err)
	}
	one, err1 := archived.RawConfigFile()
	other, err2 := img.RawConfigFile()
	if err1 != nil || err2 != nil || string(one) != string(other) {
		t.Errorf("configs %s and %s: %v, %v", one, other, err1, err2)
	}
	part, err := ReadPart(filepath.Join(b.Root, s.Part))
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	id, err := archived.ConfigName()
	if err != nil || part.Config.Digest != id || part.Manifest.Digest != b.digest(t, s.Tags[0], "amd64") || len(part.Layers) != 3 {
		t.Errorf("the part is described as %+v (%v)", part, err)
	}
	for i, l := range part.Layers {
		if l.DiffID != config.RootFS.DiffIDs[i] {
			t.Errorf("layer %d is %s, in the config %s", i, l.DiffID, config.RootFS.DiffIDs[i])
		}
	}
	labels := config.Config.Labels
	if labels["org.opencontainers.image.base.name"] != "slipway.build/images/static" ||
		!strings.HasPrefix(labels["org.opencontainers.image.base.digest"], "sha256:") {
		t.Errorf("labels %q", labels)
	}
}

// files returns the contents of the files below a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		found[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestLayoutHasEqualBytesEverywhere(t *testing.T) {
	t.Parallel()
	one := newBench(t, spec("hello", "amd64"), spec("hello", "arm64")).run(t)
	other := newBench(t, spec("hello", "arm64"), spec("hello", "amd64")).run(t)
	if diff := cmp.Diff(files(t, one.layout), files(t, other.layout)); diff != "" {
		t.Errorf("two layouts of the same images differ:\n%.2000s", diff)
	}
	if one.run(t); len(one.ran) > 0 {
		t.Errorf("it is made again: %q", one.ran)
	}
}

func TestDigestFollowsTheSpecAlone(t *testing.T) {
	t.Parallel()
	s, later := spec("hello", "amd64"), spec("hello", "amd64")
	later.Created = created.Add(time.Hour)
	tagged := spec("hello", "amd64")
	tagged.Tags = append(tagged.Tags, "more.example/hello:v1")
	before := newBench(t, s).run(t).digest(t, s.Tags[0], "amd64")
	if got := newBench(t, later).run(t).digest(t, s.Tags[0], "amd64"); got == before {
		t.Error("an image of another time is the same")
	}
	if got := newBench(t, tagged).run(t).digest(t, s.Tags[0], "amd64"); got != before {
		t.Error("another tag makes another image")
	}
}

func TestEditOfAProgramKeepsOtherImages(t *testing.T) {
	t.Parallel()
	s, other := spec("hello", "amd64"), spec("other", "amd64")
	other.Binaries = other.Binaries[1:]
	other.Binaries[0].File = "bin/other"
	b := newBench(t, s, other)
	if err := os.WriteFile(filepath.Join(b.Root, "bin", "other"), []byte("other"), 0o755); err != nil {
		t.Fatal(err)
	}
	before := b.run(t).digest(t, other.Tags[0], "amd64")
	if err := os.WriteFile(filepath.Join(b.Root, "bin", "hello"), []byte("edited"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.run(t)
	if diff := cmp.Diff([]string{"image linux/amd64 hello", "image layout"}, b.ran); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
	if after := b.digest(t, other.Tags[0], "amd64"); after != before {
		t.Errorf("the other image was %s and is %s", before, after)
	}
	for blob := range files(t, filepath.Join(b.Root, s.Part, "blobs")) {
		if _, err := os.Stat(filepath.Join(b.layout, "blobs", filepath.FromSlash(blob))); err != nil {
			t.Error(err)
		}
	}
}

func TestEveryFieldIsPartOfTheKey(t *testing.T) {
	t.Parallel()
	recipetest.EachField(t, Spec{})
	recipetest.EachField(t, LayoutSpec{})
}

func TestSkopeoReadsTheLayout(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("skopeo"); err != nil {
		needs.Missing(t, "skopeo: %v", err)
	}
	s := spec("hello", "amd64")
	b := newBench(t, s, spec("hello", "arm64")).run(t)
	skopeo := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "skopeo", append([]string{"--override-os=linux", "--override-arch=amd64"},
			args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("skopeo %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	from := fmt.Sprintf("oci:%s:%s", b.layout, s.Tags[0])
	for _, want := range []string{`"Architecture": "amd64"`, `"org.opencontainers.image.title": "A greeting"`} {
		if out := skopeo("inspect", from); !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	to := filepath.Join(t.TempDir(), "hello.tar")
	skopeo("--insecure-policy", "copy", from, "docker-archive:"+to+":"+s.Tags[0])
	copied, err := tarball.ImageFromPath(to, nil)
	if err != nil {
		t.Fatal(err)
	}
	part, err := ReadPart(filepath.Join(b.Root, s.Part))
	if err != nil {
		t.Fatal(err)
	}
	if id, err := copied.ConfigName(); err != nil || id != part.Config.Digest {
		t.Errorf("the copy is the image %s (%v), want %s", id, err, part.Config.Digest)
	}
	all := filepath.Join(t.TempDir(), "all")
	skopeo("--insecure-policy", "copy", "--all", from, "oci:"+all+":copy")
	if got, want := files(t, filepath.Join(all, "blobs")), files(t, filepath.Join(b.layout, "blobs")); !cmp.Equal(got, want) {
		t.Errorf("a copy of all platforms has %d blobs, want the same %d", len(got), len(want))
	}
}

// The action knows how its archive is made up, so packing it does not read it all. The tarball must not depend on that.
func TestArchiveIsPackedAsIfItWereRead(t *testing.T) {
	t.Parallel()
	s := spec("hello", "amd64")
	b := newBench(t, s).run(t)
	file := filepath.Join(b.Root, filepath.FromSlash(s.Archive))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	cache := filepath.Join(b.Root, "cache")
	if known, err := filepath.Glob(filepath.Join(cache, "*", sum+".split")); err != nil || len(known) != 1 {
		t.Errorf("the cache knows %v: %v", known, err)
	}
	var tarballs [2]bytes.Buffer
	for i, p := range []archive.Packer{{Cache: cache}, {}} {
		if err := p.TarGz(t.Context(), &tarballs[i], []archive.Entry{{Name: "hello.tar", Path: file, Sum: sum}}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(tarballs[0].Bytes(), tarballs[1].Bytes()) {
		t.Error("tarballs differ")
	}
}
