package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Tests are the programs of a release's test tarball, and the images that they run in Pods.
type Tests struct {
	state  *State
	bundle *bundle // unpacked
	suite  string
}

// Suites of the test tarball.
const (
	ClusterSuite = testSuite // specs of a cluster
	NodeSuite    = "e2e_node.test"
)

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// UnpackTests unpacks the test tarball in a folder after comparing it with release.json, and its version with the cluster's. An
// empty name means the folder that the cluster was made from. A tarball that was unpacked before is not unpacked again. Of the
// suites, it unpacks one.
func (s *State) UnpackTests(ctx context.Context, tars, suite string) (*Tests, error) {
	b, err := openBundle(cmp.Or(tars, s.Tarballs), suite)
	if err != nil {
		return nil, err
	}
	if err := b.verify(ctx); err != nil {
		return nil, err
	}
	if got := b.release.Version; got != s.Version {
		return nil, fmt.Errorf("%s has version %s, and cluster %s has %s", filepath.Join(b.dir, b.tarball.Path), got, s.Name, s.Version)
	}
	dir := filepath.Join(s.releaseDir(), "tests") // nodes see it there
	if known, err := openBundle(dir, suite); err == nil && known.tarball.SHA256 == b.tarball.SHA256 {
		if program, err := known.path(suite); err == nil && exists(program) {
			return &Tests{s, known, suite}, nil
		}
	}
	tmp := dir + ".tmp"
	if err := errors.Join(os.RemoveAll(tmp), os.RemoveAll(dir)); err != nil {
		return nil, err
	}
	if err := b.unpack(ctx, tmp, append(b.archives(), suite, ginkgo)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(tmp))
	}
	if err := os.Rename(tmp, dir); err != nil {
		return nil, err
	}
	unpacked, err := openBundle(dir, suite)
	return &Tests{s, unpacked, suite}, err
}

// Programs returns the paths of the suite and of ginkgo.
func (t *Tests) Programs() (suite, runner string, err error) {
	suite, noSuite := t.bundle.path(t.suite)
	runner, noRunner := t.bundle.path(ginkgo)
	return suite, runner, errors.Join(noSuite, noRunner)
}

// ProgramsInNode returns the same paths as a node sees them. Beside the suite, it puts the release's kubelet, which e2e_node.test looks
// for there.
func (t *Tests) ProgramsInNode() (suite, runner string, err error) {
	program, err := t.bundle.path(t.suite)
	if err != nil {
		return "", "", err
	}
	b, err := t.state.server()
	if err != nil {
		return "", "", err
	}
	if err := relink(path.Join(releaseInNode, b.members["kubelet"]), filepath.Join(filepath.Dir(program), "kubelet")); err != nil {
		return "", "", err
	}
	at := func(name string) string { return path.Join(releaseInNode, "tests", t.bundle.members[name]) }
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
	images, err := t.bundle.images()
	if err == nil && len(images) == 0 {
		err = fmt.Errorf("%s has no images for tests: the release was made by a version of slipway that had none", t.bundle.tarball.Path)
	}
	if err != nil {
		return nil, err
	}
	substitutes, err := describe(images)
	if err != nil {
		return nil, err
	}
	return substitutes, t.state.publish(ctx, images)
}

// describe returns the names and titles of images.
func describe(images []imageFile) ([]TestImage, error) {
	var all []TestImage
	for _, i := range images {
		image, err := tarball.ImageFromPath(i.file, nil)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", i.file, err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", i.file, err)
		}
		all = append(all, TestImage{i.name(), config.Config.Labels["org.opencontainers.image.title"]})
	}
	return all, nil
}
