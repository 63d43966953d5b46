package describe

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"slipway.build/pkg/make/license"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/needs"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/recipe/recipetest"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/sbom"
	"slipway.build/pkg/tree/module"
)

func TestEveryFieldOfASpecIsInItsRecipe(t *testing.T) {
	t.Parallel()
	recipetest.EachField(t, Spec{})
	recipetest.EachField(t, File{})
	recipetest.EachField(t, Image{})
	recipetest.EachField(t, BinariesSpec{})
	recipetest.EachField(t, FinalSpec{})
	recipetest.EachField(t, SBOMSpec{})
}

// small returns a release with one tarball, which holds one binary.
func small() Spec {
	return Spec{
		Release: release.Release{
			Format: release.Format, Version: "v1", Go: "go1.26.8",
			Artifacts: []release.Artifact{
				{Name: "linux/amd64/kubelet", Kind: release.Binary}, {Name: "a.tar.gz", Kind: release.Tarball, Path: "a.tar.gz"},
			},
			Inputs: []release.Input{{Kind: release.Source, Name: "a.tar.gz"}},
		},
		Files:    []File{{Artifact: "a.tar.gz", Path: "tars/a.tar.gz", SHA512: "sums/a.tar.gz"}},
		Binaries: []string{"about/binaries.json"},
		Licenses: []string{"names.json"},
		Output:   "draft/release.json",
	}
}

// binaries returns the action that reads the binary of the small release.
func binaries(root string) *action.Action {
	return Binaries(root, BinariesSpec{
		Name: "binaries", Files: []File{{Artifact: "linux/amd64/kubelet", Path: "bin/kubelet"}}, Output: "about/binaries.json",
	})
}

var long = strings.Repeat("5", 128)

// misspell compiles a small program of a module that go.mod requires, for the tools. TestMain removes it.
var misspell = sync.OnceValues(func() (string, error) {
	program := filepath.Join(programs, "program")
	build := exec.Command("go", "build", "-mod=readonly", "-o", program, "github.com/golangci/misspell/cmd/misspell")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
})

var programs string // a folder for them

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "describe-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// tree returns a tree with the files of the small release. The modules of its program have the license MIT, except for some.
func tree(t *testing.T, except map[string]string) (root string, linked []module.Dependency) {
	t.Helper()
	needs.Program(t, "go")
	program, err := misspell()
	if err != nil {
		t.Fatal(err)
	}
	read, err := module.ReadBinary(program)
	if err != nil {
		t.Fatal(err)
	}
	names := license.Names{Own: []string{"Apache-2.0"}, Go: []string{"BSD-3-Clause"}, Modules: map[string]license.ModuleNames{}}
	for _, m := range read.Modules {
		names.Modules[m.Path] = license.ModuleNames{Revision: m.Version, Licenses: []string{cmp.Or(except[m.Path], "MIT")}}
	}
	text, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	root = t.TempDir()
	var tarball bytes.Buffer
	packer := archive.Packer{Cache: t.TempDir(), Time: time.Unix(1, 0)}
	if err := packer.TarGz(t.Context(), &tarball, []archive.Entry{{Name: "README", Mode: 0o644, Data: []byte("read me")}}); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(root, fstest.MapFS{
		"tars/a.tar.gz": {Data: tarball.Bytes()}, "sums/a.tar.gz": {Data: []byte(long + "\n")}, "bin/none": {}, "names.json": {Data: text},
	}); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Copy(program, filepath.Join(root, "bin", "kubelet")); err != nil {
		t.Fatal(err)
	}
	return root, read.Modules
}

