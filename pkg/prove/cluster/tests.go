package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/checksum"
)

// Tests are the programs of a release's test tarball, and the images that they run in Pods.
type Tests struct {
	state *State
	sum   string // of the tarball
}

// testTarball returns the name of the test tarball for this machine.
func testTarball() string { return "kubernetes-test-linux-" + runtime.GOARCH + ".tar.gz" }

// testsDir is the folder that it is unpacked to. Nodes see it, because it is below the unpacked release.
const testsDir = "tests"

// UnpackTests unpacks the test tarball in a folder after comparing its sum with SHA256SUMS, and its version with the cluster's. An
// empty name means the folder that the cluster was made from. A tarball that was unpacked before is not unpacked again.
func (s *State) UnpackTests(ctx context.Context, tars string) (*Tests, error) {
	if tars == "" {
		tars = s.Tarballs
	}
	for _, name := range []string{testTarball(), "SHA256SUMS"} {
		if _, err := os.Stat(filepath.Join(tars, name)); errors.Is(err, os.ErrNotExist) {
			return nil, MissingError{name, tars}
		}
	}
	sums := filepath.Join(tars, "SHA256SUMS")
	if err := checksum.VerifyFiles(tars, sums, testTarball()); err != nil {
		return nil, err
	}
	sum, err := sumIn(sums, testTarball())
	if err != nil {
		return nil, err
	}
	t := &Tests{s, sum}
	if known, err := os.ReadFile(t.path("sum")); err == nil && string(known) == sum {
		return t, nil
	}
	return t, t.unpack(ctx, filepath.Join(tars, testTarball()))
}

// unpack unpacks the tarball beside the folder, and renames the result when it is complete.
func (t *Tests) unpack(ctx context.Context, archive string) error {
	to, tmp := t.path(), t.path()+".tmp"
	if err := errors.Join(os.RemoveAll(tmp), os.RemoveAll(to), os.MkdirAll(tmp, 0o755)); err != nil {
		return err
	}
	if err := unpack(ctx, archive, tmp, wantForTests); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	version, err := os.ReadFile(filepath.Join(tmp, "kubernetes", "version"))
	if got := strings.TrimSpace(string(version)); err == nil && got != t.state.Version {
		err = fmt.Errorf("%s has version %s, and cluster %s has %s", archive, got, t.state.Name, t.state.Version)
	}
	if err == nil {
		err = atomicfile.WriteFile(filepath.Join(tmp, "sum"), []byte(t.sum), 0o644)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return os.Rename(tmp, to)
}

func wantForTests(name string) bool {
	bin, isBin := strings.CutPrefix(name, "kubernetes/test/bin/")
	return name == "kubernetes/version" || isBin && slices.Contains([]string{"e2e.test", "ginkgo"}, bin) ||
		strings.HasPrefix(name, "kubernetes/test/images/") && path.Ext(name) == ".tar"
}

// sumIn returns the sum that a checksum file has for a name.
func sumIn(file, name string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if sum, of, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.TrimLeft(of, " *") == name {
			return sum, nil
		}
	}
	return "", fmt.Errorf("%s: no line names %s", file, name)
}

// path returns the path of an unpacked file.
func (t *Tests) path(parts ...string) string {
	return t.state.path(append([]string{"release", testsDir}, parts...)...)
}

// Program returns the path of one of the tarball's programs.
func (t *Tests) Program(name string) string { return t.path("kubernetes", "test", "bin", name) }

// A TestImage is an image of the test tarball. It has upstream's name, but is built with the release, from other sources than
// upstream's: a substitute.
type TestImage struct {
	Name  string `json:"name"`
	Title string `json:"title"` // what the image holds, from its label
}

// Import imports the tarball's images into each node that does not have them, under their upstream names, and the server
// tarball's etcd, which a spec runs on any node. It returns the images of the tarball.
func (t *Tests) Import(ctx context.Context) ([]TestImage, error) {
	images, err := t.images()
	if err != nil {
		return nil, err
	}
	substitutes, err := t.describe(images)
	if err != nil {
		return nil, err
	}
	all := append(slices.Clone(images), imageFile{path: "kubernetes/addons/images/etcd.tar"})
	g, ctx := errgroup.WithContext(ctx)
	for i := range t.state.Nodes() {
		g.Go(func() error { return t.importInto(ctx, t.state.node(i+1), all) })
	}
	return substitutes, g.Wait()
}

func (t *Tests) importInto(ctx context.Context, n node, images []imageFile) error {
	done := t.path("imported-" + n.name)
	if known, err := os.ReadFile(done); err == nil && string(known) == t.sum {
		return nil
	}
	if err := t.state.importImages(ctx, n, images); err != nil {
		return fmt.Errorf("node %s: %w", n.name, err)
	}
	return atomicfile.WriteFile(done, []byte(t.sum), 0o644)
}

// describe returns the names and titles of images.
func (t *Tests) describe(images []imageFile) ([]TestImage, error) {
	var all []TestImage
	for _, i := range images {
		image, err := tarball.ImageFromPath(t.state.path("release", filepath.FromSlash(i.path)), nil)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", i.path, err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", i.path, err)
		}
		name := slices.MinFunc(i.names, func(a, b string) int { return len(a) - len(b) }) // the others have the architecture in them
		all = append(all, TestImage{name, config.Config.Labels["org.opencontainers.image.title"]})
	}
	return all, nil
}

// images finds the images of the tarball.
func (t *Tests) images() ([]imageFile, error) {
	files, err := filepath.Glob(t.path("kubernetes", "test", "images", "*.tar"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no images for tests: the release was made by a version of slipway that had none", testTarball())
	}
	var images []imageFile
	for _, file := range files {
		names, err := namesIn(file)
		if err == nil && len(names) == 0 {
			err = fmt.Errorf("image %s: it has no name", file)
		}
		if err != nil {
			return nil, err
		}
		images = append(images, imageFile{testsDir + "/kubernetes/test/images/" + filepath.Base(file), names})
	}
	return images, nil
}

// namesIn returns the names that an archive gives its images.
func namesIn(file string) ([]string, error) {
	m, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(file) })
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", file, err)
	}
	var names []string
	for _, d := range m {
		names = append(names, d.RepoTags...)
	}
	return names, nil
}
