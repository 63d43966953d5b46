//go:build integration

package integration

// The images in release.json, compared with those in the layout and in the docker archives.

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	dockerarchive "github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// topLayer is the file in the layout that holds an image's own layer.
func topLayer(t *testing.T, r release, image string) string {
	t.Helper()
	for _, a := range r.described(t).of("image") {
		if a.Action == "image linux/"+hostArch+" "+image {
			return layoutDir + "/blobs/" + strings.Replace(a.Layers[len(a.Layers)-1].Digest, ":", "/", 1)
		}
	}
	t.Fatalf("release.json has no image %s", image)
	return ""
}

// The layout is valid, it has the images that release.json names and no others, and they are those of the docker archives.
func TestDescriptionNamesTheImagesOfTheLayout(t *testing.T) {
	r := baseline(t)
	d := r.described(t)
	described := d.of("image")
	top, err := layout.ImageIndexFromPath(r.path(layoutDir))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Errorf("the layout is not valid: %v", err)
	}
	all, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var indexes []string
	seen := map[string]bool{}
	for _, m := range all.Manifests {
		name := m.Annotations["org.opencontainers.image.ref.name"]
		indexes = append(indexes, name)
		a := d.of("index")[name]
		if m.Digest.Hex != a.SHA256 || m.Size != a.Size || string(m.MediaType) != a.MediaType {
			t.Errorf("%s is %+v, and described as %+v", name, m, a)
		}
		index, err := top.ImageIndex(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		platforms, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range platforms.Manifests {
			if len(a.Of) != len(platforms.Manifests) {
				t.Fatalf("%s has %d images, and is said to consist of %q", name, len(platforms.Manifests), a.Of)
			}
			seen[a.Of[i]] = true
			img, err := index.Image(p.Digest)
			if err != nil {
				t.Fatal(err)
			}
			sameImage(t, described[a.Of[i]], p, img)
		}
	}
	var want []string
	for _, name := range imageNames {
		want = append(want, "registry.k8s.io/"+name+":"+strings.ReplaceAll(r.version, "+", "_"))
	}
	for name, version := range addonImages {
		want = append(want, "registry.k8s.io/"+name+":"+version)
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(indexes)); !slices.Equal(got, want) {
		t.Errorf("the layout has %q, want %q", got, want)
	}
	if got := slices.Sorted(maps.Keys(d.of("index"))); !slices.Equal(got, want) {
		t.Errorf("the indexes %q are described, want %q", got, want)
	}
	for name := range described {
		if !seen[name] {
			t.Errorf("%s is described, and not in the layout", name)
		}
	}
	archives := d.of("archive")
	for name, a := range archives {
		file := images + "/" + strings.TrimPrefix(name, "linux/")
		if a.SHA256 != r.files[file] {
			t.Errorf("%s is described as %s, and is %q", file, a.SHA256, r.files[file])
		}
		if id, want := imageID(t, r.path(file)), described[a.Of[0]].Config; id != want {
			t.Errorf("%s has the image ID %s, in the layout it is %s", file, id, want)
		}
	}
	if len(archives) != len(described) {
		t.Errorf("%d archives of %d images are described", len(archives), len(described))
	}
}

// sameImage compares an image of the layout with its description.
func sameImage(t *testing.T, a artifact, manifest v1.Descriptor, img v1.Image) {
	t.Helper()
	if manifest.Digest.Hex != a.SHA256 || manifest.Size != a.Size || string(manifest.MediaType) != a.MediaType ||
		manifest.Platform.String() != a.Platform {
		t.Errorf("the image %+v is described as %+v", manifest, a)
	}
	id, err := img.ConfigName()
	if err != nil || id.String() != a.Config {
		t.Errorf("%s has the config %s (%v), want %s", a.Name, id, err, a.Config)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var got []layer
	for _, l := range layers {
		kind, err1 := l.MediaType()
		digest, err2 := l.Digest()
		diffID, err3 := l.DiffID()
		size, err4 := l.Size()
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			t.Fatal(err)
		}
		got = append(got, layer{string(kind), digest.String(), diffID.String(), size})
	}
	if diff := cmp.Diff(a.Layers, got); diff != "" {
		t.Errorf("layers of %s (-described +in the layout):\n%s", a.Name, diff)
	}
}

// imageID is how engines identify the image in a docker archive.
func imageID(t *testing.T, archive string) string {
	t.Helper()
	img, err := dockerarchive.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}

// Skopeo reads the layout, and makes of it the image that the docker archive has.
func TestSkopeoReadsTheLayout(t *testing.T) {
	need(t, "skopeo", "skopeo")
	r := baseline(t)
	name := "registry.k8s.io/kube-scheduler:" + strings.ReplaceAll(r.version, "+", "_")
	from := "oci:" + r.path(layoutDir) + ":" + name
	skopeo := func(args ...string) string {
		return run(t, r.dir, nil, "skopeo", append([]string{"--override-os=linux", "--override-arch=" + hostArch, "--insecure-policy"},
			args...)...).ok(t).stdout
	}
	var seen struct {
		Architecture string
		Labels       map[string]string
	}
	if err := json.Unmarshal([]byte(skopeo("inspect", from)), &seen); err != nil {
		t.Fatal(err)
	}
	if seen.Architecture != hostArch || seen.Labels["org.opencontainers.image.version"] != r.version {
		t.Errorf("skopeo inspect prints %+v", seen)
	}
	to := filepath.Join(t.TempDir(), "copy.tar")
	skopeo("copy", "--quiet", from, "docker-archive:"+to+":"+name)
	if got, want := imageID(t, to), imageID(t, r.path(hostImage("kube-scheduler")+".tar")); got != want {
		t.Errorf("skopeo's copy is the image %s, the docker archive has %s", got, want)
	}
}
