//go:build integration

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFullDiskIsReportedAndTheSameCommandResumes(t *testing.T) {
	needRoot(t)
	treeLane.join(t)
	r, tr := smallRelease(t)
	if soak {
		r, tr = baseline(t), clone(t)
	}
	output := tr.path("_output")
	if err := os.Mkdir(output, 0o755); err != nil {
		t.Fatal(err)
	}
	// There is room for the compiled binaries, which come from the other tree, and for some of the images and tarballs.
	size := diskUse(t, r, "_output/local", "_output/release-stage") + diskUse(t, r, images, tars)/3
	if got := run(t, tr.dir, nil, "mount", "-t", "tmpfs", "-o", fmt.Sprint("size=", size), "slipway-test", output); got.code != 0 {
		missing(t, "file systems cannot be mounted here: "+got.stderr)
	}
	t.Cleanup(func() { run(t, "/", nil, "umount", output).ok(t) })
	run(t, r.path("_output"), nil, "cp", "-a", "--parents", "local", "bin", "release-stage", ".slipway/actions", output).ok(t)

	got := tr.slipway(t, quickRelease...).fails(t, 1, "no space left on device", "free some and run the same command again")
	if strings.Contains(got.stdout, "compile linux/") {
		t.Errorf("binaries of the other tree are compiled again: %v", got)
	}
	if strings.Contains(got.stderr, "panic") || strings.Count(got.stderr, "\n") > 12 {
		t.Errorf("the error is not clear: %v", got)
	}
	r.nothingHalfWritten(t, tr)

	run(t, tr.dir, nil, "mount", "-o", fmt.Sprint("remount,size=", size+3<<30), output).ok(t)
	tr.slipway(t, quickRelease...).ok(t)
	r.sameRelease(t, tr)
}

// smallRelease makes a quick release of a tree of a few files, and returns it with a copy of the tree that has no _output.
func smallRelease(t *testing.T) (release, tree) {
	t.Helper()
	r, other := release{tree: tree{dir: filepath.Join(t.TempDir(), "small")}}, tree{dir: filepath.Join(t.TempDir(), "small")}
	if err := writeSmallTree(r.dir); err != nil {
		t.Fatal(err)
	}
	run(t, "/", nil, "cp", "-a", r.dir, other.dir).ok(t)
	r.slipway(t, quickRelease...).ok(t)
	files, err := filesOf(r.tree)
	if err != nil {
		t.Fatal(err)
	}
	r.files, r.sums = files, r.read(t, tars+"/SHA256SUMS")
	return r, other
}

// diskUse returns the disk space of files in bytes, and a tenth more for the file system.
func diskUse(t *testing.T, r release, names ...string) int64 {
	t.Helper()
	args := append([]string{"--summarize", "--total", "--block-size=1"}, names...)
	lines := strings.Split(strings.TrimSpace(run(t, r.dir, nil, "du", args...).ok(t).stdout), "\n")
	var bytes int64
	if _, err := fmt.Sscan(lines[len(lines)-1], &bytes); err != nil {
		t.Fatal(err)
	}
	return bytes + bytes/10
}
