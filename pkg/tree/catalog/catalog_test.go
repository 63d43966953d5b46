package catalog

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"slipway.build/pkg/mechanism/platform"
)

// An edit replaces text that occurs once in the tree. Without a text to replace, it replaces the whole of release.yaml.
type edit struct{ old, new string }

// tree writes testdata/tree.txtar with edits to a new folder.
func tree(t *testing.T, edits ...edit) (root string) {
	t.Helper()
	ar, err := txtar.ParseFile("testdata/tree.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range edits {
		if e.old == "" {
			ar.Files[0].Data = []byte(e.new)
			continue
		}
		found := 0
		for i, f := range ar.Files {
			found += strings.Count(string(f.Data), e.old)
			ar.Files[i].Data = []byte(strings.Replace(string(f.Data), e.old, e.new, 1))
		}
		if found != 1 {
			t.Fatalf("%q is in the tree %d times, want once", e.old, found)
		}
	}
	root = t.TempDir()
	if err := txtar.Write(ar, root); err != nil {
		t.Fatal(err)
	}
	return root
}

func load(t *testing.T) *Catalog {
	t.Helper()
	c, err := Load(tree(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func platforms(t *testing.T, words string) []Platform {
	t.Helper()
	var all []Platform
	for _, w := range strings.Fields(words) {
		p, err := platform.Parse(w)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func names(binaries []Binary) string {
	var s []string
	for _, b := range binaries {
		s = append(s, b.Name)
	}
	return strings.Join(s, " ")
}

func TestLoadKeepsWhatIsDeclared(t *testing.T) {
	t.Parallel()
	c := load(t)
	binaries := c.Binaries
	c.Binaries = nil
	want := &Catalog{
		Module:     "cmd",
		ModulePath: "slipway.build/cmd",
		Kubernetes: "v1.36.3",
		Go: Toolchain{Version: "go1.26.8", Sums: map[string]string{
			"linux-amd64":  "h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM=",
			"darwin-arm64": "h1:dFjGhY6f8DTsY8/rLchUTDRRfjJP4pCrGCwxvHFT2Fg=",
		}},
		Tags: []string{"selinux", "notest"},
		Sets: map[Set][]Platform{
			Server: platforms(t, "linux/amd64 linux/arm64"),
			Node:   platforms(t, "linux/amd64 linux/arm64 windows/amd64"),
			Client: platforms(t, "linux/amd64 darwin/arm64 windows/amd64"),
			Test:   platforms(t, "linux/amd64 linux/arm64 windows/amd64"),
		},
		Images: []Image{
			{Name: "kube-apiserver", Base: "static", Binary: "kube-apiserver", Title: "Kubernetes API server"},
			{Name: "kubectl", Base: "static", Binary: "kubectl", Title: "Kubernetes command line"},
		},
		Registry: "registry.k8s.io",
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}

	hyperkube := Binary{Name: "hyperkube", Package: "./hyperkube", Module: "cmd", ModulePath: "slipway.build/cmd",
		Only: platforms(t, "linux/arm64 linux/amd64")}
	if diff := cmp.Diff(hyperkube, binaries[5]); diff != "" {
		t.Error(diff)
	}
	e2e := Binary{Name: "e2e.test", Test: "k8s.io/kubernetes/test/e2e", Module: "cmd", ModulePath: "slipway.build/cmd", Sets: []Set{Test}}
	if diff := cmp.Diff(e2e, binaries[6]); diff != "" {
		t.Error(diff)
	}
}

func TestMissingFileIsNamed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	_, err := Load(root)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), filepath.Join(root, "release", "release.yaml")) {
		t.Errorf("got %v, want an error that names the missing file", err)
	}
}

func TestAliasesStandForWhatTheyName(t *testing.T) {
	t.Parallel()
	c, err := Load(tree(t, edit{"server: [", "server: &here ["}, edit{"only: [linux/arm64, linux/amd64]", "only: *here"}))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := c.Binary("hyperkube")
	if diff := cmp.Diff(platforms(t, "linux/amd64 linux/arm64"), b.Only); diff != "" {
		t.Error(diff)
	}
}

func TestJSONReadsBack(t *testing.T) {
	t.Parallel()
	c := load(t)
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"server":["linux/amd64","linux/arm64"]`; !strings.Contains(string(data), want) {
		t.Errorf("no %s in %s", want, data)
	}
	var back Catalog
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, &back); diff != "" {
		t.Error(diff)
	}
}

func TestImagesAreOfTheServerSet(t *testing.T) {
	t.Parallel()
	c := load(t)
	if got := c.ImagesFor(Server, Platform{OS: "linux", Arch: "arm64"}); len(got) != 2 || got[1].Name != "kubectl" {
		t.Errorf("linux/arm64: got %v", got)
	}
	if got := c.ImagesFor(Server, Platform{OS: "windows", Arch: "amd64"}); got != nil {
		t.Errorf("windows/amd64: got %v, want none: the client set has kubectl for it, the server set doesn't", got)
	}
}

func TestCatalogOfThisRepository(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	c, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		binary, platform string
		want             bool
	}{
		{"kubectl", "darwin/arm64", true},
		{"kubectl", "linux/386", true},
		{"kubelet", "windows/amd64", true},
		{"kube-apiserver", "windows/amd64", false},
		{"kubemark", "linux/s390x", true},
		{"kubemark", "darwin/arm64", false},
		{"hyperkube", "linux/amd64", true},
		{"e2e.test", "windows/arm64", true},
	} {
		b, ok := c.Binary(tt.binary)
		if !ok {
			t.Errorf("no binary %s", tt.binary)
			continue
		}
		got := strings.Contains(" "+join(c.PlatformsOf(b))+" ", " "+tt.platform+" ")
		if got != tt.want {
			t.Errorf("%s for %s: got %v, want %v", tt.binary, tt.platform, got, tt.want)
		}
	}
	for _, b := range c.Binaries {
		if len(c.PlatformsOf(b)) == 0 {
			t.Errorf("%s has no platform", b.Name)
		}
	}

	mod, err := os.ReadFile(filepath.Join(root, "cmd", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if line := "k8s.io/kubernetes " + c.Kubernetes + "\n"; !strings.Contains(string(mod), line) {
		t.Errorf("cmd/go.mod has no line %q", line)
	}
}

func join(platforms []Platform) string {
	var s []string
	for _, p := range platforms {
		s = append(s, p.String())
	}
	return strings.Join(s, " ")
}

// A tag with a slip in it would make a field optional, or unknown.
func TestTagsOfDeclaredFields(t *testing.T) {
	t.Parallel()
	for _, declared := range []any{Catalog{}, Toolchain{}, Binary{}, Image{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(declared)) {
			how, ok := f.Tag.Lookup("file")
			if derived := f.Name == "ModulePath" || f.Name == "Kubernetes"; derived == ok || ok && how != "required" && how != "optional" ||
				f.Tag.Get("json") == "" {
				t.Errorf("%T.%s has the tag %s", declared, f.Name, f.Tag)
			}
		}
	}
}
