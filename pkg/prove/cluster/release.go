package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/checksum"
)

// A release is what was unpacked for a cluster: the server tarball holds everything.
type release struct {
	dir     string // has the folder kubernetes
	version string // with build metadata, such as v1.36.3+acme.1
}

// serverTarball is the one for this machine.
func serverTarball() string { return "kubernetes-server-linux-" + runtime.GOARCH + ".tar.gz" }

// sumsOf identifies the release in a folder: by the SHA-256 of its SHA256SUMS.
func sumsOf(dir string) (string, error) {
	for _, name := range []string{"SHA256SUMS", serverTarball()} {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, os.ErrNotExist) {
			return "", &MissingError{name, dir}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// A MissingError is a file of a release that is not in its folder.
type MissingError struct{ Name, Dir string }

func (e *MissingError) Error() string { return fmt.Sprintf("there is no %s in %s", e.Name, e.Dir) }

// verifyTarball compares the server tarball with its line in SHA256SUMS.
func verifyTarball(dir string) error {
	return checksum.VerifyFiles(dir, filepath.Join(dir, "SHA256SUMS"), serverTarball())
}

// unpackRelease unpacks of the server tarball what a cluster needs.
func unpackRelease(ctx context.Context, tars, dir string, controlPlaneOnly bool) (*release, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	want := wantForNodes
	if controlPlaneOnly {
		want = wantForControlPlane
	}
	if err := unpack(ctx, filepath.Join(tars, serverTarball()), dir, want); err != nil {
		return nil, err
	}
	return openRelease(dir)
}

// openRelease looks at what was unpacked.
func openRelease(dir string) (*release, error) {
	version, err := os.ReadFile(filepath.Join(dir, "kubernetes", "version"))
	if err != nil {
		return nil, err
	}
	return &release{dir, strings.TrimSpace(string(version))}, nil
}

// Programs of the control plane run as they are only where it runs without containers.
func wantForControlPlane(name string) bool {
	if bin, ok := strings.CutPrefix(name, "kubernetes/server/bin/"); ok {
		return slices.Contains([]string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}, bin)
	}
	return name == "kubernetes/version" || name == "kubernetes/addons/bin/etcd"
}

func wantForNodes(name string) bool {
	if bin, ok := strings.CutPrefix(name, "kubernetes/server/bin/"); ok {
		return slices.Contains([]string{"kubelet", "kubeadm", "kubectl"}, bin) || strings.HasSuffix(bin, ".tar") && bin != "kubectl.tar"
	}
	return name == "kubernetes/version" || strings.HasPrefix(name, "kubernetes/addons/") && !strings.HasPrefix(name, "kubernetes/addons/bin/")
}

// path is that of a member of the tarball.
func (r *release) path(name string) string {
	return filepath.Join(r.dir, "kubernetes", filepath.FromSlash(name))
}

// require says which of some members the tarball lacks.
func (r *release) require(names ...string) error {
	var lacks []string
	for _, name := range names {
		if _, err := os.Stat(r.path(name)); err != nil {
			lacks = append(lacks, "kubernetes/"+name)
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("%s lacks %s: it is of a release that cannot boot: make another", serverTarball(), strings.Join(lacks, ", "))
	}
	return nil
}

// An imageFile is an archive of an image, and the names that it gives it.
type imageFile struct {
	path  string // relative to what was unpacked of the release, slash-separated
	names []string
}

// images finds the images of the release.
func (r *release) images() ([]imageFile, error) {
	var images []imageFile
	for _, folder := range []string{"server/bin", "addons/images"} {
		files, err := filepath.Glob(r.path(folder + "/*.tar"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			names, err := namesIn(file)
			if err != nil {
				return nil, err
			}
			images = append(images, imageFile{"kubernetes/" + folder + "/" + filepath.Base(file), names})
		}
	}
	return images, nil
}

// controlPlane tells whether it is run by the first node only, as a static Pod.
func (i imageFile) controlPlane() bool {
	return slices.ContainsFunc([]string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}, func(short string) bool {
		return len(i.repositories(short)) > 0
	})
}

// repositories are those of its names whose last part is so, without it: of registry.k8s.io/coredns/coredns:v1.14.2 that is
// registry.k8s.io/coredns.
func (i imageFile) repositories(short string) []string {
	var all []string
	for _, name := range i.names {
		repository, last := path.Split(name)
		if base, _, ok := strings.Cut(last, ":"); ok && base == short {
			all = append(all, strings.TrimSuffix(repository, "/"))
		}
	}
	return all
}

// hasImage tells whether there is one of that name.
func hasImage(images []imageFile, short string) bool {
	return slices.ContainsFunc(images, func(i imageFile) bool { return len(i.repositories(short)) > 0 })
}

// chooseRegistry finds the registry in whose name the release has all images that kubeadm wants, and says which one is for
// the containers that hold Pods' namespaces. A release can carry several registries' names.
func chooseRegistry(ctx context.Context, r *release, images []imageFile) (registry, sandbox string, err error) {
	err = r.require("server/bin/kube-apiserver.tar")
	for _, i := range images {
		for _, registry := range i.repositories("kube-apiserver") {
			var wanted []string
			if wanted, err = wantedImages(ctx, r, registry); err != nil {
				return "", "", err
			}
			if err = requireImages(images, wanted); err != nil {
				continue
			}
			at := slices.IndexFunc(wanted, func(name string) bool { return strings.HasPrefix(path.Base(name), "pause:") })
			if at < 0 {
				return "", "", fmt.Errorf("kubeadm wants no pause image among %q", wanted)
			}
			return registry, wanted[at], nil
		}
	}
	return "", "", err
}

// requireImages says which images the tarball lacks.
func requireImages(images []imageFile, names []string) error {
	var lacks []string
	for _, name := range names {
		if !slices.ContainsFunc(images, func(i imageFile) bool { return slices.Contains(i.names, name) }) {
			lacks = append(lacks, name)
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("%s lacks images that kubeadm wants: %s: it is of a release that cannot boot: make another", serverTarball(), strings.Join(lacks, ", "))
	}
	return nil
}
