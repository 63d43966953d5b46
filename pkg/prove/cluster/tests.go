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

// Tests are what a cluster has of a release's test tarball: the programs, and the images that they run in Pods.
type Tests struct {
	state *State
	sum   string // of the tarball
}

// testTarball is the one for this machine.
func testTarball() string { return "kubernetes-test-linux-" + runtime.GOARCH + ".tar.gz" }

// testsDir is where it is unpacked, relative to the unpacked release, which nodes see.
const testsDir = "tests"

// UnpackTests unpacks the test tarball that a folder has, once its sum is the one in SHA256SUMS and its version the cluster's. Without
// a folder, it is the one that the cluster was made of. What was unpacked before of the same tarball is taken as it is.
func (s *State) UnpackTests(ctx context.Context, tars string) (*Tests, error) {
	if tars == "" {
		tars = s.Tarballs
	}
	for _, name := range []string{testTarball(), "SHA256SUMS"} {
		if _, err := os.Stat(filepath.Join(tars, name)); errors.Is(err, os.ErrNotExist) {
			return nil, &MissingError{name, tars}
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

// unpack does so beside the folder, and renames it when it is whole.
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
		err = fmt.Errorf("%s is of %s, and cluster %s of %s: both have to be of the same release",
			archive, got, t.state.Name, t.state.Version)
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

// sumIn is what a checksum file has for a name.
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

// path is that of something of what was unpacked.
func (t *Tests) path(parts ...string) string {
	return t.state.path(append([]string{"release", testsDir}, parts...)...)
}

// Program is the path of one of the tarball's programs.
func (t *Tests) Program(name string) string { return t.path("kubernetes", "test", "bin", name) }

// Import gives the container runtime of each node the tarball's images, under their upstream names, unless it has them, and the
// server tarball's etcd, which a spec runs on any node. It says how many images there are in the tarball.
func (t *Tests) Import(ctx context.Context) (int, error) {
	images, err := t.images()
	if err != nil {
		return 0, err
	}
	all := append(slices.Clone(images), imageFile{path: "kubernetes/addons/images/etcd.tar"})
	g, ctx := errgroup.WithContext(ctx)
	for i := range t.state.Nodes() {
		g.Go(func() error { return t.importInto(ctx, t.state.node(i+1), all) })
	}
	return len(images), g.Wait()
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

// images finds the images of the tarball.
func (t *Tests) images() ([]imageFile, error) {
	files, err := filepath.Glob(t.path("kubernetes", "test", "images", "*.tar"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no images for tests: it is of a release that was made before there were any: make another", testTarball())
	}
	var images []imageFile
	for _, file := range files {
		names, err := namesIn(file)
		if err != nil {
			return nil, err
		}
		images = append(images, imageFile{testsDir + "/kubernetes/test/images/" + filepath.Base(file), names})
	}
	return images, nil
}

// namesIn are the names that an archive gives its images.
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
