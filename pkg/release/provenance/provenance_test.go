package provenance

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/release"
)

const sum = "h1:l6N77U7tjwB5L056bgrBTJIEdevac/naBZ3iSvDNfpM="

// hash is the same sum in hex: base64 --decode | xxd -p.
const hash = "97a37bed4eed8f00792f4e7a6e0ac14c920475ebda73f9da059de24af0cd7e93"

// small returns a release of a patched and another module, for two platforms.
func small() *release.Release {
	on := platform.Platform{OS: "linux", Arch: "amd64"}
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 128)
	api := release.Input{Kind: release.Module, Name: "k8s.io/api", Version: "v0.37.1-patched.p1.c2", Sum: sum}
	zap := release.Input{Kind: release.Module, Name: "go.uber.org/zap", Version: "v1.0.0", Sum: sum}
	return &release.Release{
		Format: release.Format, Version: "v1.37.1+acme.1", Commit: "0123", TreeState: "clean", Date: time.Date(2026, 11, 1, 2, 3, 4, 0, time.UTC),
		Go: "go1.26.8", Compiler: "go", Platforms: []platform.Platform{on}, Sets: []string{"server"}, Variables: map[string]string{"DBG": "1"},
		Artifacts: []release.Artifact{
			{Name: "SHA256SUMS", Kind: release.Sums, Path: "SHA256SUMS", SHA256: a, SHA512: b},
			{Name: "linux/amd64/etcd", Kind: release.Binary, Platform: on, SHA256: a, SHA512: b, Inputs: []string{zap.PURL()}},
			{Name: "linux/amd64/etcd.tar", Kind: release.Archive, Platform: on, SHA256: a, SHA512: b, Of: []string{"example.com/etcd-amd64:v3"}},
			{Name: "linux/amd64/kubelet", Kind: release.Binary, Platform: on, SHA256: a, SHA512: b, Inputs: []string{api.PURL()}},
			{Name: "example.com/etcd-amd64:v3", Kind: release.Image, Platform: on, SHA256: a, SHA512: b, Of: []string{"linux/amd64/etcd"}},
			{Name: "example.com/etcd:v3", Kind: release.Index, SHA256: a, SHA512: b, Of: []string{"example.com/etcd-amd64:v3"}},
			{Name: "node.tar.gz", Kind: release.Tarball, Path: "node.tar.gz", SHA256: a, SHA512: b, Of: []string{"linux/amd64/kubelet"}},
			{Name: "src.tar.gz", Kind: release.Tarball, Path: "src.tar.gz", SHA256: a, SHA512: b},
		},
		Inputs: []release.Input{
			{Kind: release.Source, Name: "src.tar.gz", SHA256: a},
			{Kind: release.Toolchain, Name: "golang.org/toolchain", Version: "v0.0.1-go1.26.8.linux-amd64", Platform: on, Sum: sum},
			{Kind: release.Patch, Name: "patches/0001-racks.patch", SHA256: a, Changes: []string{"k8s.io/api"}},
			api, zap,
			{Kind: release.Tool, Name: "slipway.build", Version: "v0.2.0", Sum: sum, Libraries: []release.Library{
				{Name: "golang.org/x/mod", Version: "v0.42.0", Sum: sum}}},
		},
	}
}