// run makes the description of a release, and what belongs to it.
func run(t *testing.T, root string, s Spec) *release.Release {
	t.Helper()
	sboms := SBOMSpec{Draft: s.Output, Source: "tars/a.tar.gz", Folder: "tars", Artifacts: sbom.Artifacts(&s.Release, SBOMAction)}
	final := FinalSpec{Draft: s.Output, Folder: "tars", Artifacts: sboms.Artifacts}
	for _, a := range final.Artifacts {
		final.Files = append(final.Files, File{Artifact: a.Name, Path: "tars/" + a.Path})
	}
	g := action.Graph{Root: root, State: "state", Actions: []*action.Action{binaries(root), Draft(root, s, fipsModule),
		SBOMs(root, sboms), Action(root, final)}}
	if err := g.Run(t.Context(), action.Options{}); err != nil {
		t.Fatal(err)
	}
	r, err := release.Read(filepath.Join(root, "tars"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestADescriptionHasDigestsAndInputsFromFiles(t *testing.T) {
	t.Parallel()
	root, linked := tree(t, nil)
	r := run(t, root, small())
	tar, _ := r.Artifact("a.tar.gz")
	if tar.Size == 0 || len(tar.SHA256) != 64 || tar.SHA512 != long {
		t.Errorf("tarball %+v", tar)
	}
	kubelet, _ := r.Artifact("linux/amd64/kubelet")
	if kubelet.Size == 0 || len(kubelet.SHA256) != 64 || len(kubelet.SHA512) != 128 || kubelet.SHA512 == long {
		t.Errorf("binary %+v", kubelet)
	}
	if r.Artifacts[0].Name != "a.tar.gz" {
		t.Errorf("artifacts are not sorted: %v", r.Artifacts)
	}
	if len(r.Inputs) != 1+len(linked) || len(linked) == 0 || len(kubelet.Inputs) != len(linked) {
		t.Fatalf("%d inputs, of which the binary links %d, want the source and %d modules", len(r.Inputs), len(kubelet.Inputs), len(linked))
	}
	if source := r.Inputs[0]; source.SHA256 != tar.SHA256 || source.License != "Apache-2.0" {
		t.Errorf("source %+v", source)
	}
	for i, m := range linked {
		in := r.Inputs[1+i]
		if in.Name != m.Path || in.Version != m.Version || in.Sum != m.Sum || in.License != "MIT" || !slices.Contains(kubelet.Inputs, in.PURL()) {
			t.Errorf("input %+v, want %s", in, m)
		}
	}
	for _, a := range r.Select(release.SBOM, platform.Platform{}) {
		if a.Size == 0 {
			t.Errorf("%s is empty", a.Name)
		}
	}
	if n := len(r.Select(release.SBOM, platform.Platform{})); n != 4 {
		t.Errorf("%d bills of materials, want those of the release and of its sources, in two formats", n)
	}

	// A changed binary gets new digests.
	f, err := os.OpenFile(filepath.Join(root, "bin", "kubelet"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("more"); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if next, _ := run(t, root, small()).Artifact("linux/amd64/kubelet"); next.SHA256 == kubelet.SHA256 || next.SHA512 == kubelet.SHA512 {
		t.Errorf("changed binary %+v", next)
	}
}

// Of an earlier run only sums of the same bytes count: older code may have read the rest in another way.
func TestAnEarlierRunTellsOnlySums(t *testing.T) {
	t.Parallel()
	root, linked := tree(t, nil)
	data, err := os.ReadFile(filepath.Join(root, "bin", "kubelet"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	short := hex.EncodeToString(sum[:])
	earlier := filepath.Join(root, "earlier.json")
	text, err := json.Marshal(map[string]program{"linux/amd64/kubelet": {Size: 1, SHA256: short, SHA512: long, Package: "old"}})
	if err := errors.Join(err, os.WriteFile(earlier, text, 0o644)); err != nil {
		t.Fatal(err)
	}
	file := File{Artifact: "linux/amd64/kubelet", Path: "bin/kubelet"}
	got, err := readProgram(root, file, short, sumsIn(earlier))
	if err != nil || got.SHA512 != long || got.Size != int64(len(data)) || got.Package == "old" || len(got.Modules) != len(linked) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, none := range []string{"", filepath.Join(root, "none"), filepath.Join(root, "bin", "kubelet")} {
		if got, err := readProgram(root, file, short, sumsIn(none)); err != nil || len(got.SHA512) != 128 || got.SHA512 == long {
			t.Errorf("%s: %+v, %v", none, got, err)
		}
	}
}

// A license that nobody has read stops a release.
func TestAnUnknownLicenseStopsARelease(t *testing.T) {
	t.Parallel()
	_, linked := tree(t, nil)
	module := linked[0].Path
	root, _ := tree(t, map[string]string{module: "LicenseRef-a"})
	g := action.Graph{Root: root, State: "state", Actions: []*action.Action{binaries(root), Draft(root, small(), fipsModule)}}
	want := "nothing recognizes the license texts of " + module + ": "
	if err := g.Run(t.Context(), action.Options{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// fipsModule is what a tree selects that declares v1.0.0.
func fipsModule(context.Context) (module.Pinned, error) {
	return module.Pinned{Version: module.Version{Path: module.FIPS, Version: "v1.0.0-c2097c7c"}, Sum: "h1:a"}, nil
}

func TestProgramsNameTheCryptographicModuleThatTheyAreCompiledWith(t *testing.T) {
	t.Parallel()
	root, linked := tree(t, nil)
	about := func(version string) {
		t.Helper()
		text, err := json.Marshal(map[string]program{"linux/amd64/kubelet": {SHA256: long[:64], SHA512: long, Modules: linked, FIPS: version}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(root, "about"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "about", "binaries.json"), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := small()
	s.Release.FIPS = &release.FIPS{Version: "v1.0.0", Environment: true}
	g := action.Graph{Root: root, State: "state", Actions: []*action.Action{Draft(root, s, fipsModule)}}
	about("v1.26.0")
	want := "linux/amd64/kubelet is compiled with golang.org/fips140 v1.26.0, and the tree selects v1.0.0-c2097c7c"
	if err := g.Run(t.Context(), action.Options{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	about("v1.0.0-c2097c7c")
	if err := g.Run(t.Context(), action.Options{}); err != nil {
		t.Fatal(err)
	}
	r, err := readDraft(root, small().Output)
	if err != nil {
		t.Fatal(err)
	}
	if want := (release.FIPS{Version: "v1.0.0-c2097c7c", Environment: true}); r.FIPS == nil || *r.FIPS != want {
		t.Errorf("%+v, want %+v", r.FIPS, want)
	}
	in := release.Input{Kind: release.Module, Name: module.FIPS, Version: "v1.0.0-c2097c7c", Sum: "h1:a", License: "BSD-3-Clause"}
	i := slices.IndexFunc(r.Artifacts, func(a release.Artifact) bool { return a.Name == "linux/amd64/kubelet" })
	if !slices.ContainsFunc(r.Inputs, func(other release.Input) bool { return reflect.DeepEqual(in, other) }) {
		t.Errorf("inputs %v", r.Inputs)
	}
	if !slices.Contains(r.Artifacts[i].Inputs, in.PURL()) {
		t.Errorf("the program has the inputs %v", r.Artifacts[i].Inputs)
	}
	if s.Release.FIPS.Version != "v1.0.0" {
		t.Error("the action has changed what its recipe is made of")
	}
}

func TestAFileOfNoPlannedArtifactIsAnError(t *testing.T) {
	t.Parallel()
	root, _ := tree(t, nil)
	s := small()
	s.Files[0].Artifact = "b.tar.gz"
	g := action.Graph{Root: root, State: "state", Actions: []*action.Action{binaries(root), Draft(root, s, fipsModule)}}
	if err := g.Run(t.Context(), action.Options{}); err == nil || !strings.Contains(err.Error(), "b.tar.gz: not planned") {
		t.Errorf("error %v", err)
	}
}

// A description says of each binary what the binary says of itself.
func TestABinaryThatNoFileDescribesIsAnError(t *testing.T) {
	t.Parallel()
	root, _ := tree(t, nil)
	s := small()
	s.Release.Artifacts[0].Name = "linux/amd64/kubeadm"
	g := action.Graph{Root: root, State: "state", Actions: []*action.Action{binaries(root), Draft(root, s, fipsModule)}}
	if err := g.Run(t.Context(), action.Options{}); err == nil || !strings.Contains(err.Error(),
		"linux/amd64/kubeadm: no file in Binaries describes it") {
		t.Errorf("error %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, "bin", "kubelet"), []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := g.Run(t.Context(), action.Options{}); err == nil || !strings.Contains(err.Error(), filepath.Join("bin", "kubelet")) {
		t.Errorf("error %v", err)
	}
}

func TestChecksumsAreNotMadeIfTheTreeChanged(t *testing.T) {
	t.Parallel()
	root, _ := tree(t, nil)
	changed := errors.New("the tree changed")
	for _, test := range []struct{ before, want error }{{nil, nil}, {changed, changed}} {
		a := Checksums(root, "tars", small().Files[:1], func(context.Context) error { return test.before })
		g := action.Graph{Root: root, State: "state", Actions: []*action.Action{a}}
		if err := os.RemoveAll(filepath.Join(root, "state")); err != nil {
			t.Fatal(err)
		}
		if err := g.Run(t.Context(), action.Options{}); !errors.Is(err, test.want) {
			t.Errorf("error %v, want %v", err, test.want)
		}
	}
	sums, err := os.ReadFile(filepath.Join(root, "tars", "SHA512SUMS"))
	if err != nil || string(sums) != long+"  a.tar.gz\n" {
		t.Errorf("%q, %v", sums, err)
	}
}
