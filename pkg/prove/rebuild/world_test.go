package rebuild

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/stamp"
)

const (
	zipName = "_inputs/go/example.com/sum/@v/v1.0.0.zip"
	modName = "_inputs/go/example.com/sum/@v/v1.0.0.mod"
	patched = "patches/0001-more.patch"
	debText = "a package"
)

var debName = fmt.Sprintf("_inputs/debian/%x.deb", sha256.Sum256([]byte(debText)))

// files returns the small tree of package plan with a module, a patch and a package, and its inputs, by name.
func files(t *testing.T) map[string]string {
	t.Helper()
	ar, err := txtar.ParseFile(filepath.Join("..", "..", "make", "plan", "testdata", "tree.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range ar.Files {
		all[f.Name] = strings.ReplaceAll(string(f.Data), "go1.26.8", runtime.Version())
	}
	all[zipName], all[modName] = moduleZip(t, "code"), "module example.com/sum\n"
	all["_inputs/go/example.com/sum/@v/v1.0.0.info"], all["_inputs/go/example.com/sum/@v/list"] = `{"Version":"v1.0.0"}`, "v1.0.0\n"
	all["images/dns/go.sum"] = fmt.Sprintf("example.com/sum v1.0.0 %s\nexample.com/sum v1.0.0/go.mod %s\n", sumOfZip(t, all[zipName]),
		goModSumOf(t, all[modName]))
	all[patched] = "a patch"
	all["images/static/debian.lock"] = fmt.Sprintf("suite trixie\ntime 20261121T131324Z\namd64 liba 1 9 %x pool/a.deb\n",
		sha256.Sum256([]byte(debText)))
	all[debName] = debText
	return all
}

// moduleZip returns the zip of a module.
func moduleZip(t *testing.T, code string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("example.com/sum@v1.0.0/sum.go")
	if err == nil {
		_, err = f.Write([]byte(code))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func sumOfZip(t *testing.T, data string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "zip")
	write(t, file, data)
	sum, err := zipSum(file)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func goModSumOf(t *testing.T, data string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mod")
	write(t, file, data)
	sum, err := goModSum(file)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// isInput reports whether a file is not of the tree.
func isInput(name string) bool { return strings.HasPrefix(name, input.Dir+"/") }

// published writes the provenance of a release of the files, and the tarball of the sources beside it, and returns its path.
func published(t *testing.T, all map[string]string, edit func(*release.Release)) string {
	t.Helper()
	dir, tree := t.TempDir(), t.TempDir()
	for name, text := range all {
		if !isInput(name) {
			write(t, filepath.Join(tree, name), text)
		}
	}
	version, err := stamp.Unmarshal([]byte(all["version"]))
	if err != nil {
		t.Fatal(err)
	}
	found, err := find(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	sources := filepath.Join(dir, catalog.SourceTarball)
	if err := pack(t.Context(), found, version, sources); err != nil {
		t.Fatal(err)
	}
	sum, err := checksum.File(sources)
	if err != nil {
		t.Fatal(err)
	}
	linux := platform.Platform{OS: "linux", Arch: "amd64"}
	r := &release.Release{
		Format: release.Format, Version: version.Version, Commit: version.Commit, TreeState: version.TreeState, Date: version.Date,
		Compiler: "go", Platforms: []platform.Platform{linux}, Sets: []string{"client"},
		Artifacts: []release.Artifact{{Name: "a.tar.gz", Kind: release.Tarball, Path: "a.tar.gz", SHA256: strings.Repeat("a", 64),
			SHA512: strings.Repeat("b", 128)}},
		Inputs: []release.Input{
			{Kind: release.Source, Name: catalog.SourceTarball, SHA256: sum},
			{Kind: release.Toolchain, Name: release.ToolchainModule, Version: "v0.0.1-" + runtime.Version() + ".linux-amd64", Platform: linux,
				Sum: "h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM="},
			{Kind: release.Module, Name: "example.com/sum", Version: "v1.0.0", Sum: sumOfZip(t, all[zipName])},
			{Kind: release.Module, Name: "./fake/kubernetes", Replaces: "k8s.io/kubernetes@v1.36.3"},
			{Kind: release.Debian, Name: "liba", Version: "1", Platform: linux, SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(debText)))},
			{Kind: release.Patch, Name: patched, SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(all[patched])))},
		},
	}
	if edit != nil {
		edit(r)
	}
	made, err := provenance.Of(r, []byte("description"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, provenance.File)
	write(t, file, string(made[0].Content))
	return file
}

// bundle writes the files as a kubernetes-inputs.tar, with the sums that they have.
func bundle(t *testing.T, all map[string]string) string {
	t.Helper()
	sums := checksum.Sums{}
	for name, text := range all {
		sums[name] = checksum.Digest{SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text)))}
	}
	all = maps.Clone(all)
	all[input.Sums] = string(sums.SHA256SUMS())
	file := filepath.Join(t.TempDir(), input.Tarball)
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(all[name]))})
		if err == nil {
			_, err = w.Write([]byte(all[name]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return file
}

func opened(t *testing.T, file string) *Statement {
	t.Helper()
	s, err := Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// prepare prepares a rebuild in a new folder, of a bundle if there is one.
func prepare(t *testing.T, statement, inputs string) (*Tree, error) {
	t.Helper()
	return Prepare(t.Context(), opened(t, statement), filepath.Join(t.TempDir(), "again"), inputs,
		filepath.Join(filepath.Dir(statement), catalog.SourceTarball))
}
