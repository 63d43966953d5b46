//go:build integration

package integration

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The real sources: the smallest component, compiled in the container from nothing, with its dependencies and Go's standard library, has
// the local road's bytes, and so has each of its packages. The soak test makes a whole release by the container road.
func TestContainerReleaseOfTheRealSourcesEqualsTheLocalOne(t *testing.T) {
	needEngine(t)
	r := baseline(t)
	tr := clone(t) // of the same commit, without _output
	t.Cleanup(func() { tr.cleanEngine(t) })
	byContainer := tr.with("ROAD=container")
	if !soak {
		const smallest = "kube-log-runner"
		byContainer.make(t, smallest).ok(t)
		tr.sameCompiles(t, r.compiledPackages(t, smallest), r.packagesOf(t, smallest))
		if got, want := tr.sum(t, dockerized+"/linux/"+hostArch+"/"+smallest), r.files[hostBin(smallest)]; got != want {
			t.Errorf("%s is %s, by the local road %s", smallest, got, want)
		}
		tr.onlyData(t)
		t.Run("patches", tr.buildsPatchesInContainers)
		t.Run("whole release", func(t *testing.T) { t.Skip("it links every component, and needs the packages of all: make soak") })
		return
	}

	since := time.Now()
	byContainer.jsonRun(t, quickRelease...)
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
	for _, name := range addonBinaries {
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
	t.Run("patches", tr.buildsPatchesInContainers)
}

// A goCache has entries of a Go cache: the digest of each output by that of all inputs of the action that made it.
type goCache map[string]string

// packagesOf returns how many packages are compiled for a component: all that it is linked from but unsafe, which is built in.
func (r release) packagesOf(t *testing.T, name string) int {
	t.Helper()
	info, err := buildinfo.ReadFile(r.path(hostBin(name)))
	if err != nil {
		t.Fatal(err)
	}
	tags := "-tags=" + buildSettings(t, r.path(hostBin(name)))["-tags"]
	return len(strings.Fields(run(t, r.path("cmd"), likeRelease, "go", "list", "-deps", tags, info.Path).ok(t).stdout)) - 1
}

// compiledPackages returns the entries of this machine's Go cache for the packages that a component is linked from.
func (r release) compiledPackages(t *testing.T, name string) goCache {
	t.Helper()
	info, err := buildinfo.ReadFile(r.path(hostBin(name)))
	if err != nil {
		t.Fatal(err)
	}
	tags := "-tags=" + buildSettings(t, r.path(hostBin(name)))["-tags"]
	args := []string{"list", "-export", "-deps", "-f={{.Export}}", tags, info.Path}
	wanted := map[string]bool{}
	for file := range strings.Lines(run(t, r.path("cmd"), likeRelease, "go", args...).ok(t).stdout) {
		wanted[strings.TrimSuffix(filepath.Base(strings.TrimSpace(file)), "-d")] = true
	}
	found := goCache{}
	err = filepath.WalkDir(goEnv(t, "GOCACHE"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "-a") {
			return err
		}
		entry, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another Go command is replacing it
		}
		if inputs, output, ok := parseEntry(entry); ok && wanted[output] {
			found[inputs] = output
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// parseEntry parses the entry of an action in a Go cache: v1 INPUTS OUTPUT SIZE TIME.
func parseEntry(text []byte) (inputs, output string, ok bool) {
	f := strings.Fields(string(text))
	if len(f) != 5 || f[0] != "v1" {
		return "", "", false
	}
	return f[1], f[2], true
}

// sameCompiles requires that what the tree's containers have compiled so far are that many of the packages here.
func (tr tree) sameCompiles(t *testing.T, here goCache, want int) {
	t.Helper()
	same := 0
	there := tr.inCache(t, "find", "/cache/go-build", "-name", "*-a", "-exec", "cat", "{}", "+")
	for entry := range strings.Lines(there) {
		inputs, output, ok := parseEntry([]byte(entry))
		if !ok || here[inputs] == "" {
			continue
		}
		if same++; here[inputs] != output {
			t.Errorf("the container and this machine have compiled a package differently: %s, %s", output, here[inputs])
		}
	}
	if same < want {
		t.Errorf("the container has compiled only %d of %d packages with the inputs and flags that they have here", same, want)
	}
}

// inCache runs a command on the volume with the build cache of the tree's containers, and returns its output.
func (tr tree) inCache(t *testing.T, line ...string) string {
	t.Helper()
	image, err := buildImage()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--rm", "--network=none", "--volume", "slipway-" + tr.id(t) + "-cache:/cache", image}
	c := command(workspace, nil, "docker", append(args, line...)...)
	var said, wrong bytes.Buffer
	c.Stdout, c.Stderr = &said, &wrong
	if err := c.Run(); err != nil {
		t.Fatalf("%q in a container: %v: %s", line, err, wrong.String())
	}
	return said.String()
}
