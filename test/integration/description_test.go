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

type input struct{ Kind, Name, Version, Platform, Sum, SHA256, Replaces, Commit string }

// described reads the release.json of the release in a tree.
func (tr tree) described(t *testing.T) description {
	t.Helper()
	return describedIn(t, tr.path(tars))
}

// describedIn reads the release.json of a folder with tarballs.
func describedIn(t *testing.T, dir string) description {
	t.Helper()
	var d description
	if err := json.Unmarshal([]byte(readFile(filepath.Join(dir, "release.json"))), &d); err != nil {
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
		names := []string{e.Name()}
		switch {
		case e.Name() == "release.json" || strings.HasPrefix(e.Name(), "provenance"): // what follows from it says so itself
			continue
		case e.IsDir():
			if names, err = filepath.Glob(r.path(tars+"/"+e.Name()) + "/*"); err != nil {
				t.Fatal(err)
			}
			for i, name := range names {
				names[i] = e.Name() + "/" + filepath.Base(name)
			}
		}
		for _, name := range names {
			file, err := os.Open(r.path(tars + "/" + name))
			if err != nil {
				t.Fatal(err)
			}
			want[name] = digest(t, file)
			_ = file.Close()
		}
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

func TestDescriptionNamesWhatTheReleaseWasMadeFrom(t *testing.T) {
	r := baseline(t)
	d := r.described(t)
	inputs := map[string][]input{}
	for _, in := range d.Inputs {
		inputs[in.Kind] = append(inputs[in.Kind], in)
	}

	if want := []input{{Kind: "source", Name: "kubernetes-src.tar.gz", SHA256: r.files[tars+"/kubernetes-src.tar.gz"]}}; !slices.Equal(
		inputs["source"], want) {
		t.Errorf("the sources are %+v, want %+v", inputs["source"], want)
	}

	if want := []input{{Kind: "tool", Name: "slipway.build", Version: "folder .", Commit: d.Commit}}; !slices.Equal(inputs["tool"], want) {
		t.Errorf("slipway is %+v, want %+v", inputs["tool"], want)
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
	for line := range strings.Lines(r.read(t, "images/debian-iptables/debian.lock") + r.read(t, "images/node/debian.lock")) {
		if f := strings.Fields(line); f[0] == runtime.GOARCH {
			in := input{Kind: "debian", Name: f[1], Version: f[2], Platform: "linux/" + f[0], SHA256: f[4]}
			if strings.Contains(line, "_all.deb") {
				in.Platform = ""
			}
			locked = append(locked, in)
		}
	}
	byName := func(a, b input) int { return strings.Compare(a.Name+" "+a.Version, b.Name+" "+b.Version) }
	slices.SortFunc(locked, byName)
	slices.SortFunc(inputs["debian"], byName)
	if diff := cmp.Diff(slices.Compact(locked), inputs["debian"]); diff != "" || len(locked) == 0 {
		t.Errorf("Debian packages (-in debian.lock of the images' bases +described):\n%s", diff)
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
	if info.Main.Sum != "" || info.Main.Replace != nil { // the program is of a module that a go.mod requires
		deps = append([]*debug.Module{&info.Main}, deps...)
	}
	var modules []input
	for _, m := range deps {
		in := input{Kind: "module", Name: m.Path, Version: m.Version, Sum: m.Sum}
		if m.Replace != nil {
			in.Name, in.Version, in.Sum = m.Replace.Path, m.Replace.Version, m.Replace.Sum
			if m.Replace.Path != m.Path || m.Replace.Version != m.Version {
				in.Replaces = m.Path + "@" + m.Version
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
	const gone, flipped, short, foreign = "kubernetes.tar.gz", "kubernetes-manifests.tar.gz", "kubernetes-src.tar.gz",
		"kubernetes-client-plan9-mips.tar.gz"
	for _, name := range []string{gone, flipped, short} { // a copy each: what is linked is the release itself
		dist.remove(t, name)
		run(t, workspace, nil, "cp", r.path(tars+"/"+name), dist.path(name)).ok(t)
	}
	beside := []string{"SHA256SUMS", "SHA512SUMS", "provenance.json"}
	for _, about := range []string{"release", "source"} {
		beside = append(beside, "kubernetes-"+about+".spdx.json", "kubernetes-"+about+".cdx.json")
	}
	sound := r.slipway(t, "verify", dist.dir).ok(t)
	for _, name := range slices.AppendSeq(beside, maps.Keys(quickTarballs())) {
		if !strings.Contains(sound.stdout, name+": OK\n") {
			t.Errorf("%s is not said to be OK: %v", name, sound)
		}
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
