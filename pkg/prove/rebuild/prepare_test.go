package rebuild

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/stamp"
)

func TestWhatIsWrongIsNamedBeforeABuild(t *testing.T) {
	t.Parallel()
	if _, err := prepare(t, published(t, files(t), nil), bundle(t, files(t))); err != nil {
		t.Fatal(err)
	}
	toolchain := input.Modules + "/" + release.ToolchainModule + "/@v/v0.0.1-" + runtime.Version() + ".linux-amd64.zip"
	for what, tt := range map[string]struct {
		change func(files map[string]string) // of the bundle
		state  func(*release.Release)        // of the release
		want   []string                      // what problems begin with
	}{
		"a module was exchanged": {
			change: func(f map[string]string) { f[zipName] = moduleZip(t, "other") },
			want:   []string{"the module example.com/sum@v1.0.0 in _inputs/go differs: its sum is h1:"},
		},
		"a module is no zip": {
			change: func(f map[string]string) { f[zipName] = "text" },
			want:   []string{"the module example.com/sum@v1.0.0 cannot be read: zip: not a valid zip file"},
		},
		"a go.mod was exchanged": {
			change: func(f map[string]string) { f[modName] += "\n" },
			want:   []string{"the go.mod of example.com/sum@v1.0.0 in _inputs/go differs"},
		},
		"inputs are missing": {
			change: func(f map[string]string) { delete(f, zipName); delete(f, debName) },
			want:   []string{debName + " is missing", zipName + " is missing"},
		},
		"a package was exchanged": {
			change: func(f map[string]string) { f[debName] = "another" },
			want:   []string{"the package liba 1 in _inputs/debian differs: its sum is "},
		},
		"a toolchain was exchanged": {
			change: func(f map[string]string) { f[toolchain] = moduleZip(t, "Go") },
			want:   []string{"the toolchain v0.0.1-" + runtime.Version() + ".linux-amd64.zip differs: its sum is h1:"},
		},
		"a toolchain was added": {
			change: func(f map[string]string) { f[strings.Replace(toolchain, "go1", "go9", 1)] = moduleZip(t, "Go") },
			want:   []string{"the tree does not pin the toolchain v0.0.1-go9"},
		},
		"a patch is missing": {
			change: func(f map[string]string) { delete(f, patched) },
			want:   []string{"the source " + patched + " is missing", "the patch " + patched + " is missing"},
		},
		"a patch was changed": {
			change: func(f map[string]string) { f[patched] += "more" },
			want:   []string{"the source " + patched + " differs", "the patch " + patched + " differs: its SHA-256 is "},
		},
		"a patch was added": {
			change: func(f map[string]string) { f["images/dns/patches/a.patch"] = "" },
			want: []string{"the release was made without the source images/dns/patches/a.patch",
				"the release was made without the patch images/dns/patches/a.patch"},
		},
		"sources were changed": {
			change: func(f map[string]string) { f["README.md"] = "other"; delete(f, "LICENSE"); f["more"] = "" },
			want: []string{"the source LICENSE is missing", "the source README.md differs",
				"the release was made without the source more"},
		},
		"many sources were changed": {
			change: func(f map[string]string) {
				for i := range 12 {
					f[fmt.Sprintf("more/%02d", i)] = ""
				}
			},
			want: []string{
				"the release was made without the source more/00", "the release was made without the source more/01",
				"the release was made without the source more/02",
				"the release was made without the source more/03", "the release was made without the source more/04",
				"the release was made without the source more/05",
				"the release was made without the source more/06", "the release was made without the source more/07",
				"the release was made without the source more/08",
				"the release was made without the source more/09", "… and 2 more of the sources",
			},
		},
		"the tree does not load": {
			change: func(f map[string]string) { delete(f, "release/release.yaml") },
			want:   []string{"the source release/release.yaml is missing", "read catalog: open "},
		},
		"something was compiled": {
			change: func(f map[string]string) { f["_output/bin/slipway"] = "" },
			want:   []string{"_output is neither a source nor an input"},
		},
		"there is a repository": {
			change: func(f map[string]string) { f[".git/config"] = ""; f["docs/.git"] = "" },
			want:   []string{".git is neither a source nor an input", "docs/.git is neither a source nor an input"},
		},
		"another version, commit and time": {
			state: func(r *release.Release) {
				r.Version, r.Commit, r.TreeState, r.Date = r.Version+"0", strings.Repeat("a", 40), "dirty", r.Date.Add(time.Second)
			},
			want: []string{
				"the version is v1.36.3+acme.1 in the tree, and v1.36.3+acme.10 in the release", "the commit is ",
				"the state is clean in the tree, and dirty in the release", "the time is ",
			},
		},
		"another toolchain": {
			state: func(r *release.Release) { r.Inputs[1].Sum = "h1:" + strings.Repeat("A", 43) + "=" },
			want: []string{"the toolchain golang.org/toolchain@v0.0.1-" + runtime.Version() +
				".linux-amd64 differs in the tree: its sum is h1:ZOm"},
		},
		"a toolchain of another version": {
			state: func(r *release.Release) { r.Inputs[1].Version = "v0.0.1-go1.2.3.linux-amd64" },
			want:  []string{"the release was compiled by golang.org/toolchain@v0.0.1-go1.2.3.linux-amd64, and the tree pins " + runtime.Version()},
		},
		"other modules": {
			state: func(r *release.Release) {
				r.Inputs[2].Sum = "h1:" + strings.Repeat("A", 43) + "="
				r.Inputs = append(r.Inputs, release.Input{Kind: release.Module, Name: "example.com/a", Version: "v1.0.0", Sum: r.Inputs[2].Sum})
			},
			want: []string{"the module example.com/sum@v1.0.0 differs in the tree: its sum is h1:",
				"the tree has no module example.com/a@v1.0.0"},
		},
		"another package": {
			state: func(r *release.Release) { r.Inputs[4].SHA256 = strings.Repeat("c", 64) },
			want:  []string{"the tree has no package liba 1 with the SHA-256 cccc"},
		},
		"another slipway": {
			state: func(r *release.Release) {
				r.Inputs = append(r.Inputs, release.Input{Kind: release.Tool, Name: "slipway.build", Version: "v0.2.0", Sum: r.Inputs[2].Sum})
			},
			want: []string{"the release was made by slipway.build@v0.2.0, and the tree's make compiles the one in the tree"},
		},
		"a slipway in a folder": {
			state: func(r *release.Release) {
				r.Inputs = append(r.Inputs, release.Input{Kind: release.Tool, Name: "slipway.build", Version: "folder ../slipway", Commit: "0123",
					Tree: strings.Repeat("c", 64)})
			},
			want: []string{"the release was made by a slipway.build of the commit 0123, and the tree's make compiles the one in the tree"},
		},
		"a patch outside of the tree": {
			state: func(r *release.Release) { r.Inputs[5].Name = "../a.patch" },
			want:  []string{"the patch ../a.patch is outside of the tree", "the release was made without the patch " + patched},
		},
	} {
		changed := files(t)
		if tt.change != nil {
			tt.change(changed)
		}
		_, err := prepare(t, published(t, files(t), tt.state), bundle(t, changed))
		problems, ok := errors.AsType[Problems](err)
		if !ok || !slices.EqualFunc(problems, tt.want, strings.HasPrefix) {
			t.Errorf("%s: error %v, want %s", what, err, strings.Join(tt.want, "\n"))
		}
	}
}

