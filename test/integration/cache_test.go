//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var quickRelease = []string{"release", "--quick"}

func TestNoOpRunsNothing(t *testing.T) {
	r := baseline(t)
	r.jsonRun(t, quickRelease...).didNothing(t)
	if got := r.make(t, quick).ok(t); !strings.Contains(got.stdout, tars+"/SHA256SUMS") || !strings.Contains(got.stdout, " unchanged in ") {
		t.Errorf("a run that does nothing does not list the artifacts: %v", got)
	}
}

func TestTouchedFilesRunNothing(t *testing.T) {
	r := baseline(t)
	for _, name := range []string{"cmd/kube-scheduler/main.go", "cmd/go.mod", "release/release.yaml", hostBin("kubectl"),
		tars + "/kubernetes-node-" + host + ".tar.gz"} {
		now := time.Now()
		if err := os.Chtimes(r.path(name), now, now); err != nil {
			t.Fatal(err)
		}
	}
	r.jsonRun(t, quickRelease...).didNothing(t)
}

// The stamp is fixed, as it is between two edits of a tree that is dirty already. A comment in a main package changes its binary, by
// the build ID. Everything that holds neither that binary nor the sources is left alone.
func TestCommentEditRebuildsOnlyWhatHoldsTheComponent(t *testing.T) {
	r := baseline(t)
	s := r.stamp(t)
	dirty := r.tree.with("KUBE_GIT_VERSION="+s.GitVersion, "KUBE_GIT_COMMIT="+s.GitCommit, "KUBE_GIT_TREE_STATE=clean")
	t.Run("edit", func(t *testing.T) {
		dirty.append(t, "cmd/kube-scheduler/main.go", "\n// A remark.\n")
		es := dirty.jsonRun(t, quickRelease...)
		es.did(t,
			"compile linux/"+hostArch+" kube-scheduler", "image linux/"+hostArch+" kube-scheduler",
			"sources", // the tree was clean, and is now read file by file
			"modules linux/"+hostArch+" components", "binaries linux/"+hostArch+" components", "package kubernetes-src.tar.gz",
			"package kubernetes-server-"+host+".tar.gz", "package kubernetes-node-"+host+".tar.gz", "image layout",
			"description", "sbom", "checksums", "release.json", "provenance")
		dirty.jsonRun(t, quickRelease...).didNothing(t)
	})
	dirty.jsonRun(t, quickRelease...)
	r.sameRelease(t, dirty)
}

var hostArch = strings.TrimPrefix(host, "linux-")

func TestEditWithRestoredTimeIsNoticed(t *testing.T) {
	r := baseline(t)
	tr := clone(t).with("KUBE_GIT_VERSION="+r.version, "KUBE_GIT_COMMIT=0123456789ab", "KUBE_GIT_TREE_STATE=clean")
	build := []string{"build", "kube-scheduler", "kube-log-runner"}
	const name = "cmd/kube-scheduler/main.go"
	tr.jsonRun(t, build...)
	before, err := os.Stat(tr.path(name))
	if err != nil {
		t.Fatal(err)
	}
	// The size is the same, too.
	tr.edit(t, name, "binds pods to nodes", "binds nodes to pods")
	if err := os.Chtimes(tr.path(name), before.ModTime(), before.ModTime()); err != nil {
		t.Fatal(err)
	}
	if now, err := os.Stat(tr.path(name)); err != nil || now.Size() != before.Size() || !now.ModTime().Equal(before.ModTime()) {
		t.Fatalf("the edit shows: %v, %v, was %v (%v)", now.Size(), now.ModTime(), before, err)
	}
	tr.jsonRun(t, build...).did(t, "compile linux/"+hostArch+" kube-scheduler")
}

// Distributors patch modules by replacing them with folders.
func TestPatchedModuleIsRebuiltWithItsFolder(t *testing.T) {
	tr := clone(t)
	const build = "kube-log-runner"
	tr.jsonRun(t, "build", build)
	plain := tr.sum(t, hostBin(build))

	module := "k8s.io/component-base"
	dir := strings.TrimSpace(run(t, tr.path("cmd"), nil, "go", "list", "-m", "-f", "{{.Dir}}", module).ok(t).stdout)
	patched := tr.path("../patched module")
	run(t, tr.dir, nil, "cp", "-r", "--no-preserve=mode", dir, patched).ok(t)
	mod := tr.read(t, "cmd/go.mod")
	run(t, tr.path("cmd"), nil, "go", "mod", "edit", "-replace="+module+"=../../patched module").ok(t)

	main := tree{dir: patched}
	const source = "logs/kube-log-runner/kube-log-runner.go"
	tr.jsonRun(t, "build", build).did(t, "compile linux/"+hostArch+" "+build)
	unpatched := tr.sum(t, hostBin(build))
	tr.jsonRun(t, "build", build).didNothing(t)

	original := main.read(t, source)
	main.edit(t, source, "useful with log-file", "PATCHED with log-file")
	tr.jsonRun(t, "build", build).did(t, "compile linux/"+hostArch+" "+build)
	if got := run(t, tr.dir, nil, tr.path(hostBin(build)), "--help").ok(t); !strings.Contains(got.stderr, "PATCHED with log-file") {
		t.Errorf("the patch is not in the binary: %v", got)
	}
	main.write(t, source, original)
	tr.jsonRun(t, "build", build).did(t, "compile linux/"+hostArch+" "+build)
	if got := tr.sum(t, hostBin(build)); got != unpatched {
		t.Errorf("with the patch taken back the binary is %s, was %s", got, unpatched)
	}
	tr.write(t, "cmd/go.mod", mod)
	tr.jsonRun(t, "build", build).did(t, "compile linux/"+hostArch+" "+build)
	if got := tr.sum(t, hostBin(build)); got != plain {
		t.Errorf("without the replacement the binary is %s, was %s", got, plain)
	}
}

