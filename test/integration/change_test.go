//go:build integration

package integration

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// A release of a tree that is edited meanwhile would hold some files from before the edit and some from after it. The soak test also does
// it to the real sources.
func TestTreeThatChangesWhileItIsReleasedFails(t *testing.T) {
	cloneLane.join(t)
	small := tree{dir: filepath.Join(t.TempDir(), "small")}
	if err := writeSmallTree(small.dir); err != nil {
		t.Fatal(err)
	}
	small.changesWhileReleased(t, "release/manifests/addons/dns.yaml", "v1.36.3")
	if soak {
		clone(t).changesWhileReleased(t, "release/manifests/addons/coredns/service.yaml", strings.SplitN(baseline(t).version, "+", 2)[0])
	}
}

// changesWhileReleased edits a manifest of an add-on during two releases of versions that begin with base.
func (tr tree) changesWhileReleased(t *testing.T, name, base string) {
	const (
		sums    = tars + "/SHA256SUMS"
		advice  = "run the same command again"
		message = "the tree changed while it was built"
	)
	for i, title := range []string{"without a release before it", "over a finished release"} {
		t.Run(title, func(t *testing.T) {
			// A version of another length makes every compile link, so that there is time for an edit. The edit does not change the
			// version, so nothing else reports it.
			tr := tr.with("KUBE_GIT_VERSION="+base+"+acme"+strings.Repeat(".1", i+1), "KUBE_GIT_COMMIT=0123456789ab", "KUBE_GIT_TREE_STATE=clean")
			remark := fmt.Sprintf("# Remark %d.\n", i)
			before := "none"
			if tr.exists(sums) {
				before = tr.read(t, sums)
			}
			p := tr.start(t, slipway(t), quickRelease...)
			if !p.until(t, p.linking) {
				t.Fatalf("it ended before the tree could be changed: %v", p.wait(t))
			}
			tr.write(t, name, tr.read(t, name)+remark)
			p.wait(t).fails(t, 1, message, advice)
			p.gone(t)
			// That of the release before may stay: it does not match the tarballs of this run, and checking it says so.
			if tr.exists(sums) && tr.read(t, sums) != before {
				t.Errorf("the run failed, and left SHA256SUMS:\n%s", tr.read(t, sums))
			}

			tr.slipway(t, quickRelease...).ok(t)
			checkSums(t, tr, "sha256")
			for tarball, member := range map[string]string{
				"kubernetes-manifests.tar.gz":           strings.Replace(name, "release/", "kubernetes/", 1),
				"kubernetes-server-" + host + ".tar.gz": strings.Replace(name, "release/manifests/", "kubernetes/", 1),
			} {
				got := run(t, tr.dir, nil, "tar", "-xOzf", tr.path(path.Join(tars, tarball)), member).ok(t).stdout
				if !strings.HasSuffix(got, remark) {
					t.Errorf("%s does not have the edit:\n%s", tarball, got)
				}
			}
			tr.jsonRun(t, quickRelease...).didNothing(t)
		})
	}
}

// otherProjectsImagesStay requires that two releases of different commits have the same images of other projects, by digest, and
// different images of components.
func otherProjectsImagesStay(t *testing.T, one, other description) {
	t.Helper()
	if one.Version == other.Version || one.Commit == other.Commit {
		t.Errorf("both are %s of commit %s", one.Version, one.Commit)
	}
	was, is := one.of("index"), other.of("index")
	for name, version := range addonImages {
		index := "registry.k8s.io/" + name + ":" + version
		if was[index].SHA256 == "" || was[index].SHA256 != is[index].SHA256 {
			t.Errorf("%s is %q in one release and %q in another of other commits", index, was[index].SHA256, is[index].SHA256)
		}
	}
	for _, name := range imageNames {
		tag := func(d description) string {
			return "registry.k8s.io/" + name + ":" + strings.ReplaceAll(d.Version, "+", "_")
		}
		if a, b := was[tag(one)].SHA256, is[tag(other)].SHA256; a == b || a == "" || b == "" {
			t.Errorf("%s is %q in one release and %q in another of other commits", name, a, b)
		}
	}
}