// A tree that has slipway as a module makes releases by that version alone, and its inputs have the module.
func TestTheSlipwayOfAReleaseIsThatOfTheTree(t *testing.T) {
	t.Parallel()
	sum := "h1:" + strings.Repeat("A", 43) + "="
	made := func(version, sum string) func(*release.Release) {
		return func(r *release.Release) {
			r.Inputs = append(r.Inputs, release.Input{Kind: release.Tool, Name: "slipway.build", Version: version, Sum: sum})
		}
	}
	all := files(t)
	all["go.mod"] = "module acme.example/kubernetes\n\ntool slipway.build\n\nrequire slipway.build v0.2.0\n"
	all["go.sum"] = "slipway.build v0.1.0 " + sum + "\nslipway.build v0.2.0 " + sum + "\n"
	for _, tt := range []struct {
		state func(*release.Release)
		want  []string
	}{
		{made("v0.2.0", sum), nil},
		{made("v0.1.0", sum), []string{"the release was made by slipway.build@v0.1.0, and the tree's make compiles slipway.build@v0.2.0"}},
		{made("v0.3.0", sum), []string{"the release was made by slipway.build@v0.3.0, and the tree's make compiles slipway.build@v0.2.0"}},
		{made("v0.2.0", strings.Replace(sum, "AA", "AB", 1)),
			[]string{"the module slipway.build@v0.2.0 differs in the tree: its sum is " + sum}},
		{func(r *release.Release) {
			r.Inputs = append(r.Inputs, release.Input{Kind: release.Tool, Name: "slipway.build", Tree: strings.Repeat("c", 64)})
		}, []string{"the release was made by a slipway.build of the commit that nobody knows, " +
			"and the tree's make compiles slipway.build@v0.2.0"}},
	} {
		_, err := prepare(t, published(t, all, tt.state), "")
		problems, _ := errors.AsType[Problems](err)
		if !slices.Equal(problems, tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
	_, err := prepare(t, published(t, all, made("v0.2.0", sum)), bundle(t, all))
	if problems, _ := errors.AsType[Problems](err); !slices.Contains(problems, "_inputs/go/slipway.build/@v/v0.2.0.zip is missing") {
		t.Errorf("inputs without the module: error %v", err)
	}
}

// The tarball of the sources is compared before it is unpacked, and without it only the tree's digest is known.
func TestSourcesAreKnownByDigest(t *testing.T) {
	t.Parallel()
	statement := published(t, files(t), nil)
	sources := filepath.Join(filepath.Dir(statement), catalog.SourceTarball)
	if _, err := prepare(t, statement, ""); err != nil {
		t.Error(err)
	}
	changed := files(t)
	changed["README.md"] = "other"
	other := filepath.Join(filepath.Dir(published(t, changed, nil)), catalog.SourceTarball)
	for _, inputs := range []string{"", bundle(t, files(t))} {
		_, err := Prepare(t.Context(), opened(t, statement), t.TempDir(), inputs, other)
		if err == nil || !strings.Contains(err.Error(), catalog.SourceTarball+" differs: its SHA-256 is ") {
			t.Errorf("error %v", err)
		}
	}
	if err := os.Remove(sources); err != nil {
		t.Fatal(err)
	}
	if _, err := prepare(t, statement, bundle(t, files(t))); err != nil {
		t.Error(err)
	}
	if _, err := prepare(t, statement, bundle(t, changed)); err == nil ||
		!strings.Contains(err.Error(), "the tree's sources are others: the SHA-256 of their ") {
		t.Errorf("error %v", err)
	}
	if _, err := prepare(t, statement, ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestAKilledRebuildGoesOn(t *testing.T) {
	t.Parallel()
	statement, inputs := published(t, files(t), nil), bundle(t, files(t))
	dir := t.TempDir()
	sources := filepath.Join(filepath.Dir(statement), catalog.SourceTarball)
	again := func() (*Tree, error) { return Prepare(t.Context(), opened(t, statement), dir, inputs, sources) }
	// Killed while it unpacked, and while it wrote the mark.
	write(t, filepath.Join(dir, begun), "")
	write(t, filepath.Join(dir, "tree", "half"), "")
	write(t, filepath.Join(dir, ".of.123.tmp"), "")
	tree, err := again()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(tree.Dir, "half")); err == nil {
		t.Error("what was there before is in the tree")
	}
	// Killed while it built.
	made := filepath.Join(tree.Dir, "_output", "local", "bin", "kubectl")
	write(t, made, "")
	if _, err := again(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(made); err != nil {
		t.Error("it begins anew")
	}
	// Somebody changed the tree meanwhile.
	write(t, filepath.Join(tree.Dir, "README.md"), "other")
	if _, err := again(); err == nil || !strings.Contains(err.Error(), "the source README.md differs") {
		t.Errorf("error %v", err)
	}
	statement = published(t, files(t), func(r *release.Release) { r.Sets = []string{"server"} })
	if _, err := again(); err == nil || !strings.HasSuffix(err.Error(), "has what another rebuild made: name another folder, or remove it") {
		t.Errorf("error %v", err)
	}
	dir = t.TempDir()
	write(t, filepath.Join(dir, "letter"), "")
	if _, err := again(); err == nil || !strings.HasSuffix(err.Error(), "is not empty: name another folder") {
		t.Errorf("error %v", err)
	}
}

func TestStatementIsReadInItsBundle(t *testing.T) {
	t.Parallel()
	file := published(t, files(t), nil)
	plain := opened(t, file)
	key, err := signature.New()
	if err != nil {
		t.Fatal(err)
	}
	other, err := signature.New()
	if err != nil {
		t.Fatal(err)
	}
	b, err := signature.Attest(t.Context(), key, plain.Content)
	if err != nil {
		t.Fatal(err)
	}
	data, err := b.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	public, others := key.Public(), other.Public()
	if _, err := Open(file, &public); err == nil {
		t.Error("it is trusted without a signature")
	}
	attestation := filepath.Join(filepath.Dir(file), filepath.FromSlash(Attestation))
	write(t, attestation, string(data))
	for _, name := range []string{file, attestation} {
		s, err := Open(name, &public)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(s.Content, plain.Content) || s.Folder != filepath.Dir(file) {
			t.Errorf("%s: folder %s, content %s", name, s.Folder, s.Content)
		}
		if _, err := Open(name, &others); err == nil || !strings.Contains(err.Error(), name+" is not to be trusted: ") {
			t.Errorf("error %v", err)
		}
	}
	write(t, file, string(plain.Content)+" ")
	if _, err := Open(file, &public); err == nil || !strings.Contains(err.Error(), "is not to be trusted") {
		t.Errorf("another byte: error %v", err)
	}
	message, err := signature.Sign(t.Context(), key, plain.Content)
	if err != nil {
		t.Fatal(err)
	}
	if data, err = message.Marshal(); err != nil {
		t.Fatal(err)
	}
	write(t, attestation, string(data))
	if _, err := Open(attestation, nil); err == nil {
		t.Error("a signature is a statement")
	}
	for old, now := range map[string]string{
		`"name": "release.json"`: `"name": "other.json"`,
		`provenance#go"`:         `provenance#gcc"`,
		`"sets"`:                 `"more": 1, "sets"`,
		`"sets": [`:              `"variables": {"CC": "gcc"}, "sets": [`,
	} {
		changed := strings.Replace(string(plain.Content), old, now, 1)
		write(t, file, changed)
		if _, err := Open(file, nil); err == nil || changed == string(plain.Content) {
			t.Errorf("%s: error %v", now, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{"_type":"https://in-toto.io/Statement/v1"}`))
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json",
		"dsseEnvelope":{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":""}]}}`))
	file := filepath.Join(f.TempDir(), provenance.File)
	f.Fuzz(func(t *testing.T, data []byte) {
		write(t, file, string(data))
		_, _ = Open(file, nil)
	})
}

// The commit is enough, wherever it is.
func TestSourcesComeFromARepository(t *testing.T) {
	t.Parallel()
	repo := t.TempDir()
	all := files(t)
	maps.DeleteFunc(all, func(name, _ string) bool { return isInput(name) })
	for name, text := range all {
		if name != stamp.File {
			write(t, filepath.Join(repo, name), text)
		}
	}
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@acme.example"}, args...)...)
		cmd.Dir = repo
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "--quiet")
	git("add", "--all")
	git("commit", "--quiet", "--message=first")
	commit := git("rev-parse", "HEAD")
	write(t, filepath.Join(repo, "README.md"), "later")
	git("commit", "--quiet", "--all", "--message=second")

	all[stamp.File] = strings.Replace(all[stamp.File], "0123456789abcdef0123456789abcdef01234567", commit, 1)
	all[zipName] = moduleZip(t, "code")
	s := opened(t, published(t, all, nil))
	to := filepath.Join(t.TempDir(), catalog.SourceTarball)
	if err := s.Export(t.Context(), repo, to); err != nil {
		t.Fatal(err)
	}
	if problem, err := s.sources(to); problem != "" || err != nil {
		t.Error(problem, err)
	}
	if err := s.Export(t.Context(), t.TempDir(), to); err == nil || !strings.Contains(err.Error(), "fetch the commit "+commit+" from ") {
		t.Errorf("error %v", err)
	}
	all[stamp.File] = strings.Replace(all[stamp.File], "clean", "dirty", 1)
	if err := opened(t, published(t, all, nil)).Export(t.Context(), repo, to); err == nil ||
		!strings.Contains(err.Error(), "no commit has its sources") {
		t.Errorf("error %v", err)
	}
}

func TestOnlyTheSameIsSigned(t *testing.T) {
	t.Parallel()
	sum := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	image := release.Artifact{Name: "example.com/a:v1", Kind: release.Image, SHA256: sum("image"), SHA512: strings.Repeat("b", 128)}
	r := &release.Release{Format: release.Format, Version: "v1.36.3+acme.1", Compiler: "go", Artifacts: []release.Artifact{
		{Name: "a.tar.gz", Kind: release.Tarball, Path: "a.tar.gz", SHA256: sum("a"), SHA512: strings.Repeat("b", 128)}, image,
	}}
	description, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	made, err := provenance.Of(r, description)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), provenance.File)
	write(t, file, string(made[0].Content))
	tree := &Tree{Statement: opened(t, file), Dir: t.TempDir()}
	key, err := signature.New()
	if err != nil {
		t.Fatal(err)
	}
	compare := func() *Report {
		t.Helper()
		report, err := tree.Compare()
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	signed := filepath.Join(tree.Made(), filepath.FromSlash(release.RebuildFile(key.Public().Hint())))
	differs := func(name string, what string) {
		t.Helper()
		report := compare()
		at := slices.IndexFunc(report.Subjects, func(s Subject) bool { return s.Name == name })
		var text strings.Builder
		if err := report.Text(&text); err != nil {
			t.Fatal(err)
		}
		if report.Same || report.Subjects[at].Same() || !strings.Contains(text.String(), name+what) {
			t.Errorf("%s: %+v, %s", name, report, text.String())
		}
		if _, err := tree.Sign(t.Context(), report, key); err == nil {
			t.Errorf("%s differs, and is signed", name)
		}
		if _, err := os.Stat(signed); err == nil {
			t.Errorf("%s differs, and there is %s", name, signed)
		}
	}
	write(t, filepath.Join(tree.Made(), release.File), string(description))
	differs("a.tar.gz", ": was not made")
	write(t, filepath.Join(tree.Made(), "a.tar.gz"), "b") // whatever its description says
	differs("a.tar.gz", ": differs: its SHA-256 is "+sum("b"))
	write(t, filepath.Join(tree.Made(), "a.tar.gz"), "a")
	write(t, filepath.Join(tree.Made(), release.File), strings.Replace(string(description), image.SHA256, sum("other"), 1))
	differs(image.Name, ": differs")
	differs(release.File, ": differs")
	write(t, filepath.Join(tree.Made(), release.File), string(description))
	report := compare()
	if !report.Same || len(report.Subjects) != 3 {
		t.Errorf("%+v", report)
	}
	name, err := tree.Sign(t.Context(), report, key)
	if err != nil || name != signed {
		t.Fatal(name, err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := signature.Unmarshal(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Verify(key.Public(), b.Statement()), provenance.CheckSummary(b.Statement(), made[0].Content)); err != nil {
		t.Error(err)
	}
}
