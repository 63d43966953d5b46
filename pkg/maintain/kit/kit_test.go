package kit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"slipway.build/pkg/tree/catalog"
)

// acme is a distribution with a version of a toolchain.
var acme = Options{
	Name: "Acme", Module: "acme.example/kubernetes",
	Toolchain: Toolchain{Path: "fork.example/slipway", Version: "v0.2.0", Sum: "h1:sum="},
}

func filesOf(t *testing.T, o Options) map[string]string {
	t.Helper()
	files, err := Files(o)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, f := range files {
		texts[f.Name] = string(f.Data)
	}
	return texts
}

// The tool has the toolchain's own selection of modules, so nothing is chosen anew.
func TestToolHasTheModulesOfTheToolchain(t *testing.T) {
	t.Parallel()
	files := filesOf(t, acme)
	got, err := modfile.Parse("go.mod", []byte(files["go.mod"]), nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	selected := map[string]string{"fork.example/slipway": "v0.2.0"}
	for _, r := range own.Require {
		selected[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range got.Require {
		if selected[r.Mod.Path] != r.Mod.Version {
			t.Errorf("go.mod has %s, want %q", r.Mod, selected[r.Mod.Path])
		}
		delete(selected, r.Mod.Path)
	}
	if len(selected) > 0 || got.Module.Mod.Path != "acme.example/kubernetes" || len(got.Replace) > 0 {
		t.Errorf("go.mod lacks %v:\n%s", selected, files["go.mod"])
	}
	for _, line := range []string{"fork.example/slipway v0.2.0 h1:sum=\n", "fork.example/slipway v0.2.0/go.mod h1:"} {
		if !strings.Contains(files["go.sum"], line) {
			t.Errorf("go.sum lacks %q", line)
		}
	}
	if !strings.Contains(files["magefiles/magefile.go"], `_ "fork.example/slipway/pkg/cli/targets"`) {
		t.Errorf("magefiles import no fork:\n%s", files["magefiles/magefile.go"])
	}
}

func TestModulesOfTheKitAreRenamed(t *testing.T) {
	t.Parallel()
	for name, text := range filesOf(t, acme) {
		if strings.Contains(text, `"`+own) || strings.HasPrefix(text, "module "+own) || strings.Contains(text, "\nmodule "+own) {
			t.Errorf("%s names a package of the toolchain's repository", name)
		}
		if strings.HasSuffix(name, "BUILD.bazel") {
			t.Errorf("%s is for this repository", name)
		}
	}
}

func TestSmallTree(t *testing.T) {
	t.Parallel()
	files := filesOf(t, acme)
	top := map[string]bool{}
	for name := range files {
		first, _, _ := strings.Cut(name, "/")
		top[first] = true
	}
	if len(files) > 250 || len(top) > 20 || strings.Count(files["Makefile"], "\n") > 25 {
		t.Errorf("%d files, %d at the top, a Makefile of %d lines", len(files), len(top), strings.Count(files["Makefile"], "\n"))
	}
}

func TestTxtarThatCannotHoldAFileIsNoticed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range packed {
		write(filepath.Join(name, map[bool]string{true: "file"}[filepath.Ext(name) == "" && name != "Makefile"]), "text\n")
	}
	if _, err := Pack(root, []byte("TARGETS := all\n")); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"no line break", "-- file --\n"} {
		write("cmd/main.go", text)
		if _, err := Pack(root, nil); err == nil || !strings.HasPrefix(err.Error(), "cmd/main.go: the kit cannot hold it") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestNewDefaultsOfKubeadmAreOfTheTreesRegistry(t *testing.T) {
	t.Parallel()
	theirs := map[string]string{catalog.File: "form: v1\nregistry: registry.acme.example/k8s\n", "go.mod": "module a\n"}
	u, err := NewUpgrade(nil, []File{{Name: catalog.KubeadmDefaults, Data: []byte("imageRepository: registry.k8s.io # the registry\n")}},
		func(name string) ([]byte, bool, error) { text, ok := theirs[name]; return []byte(text), ok, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "imageRepository: registry.acme.example/k8s # the registry\n"
	if got := string(u.Write[catalog.KubeadmDefaults].Data); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is left out is in no package, and a package of nothing goes with its files.
func TestPackagesOfWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	o := acme
	o.Without = []string{"kubelet", "cni-plugins"}
	files := filesOf(t, o)
	declared := files[catalog.File]
	for text, want := range map[string]bool{
		"{name: kubelet,": false, "{name: kubernetes-cni,": false, "{name: kubeadm, binaries: [kubeadm]": true,
		`maintainer: "Acme <packages@acme.example>"`: true,
	} {
		if strings.Contains(declared, text) != want {
			t.Errorf("release.yaml has %q: %t, want %t", text, !want, want)
		}
	}
	for name := range files {
		if strings.HasPrefix(name, catalog.PackageFolder+"/kubelet") {
			t.Errorf("there is a file %s", name)
		}
	}
}
