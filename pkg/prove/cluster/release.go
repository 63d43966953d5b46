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

// A release is the part of a server tarball that was unpacked for a cluster.
type release struct {
	dir     string // has the folder kubernetes
	version string // with build metadata, such as v1.36.3+acme.1
}

// serverTarball returns the name of the server tarball for this machine.
func serverTarball() string { return "kubernetes-server-linux-" + runtime.GOARCH + ".tar.gz" }

// sumsOf identifies the release in a folder by the SHA-256 of its SHA256SUMS.
func sumsOf(dir string) (string, error) {
	for _, name := range []string{"SHA256SUMS", serverTarball()} {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, os.ErrNotExist) {
			return "", MissingError{name, dir}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// verifyTarball compares the server tarball with its line in SHA256SUMS.
func verifyTarball(dir string) error {
	return checksum.VerifyFiles(dir, filepath.Join(dir, "SHA256SUMS"), serverTarball())
}

// unpackRelease unpacks the members of the server tarball that a cluster needs.
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

// openRelease opens what was unpacked.
func openRelease(dir string) (*release, error) {
	version, err := os.ReadFile(filepath.Join(dir, "kubernetes", "version"))
	if err != nil {
		return nil, err
	}
	return &release{dir, strings.TrimSpace(string(version))}, nil
}

// controlPlaneMembers are the members that a control plane without nodes uses, relative to the folder kubernetes.
var controlPlaneMembers = []string{
	"addons/bin/etcd", "server/bin/kube-apiserver", "server/bin/kube-controller-manager", "server/bin/kube-scheduler", "server/bin/kubectl",
}

// nodeMembers are the members that a cluster with nodes uses by name. It also uses all images and the folder addons.
var nodeMembers = []string{
	"server/bin/kubeadm", "server/bin/kubelet", "server/bin/kubectl", "server/bin/kube-apiserver.tar", "addons/images/pause.tar",
	"addons/cni/bin/ptp", "addons/cni/bin/host-local", "addons/cni/bin/loopback", "addons/cni/bin/portmap",
}

func wantForControlPlane(name string) bool {
	member, ok := strings.CutPrefix(name, "kubernetes/")
	return ok && (member == "version" || slices.Contains(controlPlaneMembers, member))
}

func wantForNodes(name string) bool {
	member, ok := strings.CutPrefix(name, "kubernetes/")
	switch folder := path.Dir(member); {
	case !ok:
		return false
	case folder == "server/bin" && path.Ext(member) == ".tar":
		return member != "server/bin/kubectl.tar" // nothing runs it
	case strings.HasPrefix(member, "addons/"):
		return folder != "addons/bin"
	}
	return member == "version" || slices.Contains(nodeMembers, member)
}

// path returns the path of a member of the tarball.
func (r *release) path(name string) string {
	return filepath.Join(r.dir, "kubernetes", filepath.FromSlash(name))
}

// require returns an error that names the members that the tarball lacks.
func (r *release) require(names ...string) error {
	var lacks []string
	for _, name := range names {
		if _, err := os.Stat(r.path(name)); err != nil {
			lacks = append(lacks, "kubernetes/"+name)
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("%s lacks %s: its release cannot boot", serverTarball(), strings.Join(lacks, ", "))
	}
	return nil
}

// An imageFile is an archive of an image, with the names in it.
type imageFile struct {
	path  string // relative to what was unpacked of the release, slash-separated
	names []string
}

// images returns the images of the release.
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

// controlPlane reports whether only the first node runs the image, as a static Pod.
func (i imageFile) controlPlane() bool {
	return slices.ContainsFunc([]string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}, func(short string) bool {
		return len(i.repositories(short)) > 0
	})
}

// repositories returns the parts before a short name in the image's names: for coredns in
// registry.k8s.io/coredns/coredns:v1.14.2, registry.k8s.io/coredns.
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

// hasImage reports whether an image has a short name.
func hasImage(images []imageFile, short string) bool {
	return slices.ContainsFunc(images, func(i imageFile) bool { return len(i.repositories(short)) > 0 })
}

// chooseRegistry returns the registry under whose name the release has all images that kubeadm wants, and the image for the
// containers that hold Pods' namespaces. Images may have the names of several registries.
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

// requireImages returns an error that names the images that the tarball lacks.
func requireImages(images []imageFile, names []string) error {
	var lacks []string
	for _, name := range names {
		if !slices.ContainsFunc(images, func(i imageFile) bool { return slices.Contains(i.names, name) }) {
			lacks = append(lacks, name)
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("%s lacks images that kubeadm wants: %s: its release cannot boot", serverTarball(), strings.Join(lacks, ", "))
	}
	return nil
}
