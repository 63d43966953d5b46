package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"slipway.build/pkg/prove/cluster/tarball"
)

// Tests are the programs of a release's test tarball, and the images that they run in Pods.
type Tests struct {
	state   *State
	tarball *tarball.Tarball // unpacked
	suite   string
}

// Suites of the test tarball.
const (
	ClusterSuite = testSuite // specs of a cluster
	NodeSuite    = "e2e_node.test"
)

// UnpackTests unpacks one suite of the test tarball in a folder, after comparing the tarball with release.json, and its version with the
// cluster's. The default folder is that of the cluster's release. It does not unpack a tarball again.
func (s *State) UnpackTests(ctx context.Context, tars, suite string) (*Tests, error) {
	b, err := s.openTests(ctx, tars, suite)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.releaseDir(), "tests") // nodes see it there
	if earlier, err := tarball.Open(dir, suite); err == nil && earlier.Artifact.SHA256 == b.Artifact.SHA256 {
		if program, err := earlier.File(suite); err == nil && exists(program) {
			return &Tests{s, earlier, suite}, nil
		}
	}
	tmp := dir + ".tmp"
	if err := errors.Join(os.RemoveAll(tmp), os.RemoveAll(dir)); err != nil {
		return nil, err
	}
	if err := b.Unpack(ctx, tmp, append(specImages(b), suite, ginkgo)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(tmp))
	}
	if err := os.Rename(tmp, dir); err != nil {
		return nil, err
	}
	unpacked, err := tarball.Open(dir, suite)
	return &Tests{s, unpacked, suite}, err
}

// openTests opens the test tarball in a folder by an artifact in it. It compares the tarball with release.json, and its version with the
// cluster's.
func (s *State) openTests(ctx context.Context, tars, artifact string) (*tarball.Tarball, error) {
	tars = cmp.Or(tars, s.Tarballs)
	b, err := tarball.Open(tars, artifact)
	if err != nil {
		return nil, err
	}
	if err := b.Verify(ctx); err != nil {
		return nil, err
	}
	if got := b.Release.Version; got != s.Version {
		return nil, fmt.Errorf("%s has version %s, and cluster %s has %s", filepath.Join(tars, b.Artifact.Path), got, s.Name, s.Version)
	}
	return b, nil
}

// specImages returns the archives of the test tarball's images that specs run in Pods.
func specImages(b *tarball.Tarball) []string {
	return slices.DeleteFunc(b.Archives(), func(name string) bool { return slices.Contains(ownTestImages, name) })
}

// Programs returns the paths of the suite and of ginkgo.
func (t *Tests) Programs() (suite, runner string, err error) {
	suite, noSuite := t.tarball.File(t.suite)
	runner, noRunner := t.tarball.File(ginkgo)
	return suite, runner, errors.Join(noSuite, noRunner)
}

// ProgramsInNode returns the same paths as a node sees them. Beside the suite, it puts the release's kubelet, which e2e_node.test looks
// for there.
func (t *Tests) ProgramsInNode() (suite, runner string, err error) {
	program, err := t.tarball.File(t.suite)
	if err != nil {
		return "", "", err
	}
	b, err := t.state.server()
	if err != nil {
		return "", "", err
	}
	if err := relink(path.Join(releaseInNode, b.Member("kubelet")), filepath.Join(filepath.Dir(program), "kubelet")); err != nil {
		return "", "", err
	}
	at := func(name string) string { return path.Join(releaseInNode, "tests", t.tarball.Member(name)) }
	return at(t.suite), at(ginkgo), nil
}

// A TestImage is an image of the test tarball. It has upstream's name, but is built with the release, from other sources than
// upstream's: a substitute.
type TestImage struct {
	Name  string `json:"name"`
	Title string `json:"title"` // what the image holds, from its label
}

// Publish pushes the tarball's images to the cluster's registry under their upstream names, and returns them.
func (t *Tests) Publish(ctx context.Context) ([]TestImage, error) {
	all, err := imagesOf(t.tarball, specImages(t.tarball))
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no images for tests: the release was made by a version of slipway that had none", t.tarball.Artifact.Path)
	}
	if err != nil {
		return nil, err
	}
	var substitutes []TestImage
	for _, i := range all {
		title, err := i.Title()
		if err != nil {
			return nil, err
		}
		substitutes = append(substitutes, TestImage{i.Name(), title})
	}
	return substitutes, t.state.registry().Push(ctx, all)
}
