//go:build integration && soak

package integration

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Everything that make release does, packing included, in a container, by a toolchain that is compiled there.
func TestReleaseInAContainerEqualsTheLocalOne(t *testing.T) {
	needEngine(t)
	r := baseline(t)
	tr := clone(t).with("KUBE_BUILD_PLATFORMS=linux/"+hostArch, "KUBE_RELEASE_RUN_TESTS=n")
	t.Cleanup(func() { tr.cleanEngine(t) })
	tr.make(t, "release-in-a-container").ok(t)
	inContainer, err := filesOf(tr)
	if err != nil {
		t.Fatal(err)
	}
	checkSums(t, tr, "sha256")
	tr.make(t, "release").ok(t)
	here, err := filesOf(tr)
	if err != nil {
		t.Fatal(err)
	}
	for name, sum := range inContainer {
		if here[name] != sum {
			t.Errorf("%s is %s by container, and %q", name, sum, here[name])
		}
	}
	for name, sum := range r.files { // a quick release is a part of it
		if got, ok := inContainer[name]; ok && got != sum && !listsAll(name) {
			t.Errorf("%s is %s by container, and %s in a quick release", name, got, sum)
		}
	}
}

// listsAll reports whether a file lists everything in a release, and so differs between a whole release and a quick one.
func listsAll(name string) bool {
	return slices.Contains([]string{tars + "/SHA256SUMS", tars + "/SHA512SUMS", tars + "/release.json", layoutDir + "/index.json"}, name)
}

func TestKilledContainerReleaseIsTheSameAfterTheSameCommand(t *testing.T) {
	needEngine(t)
	tr := smallTree(t)
	tr.bulky(t, 100<<20)
	length := tr.slipway(t, quickByContainer...).ok(t).took
	t.Logf("a release takes %v", length.Round(time.Millisecond))
	for range 10 {
		tr.bulky(t, 100<<20) // so that it has to be sent and compiled again
		tr.remove(t, "_output")
		p := tr.start(t, slipway(t), append(quickByContainer[:len(quickByContainer):len(quickByContainer)], "--json")...)
		after := rand.N(length)
		p.after(after)
		p.kill(t)
		tr.ended(t, 15*time.Second)
		t.Logf("killed after %v, %d steps", after.Round(time.Millisecond), len(parseEvents(t, p.stdout()).steps()))
		tr.slipway(t, quickByContainer...).ok(t)
		tr.onlyData(t)
		got := tr.identity(t)
		if diff := cmp.Diff(tr.quickRelease(t, "local"), got); diff != "" {
			t.Fatalf("releases (-local road +container road):\n%s", diff)
		}
	}
}
