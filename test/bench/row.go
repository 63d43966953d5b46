package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A Row is a line of the table: a claim, and its measurements. The table and the JSON are two views of it.
type Row struct {
	Name   string   `json:"name"`
	What   string   `json:"what"`
	With   string   `json:"comparedWith,omitempty"` // empty if the claim is an absolute one
	Wanted Bound    `json:"wanted"`
	Unit   string   `json:"unit"` // of the samples: "s" or "B"
	Ours   []Sample `json:"slipway"`
	Theirs []Sample `json:"other,omitempty"`

	measure func(ctx context.Context, b *bench, row *Row) error
}

// A Sample is one measurement.
type Sample struct {
	Value     float64 `json:"value"`               // in the row's unit
	Memory    int64   `json:"memory,omitempty"`    // most resident memory at one time, bytes; 0 if not measured
	Processor float64 `json:"processor,omitempty"` // time of all processes, seconds; 0 if not measured
	Others    float64 `json:"others,omitempty"`    // share of the machine's processor time that others took; 0 to 1
}

// A Bound is the limit of a row's figure.
type Bound struct {
	Kind  BoundKind `json:"kind"`
	Value float64   `json:"value"`
}

// A BoundKind says how a row's figure is computed.
type BoundKind string

const (
	AtMost  BoundKind = "ratio at most"   // ours to theirs
	Faster  BoundKind = "times faster"    // theirs to ours, at least
	Seconds BoundKind = "seconds at most" // ours
	NoBound BoundKind = "ratio, no bound" // ours to theirs
)

// rows are all rows, in the order in which they are measured.
func rows() []*Row {
	const (
		release  = "go build of the release's binaries"
		oneBuild = "go build of kube-scheduler"
		tar      = "tar czf of the same files"
	)
	return []*Row{
		{Name: "cold", Unit: "s", What: "quick-release, nothing there but modules", With: release + ", cold",
			Wanted: Bound{AtMost, 1.15}, measure: cold},
		{Name: "first", Unit: "s", What: "quick-release, nothing there but modules, other projects' programs included", With: release + ", cold",
			Wanted: Bound{AtMost, 2}, measure: first},
		{Name: "first-processor", Unit: "s", What: "its processor time", With: "that of the same", Wanted: Bound{AtMost, 2},
			measure: firstProcessor},
		{Name: "noop", Unit: "s", What: "quick-release, nothing to do", Wanted: Bound{Seconds, 0.07}, measure: noop},
		{Name: "edit", Unit: "s", What: "quick-release, a line of kube-scheduler edited", With: oneBuild, Wanted: Bound{AtMost, 1.4},
			measure: edit("quick-release")},
		{Name: "one", Unit: "s", What: "make WHAT=cmd/kube-scheduler, the same", With: oneBuild, Wanted: Bound{AtMost, 1.2},
			measure: edit("all", "WHAT=cmd/"+edited)},
		{Name: "commit", Unit: "s", What: "quick-release, a new commit", With: release + ", new stamp",
			Wanted: Bound{AtMost, 0.3}, measure: commit},
		{Name: "patch", Unit: "s", What: "make kube-scheduler, a patch of one file changed",
			With: oneBuild + ", the same edit in a replaced folder", Wanted: Bound{AtMost, 1.3}, measure: patched},
		{Name: "lint", Unit: "s", What: "make lint for this platform, a patch of one file changed",
			With: "go vet of the same packages, the same edit in a replaced folder", Wanted: Bound{AtMost, 1.5}, measure: linted},
		{Name: "patches-noop", Unit: "s", What: "quick-release with ten patches, nothing to do", Wanted: Bound{Seconds, 0.12},
			measure: patchesNoop},
		{Name: "pack", Unit: "s", What: "server tarball, empty cache", With: tar, Wanted: Bound{Faster, 6}, measure: pack},
		{Name: "size", Unit: "B", What: "its size", With: tar, Wanted: Bound{AtMost, 1.06}, measure: size},
		{Name: "repack", Unit: "s", What: "server tarball, one binary changed", With: tar, Wanted: Bound{Faster, 20}, measure: repack},
		{Name: "debs", Unit: "s", What: "debs of a quick release", With: "dpkg-deb -Zgzip of the same files", Wanted: Bound{AtMost, 0.2},
			measure: debs(false)},
		{Name: "debs-size", Unit: "B", What: "their size", With: "dpkg-deb -Zgzip of the same files", Wanted: Bound{AtMost, 1.06},
			measure: debs(true)},
		{Name: "packages-commit", Unit: "s", What: "quick-release with debs and rpms, a new commit", With: "the same without",
			Wanted: Bound{AtMost, 1.2}, measure: packagesCommit},
		{Name: "packages-noop", Unit: "s", What: "quick-release with debs and rpms, nothing to do", With: "the same without",
			Wanted: Bound{AtMost, 1.1}, measure: packagesNoop},
		{Name: "documents", Unit: "s", What: "quick-release, only its SBOM and provenance are gone",
			Wanted: Bound{Seconds, 0.5}, measure: documents},
		{Name: "verify", Unit: "s", What: "slipway verify of a quick release", With: "sha256sum --check of the same files",
			Wanted: Bound{AtMost, 1.43}, measure: verified},
		{Name: "push", Unit: "s", What: "slipway publish of a signed quick release's images to an empty registry",
			With: "skopeo copy --all of the images alone", Wanted: Bound{AtMost, 1.3}, measure: pushed},
		{Name: "bump", Unit: "s", What: "slipway bump to another minor, everything in the module cache",
			Wanted: Bound{Seconds, 60}, measure: bump},
		{Name: "init", Unit: "s", What: "slipway init, modules in the cache", Wanted: Bound{Seconds, 3}, measure: inited},
		{Name: "distribution-first", Unit: "s", What: "the first make in another distribution", Wanted: Bound{Seconds, 2}, measure: firstMake},
		{Name: "distribution-noop", Unit: "s", What: "quick-release in a distribution, nothing to do", With: "the same in slipway's repository",
			Wanted: Bound{AtMost, 1.1}, measure: distributionNoop},
		{Name: "generate-noop", Unit: "s", What: "make generated_files, nothing to do", Wanted: Bound{Seconds, 0.3}, measure: generatedNoop},
		{Name: "generate-field", Unit: "s", What: "make generated_files, a patch adds a field to a type of Kubernetes",
			Wanted: Bound{Seconds, 150}, measure: generatedField},
		{Name: "cache-cold", Unit: "s", What: "quick-release, nothing there but modules, storing all results in a shared cache",
			With: "the same without a cache", Wanted: Bound{AtMost, 1.05}, measure: cacheCold},
		{Name: "cache-clone", Unit: "s", What: "quick-release in a fresh clone with empty Go caches, from a shared cache",
			Wanted: Bound{Seconds, 6}, measure: cacheClone},
		{Name: "cache-clone-far", Unit: "s", What: "the same, each request 20 ms later", Wanted: Bound{Seconds, 6},
			measure: delayed(far, cacheClone)},
		{Name: "cache-edit", Unit: "s", What: "quick-release, a line of kube-scheduler edited, in a fresh clone with empty Go caches, from a " +
			"shared cache", With: "the same edit where all was made before", Wanted: Bound{AtMost, 2}, measure: cacheEdit},
		{Name: "cache-edit-far", Unit: "s", What: "the same, each request 20 ms later", With: "the same edit where all was made before",
			Wanted: Bound{AtMost, 2}, measure: delayed(far, cacheEdit)},
		{Name: "cache-commit", Unit: "s", What: "quick-release, a new commit, in a fresh clone with empty Go caches, from a shared cache",
			With: "the same commit where all was made before", Wanted: Bound{AtMost, 3}, measure: cacheCommit},
		{Name: "cache-noop", Unit: "s", What: "quick-release with a shared cache, nothing to do", With: "the same without a cache",
			Wanted: Bound{AtMost, 1.1}, measure: cacheNoop},
		{Name: "container-cold", Unit: "s", What: "make by the container road, empty volumes", With: "make by the local road, empty Go cache",
			Wanted: Bound{AtMost, 1.1}, measure: containerCold},
		{Name: "container-noop", Unit: "s", What: "quick-release by the container road, nothing to do", Wanted: Bound{Seconds, 0.5},
			measure: containerNoop},
		{Name: "container-edit", Unit: "s", What: "the same, a line of kube-scheduler edited", With: "the same by the local road",
			Wanted: Bound{AtMost, 1.5}, measure: containerEdit},
		{Name: "container-sync", Unit: "s", What: "rsync of unchanged sources and modules", Wanted: Bound{Seconds, 0.5}, measure: containerSync},
		{Name: "bazel-cold", Unit: "s", What: "bazel build //cmd/..., nothing there but modules", With: "make of the same, empty Go cache",
			Wanted: Bound{Kind: NoBound}, measure: bazelCold},
		{Name: "bazel-noop", Unit: "s", What: "quick-release by the Bazel road, nothing to do", With: "bazel build //cmd/..., nothing to do",
			Wanted: Bound{AtMost, 1.5}, measure: bazelNoop},
		{Name: "bazel-remote", Unit: "s", What: "bazel build //cmd/... after bazel clean, warm remote cache",
			With: "bazel build //cmd/..., nothing there but modules", Wanted: Bound{Faster, 15}, measure: bazelRemote},
		{Name: "bazel-test", Unit: "s", What: "make bazel-test of two parts of Kubernetes, nothing changed",
			With: "make test of the same, by go test, nothing changed", Wanted: Bound{AtMost, 0.2}, measure: bazelTest},
	}
}

