package cluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	docker "github.com/google/go-containerregistry/pkg/v1/tarball"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/unpack"
	"slipway.build/pkg/prove/cluster/images"
	"slipway.build/pkg/prove/cluster/tarball"
	"slipway.build/pkg/release"
)

// A testRelease is a release with one tarball, which holds artifacts at paths that no real one has.
type testRelease struct {
	version string
	on      platform.Platform
	tarball string
	members map[string]string // paths of artifacts by name after the platform
	images  map[string]string // the same, of archives of images
	claimed map[string]string // in release.json, and not in the tarball
}

// servers returns a release whose server tarball holds some programs.
func servers(programs ...string) testRelease {
	r := testRelease{version: "v1.37.0+acme.1", on: tarball.Host, tarball: "a-server.tgz", members: map[string]string{}}
	for _, name := range programs {
		r.members[name] = "odd/" + name + "/program"
	}
	return r
}

// publish writes a release's folder.
func (r testRelease) publish(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	described := release.Release{Format: release.Format, Version: r.version, Platforms: []platform.Platform{r.on}}
	artifact := func(name string, kind release.Kind, content []byte) release.Artifact {
		short, long := sha256.Sum256(content), sha512.Sum512(content)
		return release.Artifact{
			Name: name, Kind: kind, Platform: r.on, Size: int64(len(content)), SHA256: hex.EncodeToString(short[:]),
			SHA512: hex.EncodeToString(long[:]),
		}
	}
	packed := map[string]string{"unwanted": "x", addonFolder(addons[0]) + "/deployment.yaml": "kind: Deployment"}
	var members []release.Member
	for kind, paths := range map[release.Kind]map[string]string{release.Binary: r.members, release.Archive: r.images,
		release.Sums: r.claimed} {
		for name, path := range paths {
			described.Artifacts = append(described.Artifacts, artifact(r.on.String()+"/"+name, kind, []byte(name)))
			members = append(members, release.Member{Path: path, Artifact: r.on.String() + "/" + name})
			if kind != release.Sums {
				packed[path] = name
			}
		}
	}
	content := pack(t, packed)
	tarball := artifact(r.tarball, release.Tarball, content)
	tarball.Path, tarball.Members = r.tarball, members
	described.Artifacts = append(described.Artifacts, tarball)
	description, err := described.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{r.tarball: content, release.File: description} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pack returns a .tar.gz of files.
func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func up(t *testing.T, tarballs string) (dir string, s *State, err error) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	dir = t.TempDir()
	s, err = Up(t.Context(), Options{Dir: dir, Name: "x", Tarballs: tarballs, Nodes: 1, ControlPlaneOnly: true, Events: func(action.Event) {}})
	return dir, s, err
}

func TestTarballThatDiffersFromItsDescriptionIsRefusedBeforeAnythingIsMade(t *testing.T) {
	t.Parallel()
	r := servers(apiServer)
	tarballs := r.publish(t)
	f, err := os.OpenFile(filepath.Join(tarballs, r.tarball), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{1}, 4); err != nil { // the time in gzip's header, which gzip itself does not check
		t.Fatal(err)
	}
	dir, s, err := up(t, tarballs)
	if err == nil || !strings.Contains(err.Error(), r.tarball+": not as release.json describes it: its SHA-256 is ") || s != nil {
		t.Errorf("%v, error %v", s, err)
	}
	if made, _ := filepath.Glob(filepath.Join(dir, "*")); len(made) > 0 {
		t.Errorf("it made %q", made)
	}
}

func TestMissingFilesAreNamed(t *testing.T) {
	t.Parallel()
	for _, program := range []string{apiServer, testSuite} {
		r := servers(program)
		for _, name := range []string{r.tarball, release.File} {
			dir := r.publish(t)
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			b, err := tarball.Open(dir, program)
			if err == nil {
				err = b.Verify(t.Context())
			}
			if want := (MissingError{File: name, Dir: dir, Tests: program == testSuite}); !errors.Is(err, want) {
				t.Errorf("error %v, want %v", err, want)
			}
		}
	}
	dir := servers("kubelet").publish(t)
	if _, err := tarball.Open(dir, apiServer); !errors.Is(err, MissingError{File: "tarball with kube-apiserver", Dir: dir}) {
		t.Errorf("error %v", err)
	}
}

