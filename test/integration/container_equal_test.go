//go:build integration

package integration

import (
	"slices"
	"testing"
	"time"
)

// The real sources, from nothing: a cold compile of all components, in a container.
func TestContainerReleaseOfTheRealSourcesEqualsTheLocalOne(t *testing.T) {
	needEngine(t)
	r := baseline(t)
	tr := clone(t) // of the same commit, without _output
	t.Cleanup(func() { tr.cleanEngine(t) })
	byContainer := tr.with("ROAD=container")

	since := time.Now()
	byContainer.make(t, quick).ok(t)
	happened := tr.happened(t, since)
	r.sameRelease(t, tr)
	if len(happened.started("build")) == 0 || len(happened.started("rsync")) == 0 {
		t.Errorf("the engine started build containers %q and rsync containers %q", happened.started("build"), happened.started("rsync"))
	}
	for _, name := range serverBinaries {
		if got, want := tr.sum(t, dockerized+"/linux/"+hostArch+"/"+name), r.files[hostBin(name)]; got != want {
			t.Errorf("%s is %s, by the local road %s", name, got, want)
		}
	}
	for _, name := range serverBinaries {
		if tr.exists(hostBin(name)) {
			t.Errorf("%s was made by the local road, too", name)
		}
	}
	for _, name := range etcdBinaries {
		if got, want := tr.sum(t, hostBin(name)), r.files[hostBin(name)]; got != want {
			t.Errorf("%s is %s, in a release by the local road %s", name, got, want)
		}
	}
	tr.onlyData(t)

	since = time.Now()
	byContainer.jsonRun(t, quickRelease...).didNothing(t)
	tr.happened(t, since).none(t)

	dirty := byContainer.with(tr.stampEnv(t)...)
	dirty.append(t, "cmd/kube-aggregator/main.go", "\nfunc init() { println(\"edited\") }\n")
	since = time.Now()
	es := dirty.jsonRun(t, quickRelease...)
	happened = tr.happened(t, since)
	es.compiledBy(t, happened.started("build"))
	var compiles []string
	for _, e := range es {
		if e.Kind == "done" && e.Phase == "compile" {
			compiles = append(compiles, e.Action)
		}
	}
	if want := []string{"compile linux/" + hostArch + " by container kube-aggregator"}; !slices.Equal(compiles, want) {
		t.Errorf("after an edit these are compiled: %q, want %q", compiles, want)
	}
	es.hasSteps(t, "sent sources: 1 files, ", "fetched 1 files, ")
	tr.onlyData(t)
}
