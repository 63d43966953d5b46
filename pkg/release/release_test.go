package release

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"slipway.build/pkg/mechanism/platform"
)

var (
	short = strings.Repeat("a", 64)
	long  = strings.Repeat("b", 128)
	on    = platform.Platform{OS: "linux", Arch: "arm64"}
)

// example returns a small release with an artifact of each kind and an input of each kind.
func example() *Release {
	return &Release{
		Format: Format, Version: "v1.37.0+acme.1", Commit: strings.Repeat("c", 40), TreeState: "clean",
		Date: time.Date(2026, 11, 20, 23, 53, 0, 0, time.UTC), Kubernetes: "v1.37.0", Go: "go1.26.8",
		Platforms: []platform.Platform{on}, Variables: map[string]string{"KUBE_DOCKER_REGISTRY": "registry.example"},
		Artifacts: []Artifact{
			{Name: "SHA256SUMS", Kind: Sums, MediaType: "text/plain", Size: 1, SHA256: short, SHA512: long, Path: "SHA256SUMS",
				Of: []string{"a.tar.gz"}, Action: "checksums"},
			{Name: "a.tar.gz", Kind: Tarball, Platform: on, MediaType: "application/gzip", Size: 2, SHA256: short, SHA512: long, Path: "a.tar.gz",
				Of: []string{"linux/arm64/kubelet"}, Members: []Member{{Path: "kubernetes/server/bin/kubelet", Artifact: "linux/arm64/kubelet"}},
				Action: "package a.tar.gz"},
			{Name: "linux/arm64/kubelet", Kind: Binary, Platform: on, MediaType: "application/octet-stream", Size: 3, SHA256: short, SHA512: long,
				Action: "compile linux/arm64 kubelet"},
			{Name: "r/i-arm64:v1", Kind: Image, Platform: on, MediaType: "application/vnd.oci.image.manifest.v1+json", Size: 4,
				SHA256: short, SHA512: long,
				Config: "sha256:" + short, Layers: []Layer{{"application/vnd.oci.image.layer.v1.tar+gzip", 5, "sha256:" + short, "sha256:" + short}},
				Action: "image linux/arm64 i"},
			{Name: "r/i:v1", Kind: Index, MediaType: "application/vnd.oci.image.index.v1+json", Size: 6, SHA256: short, SHA512: long,
				Of: []string{"r/i-arm64:v1"}, Action: "images"},
		},
		Inputs: []Input{
			{Kind: Source, Name: "a.tar.gz", SHA256: short},
			{Kind: Module, Name: "example.com/m", Version: "v1.0.0", Sum: "h1:x="},
			{Kind: Toolchain, Name: "golang.org/toolchain", Version: "v0.0.1-go1.26.8.linux-arm64", Platform: on, Sum: "h1:y="},
			{Kind: Debian, Name: "libc6", Version: "2.36", Platform: on, SHA256: short},
			{Kind: Tool, Name: "slipway.build", Version: "v0.2.0", Sum: "h1:z=", Libraries: []Library{{"golang.org/x/mod", "v0.42.0", "h1:m="}}},
		},
	}
}

func TestADescriptionReadsBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := example()
	data, err := want.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, File), data, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestKeysAreLowerCamelCase(t *testing.T) {
	t.Parallel()
	data, err := example().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"artifacts", "inputs", "name", "kind", "platform", "mediaType", "size", "sha256", "sha512", "path", "of", "action", "treeState", "diffID",
	} {
		if !strings.Contains(string(data), `"`+key+`":`) {
			t.Errorf("no key %s in\n%s", key, data)
		}
	}
}

func TestTheSchemaAcceptsADescriptionAndRefusesOthers(t *testing.T) {
	t.Parallel()
	text, err := MarshalSchema()
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	value := func(edit func(string) string) any {
		data, err := example().Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal([]byte(edit(string(data))), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	if err := resolved.Validate(value(func(s string) string { return s })); err != nil {
		t.Errorf("a release is refused: %v", err)
	}
	for what, edit := range map[string]func(string) string{
		"an unknown key": func(s string) string { return strings.Replace(s, `"mediaType"`, `"mediatype"`, 1) },
		"a kind":         func(s string) string { return strings.Replace(s, `"kind": "tarball"`, `"kind": "tar"`, 1) },
		"a platform":     func(s string) string { return strings.Replace(s, `"linux/arm64"`, `"linux-arm64"`, 1) },
		"a size as text": func(s string) string { return strings.Replace(s, `"size": 1`, `"size": "1"`, 1) },
	} {
		if err := resolved.Validate(value(edit)); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

func TestADescriptionThatContradictsItselfIsRefused(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		edit func(*Release)
		want string
	}{
		"another format":      {func(r *Release) { r.Format = 2 }, "its format is 2"},
		"a duplicate name":    {func(r *Release) { r.Artifacts[1].Name = "SHA256SUMS" }, "SHA256SUMS: named twice"},
		"no name":             {func(r *Release) { r.Artifacts[2].Name = "" }, "has no name"},
		"a short digest":      {func(r *Release) { r.Artifacts[2].SHA256 = "aa" }, "a digest is malformed"},
		"a path to elsewhere": {func(r *Release) { r.Artifacts[1].Path = "../a.tar.gz" }, "leads out of the folder"},
		"a duplicate path":    {func(r *Release) { r.Artifacts[1].Path = "SHA256SUMS" }, `"SHA256SUMS" is taken`},
		"its own path":        {func(r *Release) { r.Artifacts[1].Path = File }, `"release.json" is taken`},
		"dangling reference":  {func(r *Release) { r.Artifacts[0].Of = []string{"b.tar.gz"} }, "refers to b.tar.gz"},
		"dangling member":     {func(r *Release) { r.Artifacts[1].Members[0].Artifact = "x" }, "is x, which is not in the release"},
	} {
		r := example()
		test.edit(r)
		data, err := r.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Unmarshal(data); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", what, err, test.want)
		}
	}
	for what, data := range map[string]string{
		"an unknown key": `{"format": 1, "more": true}`, "no JSON": `{`, "trailing data": `{"format": 1} {}`, "nothing": "",
	} {
		if _, err := Unmarshal([]byte(data)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	if _, err := Read(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without a description: error %v", err)
	}
}

func TestArtifactsAreFoundByNameKindAndPlatform(t *testing.T) {
	t.Parallel()
	r := example()
	if a, ok := r.Artifact("r/i:v1"); !ok || a.Kind != Index {
		t.Errorf("%v, %t", a, ok)
	}
	if _, ok := r.Artifact("kubelet"); ok {
		t.Error("an unknown name is found")
	}
	if got := r.Select(Binary, on); len(got) != 1 || got[0].Name != "linux/arm64/kubelet" {
		t.Errorf("%v", got)
	}
	if got := r.Select(Binary, platform.Platform{OS: "linux", Arch: "amd64"}); len(got) > 0 {
		t.Errorf("%v", got)
	}
	if got := r.Select(Sums, platform.Platform{}); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

func FuzzUnmarshal(f *testing.F) {
	data, err := example().Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Unmarshal(data)
		if err != nil {
			return
		}
		again, err := r.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Unmarshal(again); err != nil {
			t.Errorf("it was read, and not what is written of it: %v", err)
		}
	})
}