func TestReleaseOfAnotherPlatformIsRefused(t *testing.T) {
	t.Parallel()
	r := servers(apiServer)
	r.on = platform.Platform{OS: "linux", Arch: "mips"}
	if _, err := tarball.Open(r.publish(t), apiServer); err == nil || !strings.Contains(err.Error(),
		"release v1.37.0+acme.1 is for linux/mips, and not for "+tarball.Host.String()) {
		t.Errorf("error %v", err)
	}
}

func TestMalformedDescriptionsAreRefused(t *testing.T) {
	t.Parallel()
	r := servers(apiServer)
	dir := r.publish(t)
	if err := os.WriteFile(filepath.Join(dir, release.File), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := tarball.Open(dir, apiServer); !errors.Is(err, release.ErrInvalid) || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v", err)
	}
	r.claimed = map[string]string{"kubectl": "../../kubectl"}
	if _, err := tarball.Open(r.publish(t), apiServer); !errors.Is(err, unpack.ErrUnsafe) {
		t.Errorf("error %v", err)
	}
}

func TestArtifactsAreUnpackedAndFoundWhereTheDescriptionSays(t *testing.T) {
	t.Parallel()
	r := servers(apiServer, "kubeadm", "kubelet", "kubectl", "unused")
	r.images = map[string]string{"pause.tar": "some/pause", nodeImage: "some/node"}
	from, to := r.publish(t), filepath.Join(t.TempDir(), "to")
	packed, err := tarball.Open(from, apiServer)
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(slices.Values(packed.Archives())); !slices.Equal(got, []string{nodeImage, "pause.tar"}) {
		t.Errorf("archives are %q", got)
	}
	wanted := append(withoutName(packed.Archives(), nodeImage), apiServer, "kubectl")
	if err := packed.Unpack(t.Context(), to, wanted, addonFolder(addons[0])); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(from); err != nil {
		t.Fatal(err)
	}
	b, err := tarball.Open(to, apiServer)
	if err != nil {
		t.Fatal(err)
	}
	if b.Sum() != packed.Sum() {
		t.Error("its release.json differs from the release's")
	}
	for name, want := range map[string]bool{apiServer: true, "kubectl": true, "pause.tar": true, "unused": false, nodeImage: false} {
		file, err := b.File(name)
		if err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(file); (err == nil && string(content) == name) != want {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
	for name, want := range map[string]bool{addonFolder(addons[0]) + "/deployment.yaml": true, "unwanted": false} {
		if _, err := os.Stat(filepath.Join(to, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	const folders = ownProgramsInNode + ":/run/slipway/release/odd/kubeadm:/run/slipway/release/odd/kubelet:/run/slipway/release/odd/kubectl:"
	if got := nodePath(b); !strings.HasPrefix(got, folders) {
		t.Errorf("PATH is %s", got)
	}
	if got := foldersInNode(b, []string{"kubectl", apiServer})[0]; got != "/run/slipway/release/odd/kubectl" {
		t.Errorf("a node has kubectl in %s", got)
	}
	s := &State{Name: "c", dir: filepath.Dir(to)}
	if _, err := s.Kubectl(); !errors.Is(err, ErrUnfinished) || errors.As(err, new(MissingError)) {
		t.Errorf("error %v", err)
	}
	if err := os.Rename(to, s.releaseDir()); err != nil {
		t.Fatal(err)
	}
	if kubectl, err := s.Kubectl(); err != nil || kubectl != filepath.Join(s.releaseDir(), "odd", "kubectl", "program") {
		t.Errorf("%s, %v", kubectl, err)
	}
}

func TestErrorNamesWhatATarballLacks(t *testing.T) {
	t.Parallel()
	r := servers(apiServer, "kubectl")
	_, s, err := up(t, r.publish(t))
	if want := fmt.Sprintf("lacks %s/etcd, %[1]s/kube-controller-manager, %[1]s/kube-scheduler", tarball.Host); err == nil ||
		!strings.Contains(err.Error(), want) || s == nil {
		t.Errorf("%v, error %v", s, err)
	}
	r.claimed = map[string]string{"etcd": "bin/etcd"}
	b, err := tarball.Open(r.publish(t), apiServer)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Unpack(t.Context(), t.TempDir(), []string{"etcd"}); err == nil ||
		!strings.Contains(err.Error(), "lacks bin/etcd, which release.json names") {
		t.Errorf("error %v", err)
	}
	all := []images.Image{{Archive: "pause.tar", Names: []string{"registry.k8s.io/pause:3.10.2"}}}
	if err := requireImages(b, all, []string{"registry.k8s.io/pause:3.10.2", "registry.k8s.io/etcd:3.6.8-0"}); err == nil ||
		!strings.Contains(err.Error(), ": registry.k8s.io/etcd:3.6.8-0:") {
		t.Errorf("error %v", err)
	}
}

func TestTestTarballIsUnpackedOnceAndOnlyOfTheClustersVersion(t *testing.T) {
	t.Parallel()
	r := servers(testSuite, ginkgo)
	s := &State{Name: "c", Version: r.version, dir: t.TempDir(), Tarballs: r.publish(t)}
	tests, err := s.UnpackTests(t.Context(), "", ClusterSuite)
	if err != nil {
		t.Fatal(err)
	}
	_, runner, err := tests.Programs()
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(runner); err != nil || string(content) != ginkgo {
		t.Errorf("%q, %v", content, err)
	}
	if err := os.Remove(runner); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UnpackTests(t.Context(), s.Tarballs, ClusterSuite); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(runner); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is unpacked again: %v", err)
	}
	r.version = "v1.37.1"
	if _, err := s.UnpackTests(t.Context(), r.publish(t), ClusterSuite); err == nil ||
		!strings.Contains(err.Error(), "a-server.tgz has version v1.37.1, and cluster c has v1.37.0+acme.1") {
		t.Errorf("error %v", err)
	}
}

// Specs know nothing of the image of hollow nodes.
func TestSpecsRunAllImagesOfTheTestTarballButKubemarks(t *testing.T) {
	t.Parallel()
	r := servers(testSuite, ginkgo)
	r.images = map[string]string{"agnhost.tar": "agnhost.tar", hollowImage: hollowImage}
	dir := r.publish(t)
	b, err := tarball.Open(dir, testSuite)
	if err != nil {
		t.Fatal(err)
	}
	if got := specImages(b); !slices.Equal(got, []string{"agnhost.tar"}) {
		t.Errorf("specs run %q", got)
	}
	s := &State{Name: "c", Version: "v1.0.0", dir: t.TempDir(), Tarballs: dir}
	if _, err := s.publishTestImage(t.Context(), "", hollowImage); err == nil || !strings.Contains(err.Error(), "has version") {
		t.Errorf("an image of another version: %v", err)
	}
	var missing MissingError
	if _, err := s.publishTestImage(t.Context(), t.TempDir(), hollowImage); !errors.As(err, &missing) || !missing.Tests {
		t.Errorf("no tarball: %v", err)
	}
}

func TestPodsRunAllImagesButTheNodes(t *testing.T) {
	t.Parallel()
	r := servers(apiServer)
	r.images = map[string]string{"pause.tar": "pause.tar", nodeImage: nodeImage}
	dir := r.publish(t)
	for _, short := range []string{"pause", "node"} {
		tag, err := name.NewTag("registry.example/" + short + ":1")
		if err != nil {
			t.Fatal(err)
		}
		image, err := random.Image(1000, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := docker.WriteToFile(filepath.Join(dir, short+".tar"), tag, image); err != nil {
			t.Fatal(err)
		}
	}
	b, err := tarball.Open(dir, apiServer)
	if err != nil {
		t.Fatal(err)
	}
	all, err := podImages(b)
	if err != nil || len(all) != 1 || all[0].Name() != "registry.example/pause:1" {
		t.Errorf("Pods may run %v, %v", all, err)
	}
	if i, err := imageOf(b, nodeImage); err != nil || i.Name() != "registry.example/node:1" {
		t.Errorf("nodes have %v, %v", i, err)
	}
}