// pick returns the rows with the given names, all if there are none.
func pick(all []*Row, names string) ([]*Row, error) {
	if names == "" {
		return all, nil
	}
	var known []string
	for _, r := range all {
		known = append(known, r.Name)
	}
	wanted := strings.Split(names, ",")
	for _, name := range wanted {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("-rows: %q is none of %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(r *Row) bool { return !slices.Contains(wanted, r.Name) }), nil
}

// Figure returns the number that the bound limits, and whether it keeps within it.
func (r *Row) Figure() (value float64, ok bool) {
	ours, theirs := median(r.Ours), median(r.Theirs)
	switch r.Wanted.Kind {
	case AtMost:
		value = ours / theirs
		return value, value <= r.Wanted.Value
	case Faster:
		value = theirs / ours
		return value, value >= r.Wanted.Value
	case NoBound:
		return ours / theirs, true
	default:
		return ours, ours <= r.Wanted.Value
	}
}

// Others returns the largest share of a sample's processor time that others took.
func (r *Row) Others() float64 {
	var most float64
	for _, s := range slices.Concat(r.Ours, r.Theirs) {
		most = max(most, s.Others)
	}
	return most
}

// median returns the median of samples; of an even number, the mean of the two in the middle.
func median(samples []Sample) float64 {
	if len(samples) == 0 {
		return 0
	}
	var values []float64
	for _, s := range samples {
		values = append(values, s.Value)
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// peak returns the largest memory of the samples, in bytes.
func peak(samples []Sample) int64 {
	var most int64
	for _, s := range samples {
		most = max(most, s.Memory)
	}
	return most
}