func of(t *testing.T, r *release.Release) map[string]*Statement {
	t.Helper()
	made, err := Of(r, []byte("description"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*Statement{}
	var names []string
	for _, m := range made {
		s, err := Unmarshal(m.Content)
		if err != nil {
			t.Fatalf("%s: %v", m.File, err)
		}
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", m.File, err)
		}
		all[m.File] = s
		names = append(names, m.File)
	}
	slices.Sort(names)
	if want := Files(r); !slices.Equal(names, want) {
		t.Errorf("statements %q, listed are %q", names, want)
	}
	return all
}

func subjectNames(s *Statement) string {
	var names []string
	for _, subject := range s.Subject {
		names = append(names, subject.Name)
	}
	return strings.Join(names, " ")
}

func dependencies(s *Statement) string {
	var names []string
	for _, r := range s.Predicate.Definition.Dependencies {
		names = append(names, r.Name)
	}
	return strings.Join(names, " ")
}

func TestStatementsNameWhatWentIn(t *testing.T) {
	t.Parallel()
	all := of(t, small())
	for file, want := range map[string][2]string{
		"provenance.json": {"SHA256SUMS example.com/etcd-amd64:v3 example.com/etcd:v3 node.tar.gz release.json src.tar.gz",
			"commit src.tar.gz golang.org/toolchain patches/0001-racks.patch k8s.io/api go.uber.org/zap slipway.build golang.org/x/mod"},
		"provenance/node.tar.gz.json": {"node.tar.gz",
			"commit src.tar.gz golang.org/toolchain patches/0001-racks.patch k8s.io/api slipway.build"},
		"provenance/src.tar.gz.json":       {"src.tar.gz", "commit src.tar.gz slipway.build"},
		"provenance/etcd-linux-amd64.json": {"example.com/etcd-amd64:v3", "commit src.tar.gz golang.org/toolchain go.uber.org/zap slipway.build"},
		"provenance/etcd.json":             {"example.com/etcd:v3", "commit src.tar.gz golang.org/toolchain go.uber.org/zap slipway.build"},
	} {
		s := all[file]
		if s == nil {
			t.Errorf("no %s", file)
			continue
		}
		if got := subjectNames(s); got != want[0] {
			t.Errorf("%s is about %s, want %s", file, got, want[0])
		}
		if got := dependencies(s); got != want[1] {
			t.Errorf("%s depends on %s, want %s", file, got, want[1])
		}
	}
	d := all["provenance.json"].Predicate.Definition
	for _, r := range d.Dependencies {
		if r.Name == "k8s.io/api" && (r.Digest["dirHash"] != hash || len(r.Digest) != 1 ||
			r.URI != "pkg:golang/k8s.io/api@v0.37.1-patched.p1.c2") {
			t.Errorf("the module is %+v", r)
		}
	}
	if d.BuildType != Page+"#go" || d.Parameters.Date != "2026-11-01T02:03:04Z" ||
		d.Parameters.Variables["DBG"] != "1" || d.Parameters.Inputs {
		t.Errorf("definition %+v", d)
	}
}

func TestReleasesThatNobodyCouldVerifyAreErrors(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(r *release.Release){
		`the compiler "gccgo"`:       func(r *release.Release) { r.Compiler = "gccgo" },
		"is not the sum of a module": func(r *release.Release) { r.Inputs[3].Sum = "h1:short" },
		"a statement about more than 1024": func(r *release.Release) {
			for i := range MaxSubjects {
				name := fmt.Sprintf("%d.tar.gz", i)
				r.Artifacts = append(r.Artifacts, release.Artifact{Name: name, Path: name, Kind: release.Tarball})
			}
		},
	} {
		r := small()
		change(r)
		if _, err := Of(r, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestStatementsThatNobodyShouldTrust(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(s *Statement){
		"the build type":                   func(s *Statement) { s.Predicate.Definition.BuildType = Page + "#magic" },
		"the builder":                      func(s *Statement) { s.Predicate.Details.Builder.ID = "https://example.com/builder" },
		"the parameter HOSTFLAGS":          func(s *Statement) { s.Predicate.Definition.Parameters.Variables["HOSTFLAGS"] = "1" },
		"go.uber.org/zap is not pinned":    func(s *Statement) { s.Predicate.Definition.Dependencies[5].Digest = nil },
		"not a statement of slipway's: it": func(s *Statement) { s.PredicateType = "https://example.com/other" },
	} {
		s := of(t, small())[File]
		change(s)
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		read, err := Unmarshal(data)
		if err == nil {
			err = read.Check()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	for _, text := range []string{"", "{}", "[]", `{"_type":"a","more":1}`} {
		if _, err := Unmarshal([]byte(text)); err == nil {
			t.Errorf("%q is a statement", text)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	made, err := Of(small(), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(made[0].Content)
	f.Fuzz(func(_ *testing.T, data []byte) {
		if s, err := Unmarshal(data); err == nil {
			_ = s.Check()
		}
	})
}

// Whatever a release.json says, statements about it are made within bounds, or there is an error.
func FuzzOf(f *testing.F) {
	data, err := small().Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := release.Unmarshal(data)
		if err != nil {
			return
		}
		made, err := Of(r, data)
		if err != nil {
			return
		}
		for _, m := range made {
			if _, err := Unmarshal(m.Content); err != nil {
				t.Errorf("%s: %v", m.File, err)
			}
		}
	})
}

// Each of a thousand images could say that it holds everything.
func TestStatementsHaveABound(t *testing.T) {
	t.Parallel()
	r := small()
	for i := range 100 {
		in := release.Input{Kind: release.Module, Name: "example.com/" + strings.Repeat("m", 1<<14), Version: fmt.Sprintf("v1.0.%d", i), Sum: sum}
		r.Inputs = append(r.Inputs, in)
		for j := range r.Artifacts {
			r.Artifacts[j].Inputs = append(r.Artifacts[j].Inputs, in.PURL())
		}
	}
	for i := range 30 {
		r.Artifacts = append(r.Artifacts, release.Artifact{Name: fmt.Sprint(i, ".tar.gz"), Kind: release.Tarball, Path: fmt.Sprint(i),
			Of: []string{"linux/amd64/etcd"}})
	}
	if _, err := Of(r, nil); err == nil || !strings.Contains(err.Error(), "take more than 64 MiB") {
		t.Errorf("error %v", err)
	}
}

func TestWhatIsNoModuleIsPinnedByCommitAndFiles(t *testing.T) {
	t.Parallel()
	tree := strings.Repeat("c", 64)
	for _, tt := range []struct {
		in   release.Input
		want Resource
	}{
		{release.Input{Kind: release.Tool, Name: "slipway.build", Version: "v0.2.0", Sum: sum},
			Resource{"slipway.build", "pkg:golang/slipway.build@v0.2.0", map[string]string{"dirHash": hash}, nil}},
		{release.Input{Kind: release.Tool, Name: "slipway.build", Version: "folder ../slipway", Commit: "0123", Tree: tree},
			Resource{"slipway.build", "", map[string]string{"gitCommit": "0123", "sha256": tree}, nil}},
		{release.Input{Kind: release.Tool, Name: "slipway.build", Version: "folder", Tree: tree},
			Resource{"slipway.build", "", map[string]string{"sha256": tree}, nil}},
		{release.Input{Kind: release.Repository, Name: "https://git.example/kubernetes", Version: "fix", Commit: "0123", Tree: "4567"},
			Resource{"https://git.example/kubernetes", "", map[string]string{"gitCommit": "0123", "gitTree": "4567"}, nil}},
	} {
		r := small()
		r.Inputs = []release.Input{tt.in}
		all := of(t, r)["provenance.json"].Predicate.Definition.Dependencies
		if got := all[len(all)-1]; !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v, want %+v", got, tt.want)
		}
	}
}

func TestOverriddenModulesSayWhy(t *testing.T) {
	t.Parallel()
	r := small()
	r.Inputs = append(r.Inputs, release.Input{Kind: release.Module, Name: "golang.org/x/net", Version: "v0.60.0", Sum: sum},
		release.Input{Kind: release.Module, Name: "golang.org/x/net", Version: "v0.61.0", Sum: sum})
	r.Overrides = []release.Override{{Module: "golang.org/x/net", Version: "v0.60.0", Fixes: []string{"CVE-2026-12345"}}}
	for _, d := range of(t, r)["provenance.json"].Predicate.Definition.Dependencies {
		want := ""
		if d.URI == "pkg:golang/golang.org/x/net@v0.60.0" {
			want = "raised above upstream's version; fixes CVE-2026-12345"
		}
		if d.Annotations["override"] != want {
			t.Errorf("%+v, want the override %q", d, want)
		}
	}
}
