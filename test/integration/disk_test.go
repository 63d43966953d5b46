//go:build integration

package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestFullDiskIsReportedAndTheSameCommandResumes(t *testing.T) {
	needRoot(t)
	r := baseline(t)
	tr := clone(t)
	output := tr.path("_output")
	if err := os.Mkdir(output, 0o755); err != nil {
		t.Fatal(err)
	}
	// There is room for the compiled binaries, which come from the shared release, and for some of the images and tarballs.
	size := diskUse(t, r, "_output/local", "_output/release-stage") + 350<<20
	if got := run(t, tr.dir, nil, "mount", "-t", "tmpfs", "-o", fmt.Sprint("size=", size), "slipway-test", output); got.code != 0 {
		missing(t, "file systems cannot be mounted here: "+got.stderr)
	}
	t.Cleanup(func() { run(t, "/", nil, "umount", output).ok(t) })
	run(t, r.path("_output"), nil, "cp", "-a", "--parents", "local", "bin", "release-stage", ".slipway/mage", ".slipway/actions", output).ok(t)

	got := tr.make(t, quick).fails(t, 2, "no space left on device", "free some and run the same command again")
	if strings.Contains(got.stdout, "compile linux/") {
		t.Errorf("binaries of the shared release are compiled again: %v", got)
	}
	if strings.Contains(got.stderr, "panic") || strings.Count(got.stderr, "\n") > 12 {
		t.Errorf("the error is not clear: %v", got)
	}
	r.nothingHalfWritten(t, tr)

	run(t, tr.dir, nil, "mount", "-o", fmt.Sprint("remount,size=", size+3<<30), output).ok(t)
	tr.make(t, quick).ok(t)
	r.sameRelease(t, tr)
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
