package execute

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/make/plan"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/catalog"
)

// put writes files below dir, each with its name as content.
func put(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// list returns the files below dir, each with its content.
func list(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		found[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTheReleaseFolderHoldsOneRelease(t *testing.T) {
	t.Parallel()
	amd64, arm64 := catalog.Platform{OS: "linux", Arch: "amd64"}, catalog.Platform{OS: "linux", Arch: "arm64"}
	sets := map[catalog.Set][]catalog.Platform{catalog.Server: {amd64, arm64}}
	p := &project.Project{Root: t.TempDir(), Catalog: &catalog.Catalog{Sets: sets}}
	tars := filepath.Join(p.Root, filepath.FromSlash(project.Tars))
	old, now := catalog.Tarball(catalog.Server, arm64), catalog.Tarball(catalog.Server, amd64)
	put(t, tars, old, now, "SHA256SUMS", "release.json", "notes.txt", "folder/x")
	put(t, tars, append(release.Signatures(), "attestations/a", release.RebuildFile("b"))...) // of an earlier release

	if err := sweep(p, &plan.Plan{}); err != nil { // a compile says nothing about releases
		t.Fatal(err)
	}
	if _, ok := list(t, tars)[old]; !ok {
		t.Error("a request that makes no release removed a tarball")
	}
	if err := sweep(p, &plan.Plan{Release: &release.Release{Artifacts: []release.Artifact{{Name: now, Path: now}}}}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{now: now, "SHA256SUMS": "SHA256SUMS", "release.json": "release.json", "notes.txt": "notes.txt",
		"folder/x": "folder/x"}
	if diff := cmp.Diff(want, list(t, tars)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The names of packages have the version in them, so that no release replaces those of another.
func TestPackagesOfAnEarlierReleaseGoWithTheirDigests(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const old, now = "packages/kubelet_1.2.3-1_amd64.deb", "packages/kubelet_1.2.4-1_amd64.deb"
	for _, dir := range []string{project.Tars, project.Sums512} {
		put(t, filepath.Join(root, filepath.FromSlash(dir)), old, now, "kubernetes.tar.gz")
	}
	if err := sweepPackages(root, &release.Release{Artifacts: []release.Artifact{{Name: now, Path: now}}}); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{project.Tars, project.Sums512} {
		want := map[string]string{now: now, "kubernetes.tar.gz": "kubernetes.tar.gz"}
		if diff := cmp.Diff(want, list(t, filepath.Join(root, filepath.FromSlash(dir)))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", dir, diff)
		}
	}
}

func TestResultsOfOneFolderAreDeliveredSideBySide(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, "bin/linux/amd64/a", "bin/linux/amd64/b", "bin/linux/arm64/a")
	results := []plan.Result{
		{Path: "bin/linux/amd64/a", Name: "linux/amd64/a"}, {Path: "bin/linux/amd64/b", Name: "linux/amd64/b"},
		{Path: "bin/linux/arm64/a", Name: "linux/arm64/a"},
	}
	one, several := filepath.Join(root, "one"), filepath.Join(root, "several")
	if err := errors.Join(deliver(root, results[:2], one), deliver(root, results, several)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "bin/linux/amd64/a", "b": "bin/linux/amd64/b"}, list(t, one)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want := map[string]string{"linux/amd64/a": "bin/linux/amd64/a", "linux/amd64/b": "bin/linux/amd64/b", "linux/arm64/a": "bin/linux/arm64/a"}
	if diff := cmp.Diff(want, list(t, several)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := deliver(root, []plan.Result{{Path: "bin/none", Name: "none"}}, one); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a result that is missing: %v", err)
	}
}

func TestAFolderIsDeliveredToWhatIsThere(t *testing.T) {
	t.Parallel()
	root, to := t.TempDir(), t.TempDir()
	put(t, root, "_output/api/a/b")
	put(t, to, "api/OWNERS", "api/a/b")
	if err := deliver(root, []plan.Result{{Path: "_output/api", Name: "api"}}, to); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"api/OWNERS": "api/OWNERS", "api/a/b": "_output/api/a/b"}, list(t, to)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAFolderBinMakesWayForTheLink(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	bin, binaries := filepath.Join(root, "bin"), filepath.Join(root, "local")
	put(t, bin, "slipway", "kubectl")
	put(t, binaries, "kubectl")
	if err := moveBin(bin, binaries); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"kubectl": "kubectl", "slipway": "slipway"}, list(t, binaries)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := os.Lstat(bin); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if err := moveBin(bin, binaries); err != nil { // nothing to do
		t.Error(err)
	}
}

// Who waits for a first run finds what is compiled already where it will be.
func TestTheLinkIsThereBeforeAnythingIsCompiled(t *testing.T) {
	t.Parallel()
	root, folder := t.TempDir(), "_output/local/bin/linux/amd64"
	if err := os.MkdirAll(filepath.Join(root, filepath.FromSlash(project.State)), 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(root, "_output", "bin")
	image := &action.Action{Outputs: []string{"_output/release-images/linux/amd64/pause.tar"}}
	if err := linkEarly(root, folder, []*action.Action{image}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(link); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a run that compiles nothing for the host makes a link: %v", err)
	}
	kubectl := &action.Action{Outputs: []string{folder + "/kubectl"}}
	if err := linkEarly(root, folder, []*action.Action{image, kubectl}); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(root, filepath.FromSlash(folder)), "kubectl")
	if _, err := os.Stat(filepath.Join(link, "kubectl")); err != nil {
		t.Error(err)
	}
}