func (tr tree) sum(t *testing.T, name string) string {
	t.Helper()
	sum, err := sha256File(tr.path(name))
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// Damage is found by content: size and times are not enough.
func TestDamagedOutputsAreRebuilt(t *testing.T) {
	r := baseline(t)
	server := "package kubernetes-server-" + host + ".tar.gz"
	unrunnable := func(t *testing.T, name string) { r.chmod(t, name, 0o644) }
	gone := func(t *testing.T, name string) { r.remove(t, name) }
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, file string)
		file   string
		does   string
	}{
		{"edited binary", r.flip, hostBin("kubectl-convert"), "compile linux/" + hostArch + " kubectl-convert"},
		{"truncated binary", r.truncate, hostBin("kube-log-runner"), "compile linux/" + hostArch + " kube-log-runner"},
		{"binary that cannot be run", unrunnable, hostBin("kube-log-runner"), "compile linux/" + hostArch + " kube-log-runner"},
		{"edited tarball", r.flip, tars + "/kubernetes-server-" + host + ".tar.gz", server},
		{"truncated tarball", r.truncate, tars + "/kubernetes-manifests.tar.gz", "package kubernetes-manifests.tar.gz"},
		{"edited image", r.flip, hostImage("kubectl") + ".tar", "image linux/" + hostArch + " kubectl"},
		{"edited index of images", r.flip, layoutDir + "/index.json", "image layout"},
		{"layer gone", gone, topLayer(t, r, "kube-scheduler"), "image layout"},
		{"edited checksums", r.flip, tars + "/SHA256SUMS", "checksums"},
		{"edited description", r.flip, tars + "/release.json", "release.json"},
		{"tarball gone", gone, tars + "/kubernetes.tar.gz", "package kubernetes.tar.gz"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.damage(t, c.file)
			r.jsonRun(t, quickRelease...).did(t, c.does)
			if got := r.sum(t, c.file); got != r.files[c.file] {
				t.Errorf("%s is %s, was %s", c.file, got, r.files[c.file])
			}
		})
	}
	r.sameFiles(t, r.tree)
}

func TestDamagedArchiveCacheIsNotUsed(t *testing.T) {
	rare(t, "everything is compressed again; tests of pkg/mechanism/archive damage states and pieces, too")
	r := baseline(t)
	const cache = "_output/.slipway/archive"
	damaged := 0
	err := filepath.WalkDir(r.path(cache), func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(r.dir, name)
		if err != nil {
			return err
		}
		if damaged++; damaged%3 == 0 {
			r.truncate(t, rel)
		} else {
			r.flip(t, rel)
		}
		return nil
	})
	if err != nil || damaged == 0 {
		t.Fatalf("%s: %d files damaged, %v", cache, damaged, err)
	}
	r.remove(t, tars)
	r.make(t, quick).ok(t)
	r.sameRelease(t, r.tree)
}

// flip changes a byte in the middle of a file, and restores its time.
func (tr tree) flip(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(tr.path(name), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(tr.path(name), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

// truncate cuts a file to its first half.
func (tr tree) truncate(t *testing.T, name string) {
	t.Helper()
	info, err := os.Stat(tr.path(name))
	if err == nil {
		err = os.Truncate(tr.path(name), info.Size()/2)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (tr tree) chmod(t *testing.T, name string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(tr.path(name), mode); err != nil {
		t.Fatal(err)
	}
}

// sameFiles requires that the tree has exactly the files of the release.
func (r release) sameFiles(t *testing.T, tr tree) {
	t.Helper()
	now, err := filesOf(tr)
	if err != nil {
		t.Fatal(err)
	}
	for name, sum := range r.files {
		if now[name] != sum {
			t.Errorf("%s is %q, was %s", name, now[name], sum)
		}
	}
	var more []string
	for name := range now {
		if r.files[name] == "" {
			more = append(more, name)
		}
	}
	if slices.Sort(more); len(more) > 0 {
		t.Errorf("there are more files than before: %q", more)
	}
}
