//go:build integration

package integration

// release.json describes the release. These tests compare it with the files, the images and the binaries themselves.

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	dockerarchive "github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/google/jsonschema-go/jsonschema"
)

// A description has the fields of a release.json that these tests compare.
type description struct {
	Version, Commit, TreeState, Kubernetes, Go string
	Platforms                                  []string
	Artifacts                                  []artifact
	Inputs                                     []input
}

type artifact struct {
	Name, Kind, Platform, MediaType, SHA256, SHA512, Path, Action, Config string
	Size                                                                  int64
	Of                                                                    []string
	Members                                                               []struct{ Path, Artifact string }
	Layers                                                                []layer
}

type layer struct {
	MediaType, Digest, DiffID string
	Size                      int64
}

type input struct{ Kind, Name, Version, Platform, Sum, SHA256, Replaces string }

// described reads the release.json of the release in a tree.
func (tr tree) described(t *testing.T) description {
	t.Helper()
	var d description
	if err := json.Unmarshal([]byte(tr.read(t, tars+"/release.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// of returns the artifacts of a kind, by name.
func (d description) of(kind string) map[string]artifact {
	found := map[string]artifact{}
	for _, a := range d.Artifacts {
		if a.Kind == kind {
			found[a.Name] = a
		}
	}
	return found
}

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

func TestDescriptionIsValidByItsSchema(t *testing.T) {
	r := baseline(t)
	var schema jsonschema.Schema
	if err := json.Unmarshal([]byte(r.read(t, "docs/release.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var value map[string]any
	if err := json.Unmarshal([]byte(r.read(t, tars+"/release.json")), &value); err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(value); err != nil {
		t.Error(err)
	}
	value["artifacts"].([]any)[0].(map[string]any)["kind"] = "no such kind"
	if err := resolved.Validate(value); err == nil {
		t.Error("the schema accepts a kind that does not exist")
	}
}

func TestDescriptionSaysWhichReleaseThisIs(t *testing.T) {
	r := baseline(t)
	d, s := r.described(t), r.stamp(t)
	if d.Version != s.GitVersion || d.Commit != s.GitCommit || d.TreeState != s.GitTreeState || d.Go != s.GoVersion {
		t.Errorf("it describes %s (%s, %s) by %s, and slipway version prints %+v", d.Version, d.Commit, d.TreeState, d.Go, s)
	}
	if version, _ := upstream(t, r); d.Kubernetes != version {
		t.Errorf("it names Kubernetes %s, want %s", d.Kubernetes, version)
	}
	if want := []string{"linux/" + hostArch}; !slices.Equal(d.Platforms, want) {
		t.Errorf("it names the platforms %q, want %q", d.Platforms, want)
	}
}

func TestDescriptionNamesEveryFile(t *testing.T) {
	r := baseline(t)
	entries, err := os.ReadDir(r.path(tars))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]artifact{}
	for _, e := range entries {
		if e.Name() == "release.json" {
			continue
		}
		file, err := os.Open(r.path(tars + "/" + e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		want[e.Name()] = digest(t, file)
		_ = file.Close()
	}
	got := map[string]artifact{}
	for _, a := range r.described(t).Artifacts {
		if a.Path != "" {
			got[a.Path] = artifact{Size: a.Size, SHA256: a.SHA256, SHA512: a.SHA512}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files of %s (-in the folder +described):\n%s", tars, diff)
	}
}

// digest describes bytes.
func digest(t *testing.T, r io.Reader) artifact {
	t.Helper()
	short, long := sha256.New(), sha512.New()
	size, err := io.Copy(io.MultiWriter(short, long), r)
	if err != nil {
		t.Fatal(err)
	}
	return artifact{Size: size, SHA256: hex.EncodeToString(short.Sum(nil)), SHA512: hex.EncodeToString(long.Sum(nil))}
}

// Every program and image in a tarball is described, by the bytes that the tarball has.
func TestDescriptionNamesWhatTarballsHold(t *testing.T) {
	r := baseline(t)
	d := r.described(t)
	byName := map[string]artifact{}
	for _, a := range d.Artifacts {
		byName[a.Name] = a
	}
	for name, groups := range quickTarballs() {
		t.Run(name, func(t *testing.T) {
			want := map[string]artifact{}
			for _, m := range byName[name].Members {
				a := byName[m.Artifact]
				want[m.Path] = artifact{Size: a.Size, SHA256: a.SHA256, SHA512: a.SHA512}
				if !slices.Contains(byName[name].Of, m.Artifact) {
					t.Errorf("it holds %s, and is not said to consist of it", m.Artifact)
				}
			}
			if groups == nil {
				if len(want) > 0 {
					t.Errorf("it is said to hold %q", slices.Sorted(maps.Keys(want)))
				}
				return
			}
			got := digests(t, r.path(tars+"/"+name), func(member string) bool {
				return !strings.HasSuffix(grouped(member, groups), "/") && member != "kubernetes/version" && path.Ext(member) != ".docker_tag"
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("members (-described +in the tarball):\n%s", diff)
			}
		})
	}
	for name, a := range d.of("binary") {
		if sum := r.files[binaries+"/"+name]; a.SHA256 != sum {
			t.Errorf("%s is described as %s, and was compiled as %q", name, a.SHA256, sum)
		}
	}
}

// digests describes members of a tarball.
func digests(t *testing.T, name string, wanted func(member string) bool) map[string]artifact {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]artifact{}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg && wanted(h.Name) {
			found[h.Name] = digest(t, r)
		}
	}
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
	if manifest.Digest.Hex != a.SHA256 || manifest.Size != a.Size || string(manifest.MediaType) != a.MediaType || manifest.Platform.String() != a.Platform {
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
		return run(t, r.dir, nil, "skopeo", append([]string{"--override-os=linux", "--override-arch=" + hostArch, "--insecure-policy"}, args...)...).ok(t).stdout
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

func TestDescriptionNamesWhatTheReleaseWasMadeFrom(t *testing.T) {
	r := baseline(t)
	d := r.described(t)
	inputs := map[string][]input{}
	for _, in := range d.Inputs {
		inputs[in.Kind] = append(inputs[in.Kind], in)
	}

	if want := []input{{Kind: "source", Name: "kubernetes-src.tar.gz", SHA256: r.files[tars+"/kubernetes-src.tar.gz"]}}; !slices.Equal(inputs["source"], want) {
		t.Errorf("the sources are %+v, want %+v", inputs["source"], want)
	}

	described := map[input]bool{}
	for _, in := range inputs["module"] {
		described[in] = true
		if !strings.HasPrefix(in.Sum, "h1:") {
			t.Errorf("%s %s has the sum %q", in.Name, in.Version, in.Sum)
		}
	}
	programs := d.of("binary")
	linked := map[input]bool{}
	for file := range r.files {
		name, ok := strings.CutPrefix(file, binaries+"/")
		if !ok {
			continue
		}
		modules := linkedModules(t, r.path(file))
		if path.Base(name) == "kubelet" && len(modules) < 50 {
			t.Errorf("the kubelet links only %d modules", len(modules))
		}
		for _, in := range modules {
			linked[in] = true
			if _, released := programs[name]; released && !described[in] {
				t.Errorf("%s links %+v, which is not named", name, in)
			}
		}
	}
	for in := range described {
		if !linked[in] {
			t.Errorf("no program links %+v", in)
		}
	}

	pinned := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^ +(\w+-\w+): (h1:\S+)$`).FindAllStringSubmatch(r.read(t, "release/release.yaml"), -1) {
		pinned["v0.0.1-"+d.Go+"."+m[1]] = m[2]
	}
	toolchains := map[string]string{}
	for _, in := range inputs["toolchain"] {
		if in.Name != "golang.org/toolchain" || strings.ReplaceAll(in.Platform, "/", "-") != in.Version[strings.LastIndex(in.Version, ".")+1:] {
			t.Errorf("a toolchain is %+v", in)
		}
		toolchains[in.Version] = in.Sum
	}
	if len(pinned) == 0 || !maps.Equal(toolchains, pinned) {
		t.Errorf("the toolchains are %q, and release.yaml pins %q", toolchains, pinned)
	}

	var locked []input
	for line := range strings.Lines(r.read(t, "images/debian-iptables/debian.lock")) {
		if f := strings.Fields(line); f[0] == runtime.GOARCH {
			locked = append(locked, input{Kind: "debian", Name: f[1], Version: f[2], Platform: "linux/" + f[0], SHA256: f[4]})
		}
	}
	if diff := cmp.Diff(locked, inputs["debian"]); diff != "" || len(locked) == 0 {
		t.Errorf("Debian packages (-in debian.lock of kube-proxy's base +described):\n%s", diff)
	}
}

// linkedModules returns the modules that a program says it was linked from, as release.json names them.
func linkedModules(t *testing.T, program string) []input {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	deps := info.Deps
	if info.Main.Sum != "" { // the program is of a module that a go.mod requires
		deps = append([]*debug.Module{&info.Main}, deps...)
	}
	var modules []input
	for _, m := range deps {
		in := input{Kind: "module", Name: m.Path, Version: m.Version, Sum: m.Sum}
		if m.Replace != nil {
			in.Name, in.Version, in.Sum = m.Replace.Path, m.Replace.Version, m.Replace.Sum
			if m.Replace.Path != m.Path {
				in.Replaces = m.Path
			}
		}
		modules = append(modules, in)
	}
	return modules
}

// What a release would hold can be asked for before it is made.
func TestCatalogListsTheArtifactsOfARelease(t *testing.T) {
	r := baseline(t)
	var listed []artifact
	if err := json.Unmarshal([]byte(r.slipway(t, "catalog", "--artifacts", "--quick", "--json").ok(t).stdout), &listed); err != nil {
		t.Fatal(err)
	}
	line := func(a artifact) string {
		return strings.Join([]string{a.Name, a.Kind, a.Platform, a.Path, strings.Join(a.Of, " "), a.Action}, "|")
	}
	var got, want []string
	for _, a := range listed {
		got = append(got, line(a))
	}
	for _, a := range r.described(t).Artifacts {
		want = append(want, line(a))
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("artifacts (-release.json +slipway catalog):\n%s", diff)
	}
}

func TestVerifyNamesWhatIsWrongWithAFolder(t *testing.T) {
	r := baseline(t)
	dist := tree{dir: filepath.Join(workspace, "damaged")} // on the file system of the release, so that it can be linked
	t.Cleanup(func() { dist.remove(t, ".") })
	run(t, workspace, nil, "cp", "--archive", "--link", r.path(tars), dist.dir).ok(t)
	const gone, flipped, short, foreign = "kubernetes.tar.gz", "kubernetes-manifests.tar.gz", "kubernetes-src.tar.gz", "kubernetes-client-plan9-mips.tar.gz"
	for _, name := range []string{gone, flipped, short} { // a copy each: what is linked is the release itself
		dist.remove(t, name)
		run(t, workspace, nil, "cp", r.path(tars+"/"+name), dist.path(name)).ok(t)
	}
	if got := r.slipway(t, "verify", dist.dir).ok(t); strings.Count(got.stdout, ": OK\n") != len(quickTarballs())+2 {
		t.Errorf("not every file is said to be OK: %v", got)
	}
	dist.write(t, foreign, "of another release")
	dist.remove(t, gone)
	dist.flip(t, flipped)
	dist.truncate(t, short)
	want := map[string]string{gone: "missing", flipped: "changed", short: "cut short", foreign: "not of this release"}

	got := r.slipway(t, "verify", dist.dir).fails(t, 1, dist.dir, r.version)
	for name, status := range want {
		if !strings.Contains(got.stdout, name+": "+status) {
			t.Errorf("it does not say that %s is %s: %v", name, status, got)
		}
	}
	var report struct {
		OK    bool
		Files []struct{ Path, Status string }
	}
	if err := json.Unmarshal([]byte(r.slipway(t, "verify", "--json", dist.dir).fails(t, 1).stdout), &report); err != nil {
		t.Fatal(err)
	}
	wrong := map[string]string{}
	for _, f := range report.Files {
		if f.Status != "ok" {
			wrong[f.Path] = f.Status
		}
	}
	if report.OK || !maps.Equal(wrong, want) {
		t.Errorf("--json prints %q (ok: %v), want %q", wrong, report.OK, want)
	}
}
