package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Tests are the programs of a release's test tarball, and the images that they run in Pods.
type Tests struct {
	state  *State
	bundle *bundle // unpacked
}

// UnpackTests unpacks the test tarball in a folder after comparing it with release.json, and its version with the cluster's. An
// empty name means the folder that the cluster was made from. A tarball that was unpacked before is not unpacked again.
func (s *State) UnpackTests(ctx context.Context, tars string) (*Tests, error) {
	b, err := openBundle(cmp.Or(tars, s.Tarballs), testSuite)
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
	if known, err := openBundle(dir, testSuite); err == nil && known.tarball.SHA256 == b.tarball.SHA256 {
		return &Tests{s, known}, nil
	}
	tmp := dir + ".tmp"
	if err := errors.Join(os.RemoveAll(tmp), os.RemoveAll(dir)); err != nil {
		return nil, err
	}
	if err := b.unpack(ctx, tmp, append(b.archives(), testSuite, ginkgo)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(tmp))
	}
	if err := os.Rename(tmp, dir); err != nil {
		return nil, err
	}
	unpacked, err := openBundle(dir, testSuite)
	return &Tests{s, unpacked}, err
}

// Programs returns the paths of e2e.test and ginkgo.
func (t *Tests) Programs() (suite, runner string, err error) {
	suite, noSuite := t.bundle.path(testSuite)
	runner, noRunner := t.bundle.path(ginkgo)
	return suite, runner, errors.Join(noSuite, noRunner)
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
