package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/unpack"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/verify"
)

// Artifacts that a cluster uses. Names are those of release.json without the platform.
const (
	apiServer = "kube-apiserver" // in the server tarball
	testSuite = "e2e.test"       // in the test tarball
	ginkgo    = "ginkgo"
	nodeImage = "node.tar" // the root file system of nodes
)

var (
	controlPlanePrograms = []string{"etcd", apiServer, "kube-controller-manager", "kube-scheduler", "kubectl"}
	nodePrograms         = []string{"kubeadm", "kubelet", "kubectl", "containerd", "containerd-shim-runc-v2", "ctr", "crictl", registryProgram}
	networkPlugins       = []string{"ptp", "host-local", "loopback", "portmap"}
	nodeImages           = []string{apiServer + ".tar", "pause.tar", nodeImage}
)

// An addon is a component that kubeadm does not install. Its manifests are in a folder of the server tarball, and are no artifacts.
type addon struct {
	name string // of the image, too
	dir  string
}

var addons = []addon{
	{"metrics-server", "kubernetes/addons/metrics-server"},
	{"cloud-controller-manager", "kubernetes/addons/cloud-controller-manager"},
	{"traefik", "kubernetes/addons/traefik"},
}

// LacksAddons returns the names of the addons that the cluster's release does not have.
func (s *State) LacksAddons() []string {
	var names []string
	for _, a := range addons {
		if _, err := os.Stat(filepath.Join(s.releaseDir(), filepath.FromSlash(a.dir))); errors.Is(err, fs.ErrNotExist) {
			names = append(names, a.name)
		}
	}
	return names
}

// addonFolders returns the addons' folders in the server tarball.
func addonFolders() []string {
	var dirs []string
	for _, a := range addons {
		dirs = append(dirs, a.dir)
	}
	return dirs
}

// host is the platform of nodes.
var host = platform.Platform{OS: "linux", Arch: runtime.GOARCH}

// A bundle is a tarball of a release, packed or unpacked, in a folder with release.json.
type bundle struct {
	dir         string
	description []byte // content of release.json
	release     *release.Release
	tarball     release.Artifact
	members     map[string]string // paths in the tarball by names of artifacts
}

// openBundle opens the tarball that holds a program for this machine.
func openBundle(dir, program string) (*bundle, error) {
	file := filepath.Join(dir, release.File)
	description, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, MissingError{release.File, dir, isSuite(program)}
	}
	if err != nil {
		return nil, err
	}
	r, err := release.Unmarshal(description)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, t := range r.Select(release.Tarball, host) {
		b := &bundle{dir, description, r, t, map[string]string{}}
		for _, m := range t.Members {
			if !fs.ValidPath(m.Path) {
				return nil, fmt.Errorf("%s: member %q of %s %w", file, m.Path, t.Name, unpack.ErrUnsafe)
			}
			b.members[short(m.Artifact)] = m.Path
		}
		if b.members[program] != "" {
			return b, nil
		}
	}
	if !slices.Contains(r.Platforms, host) {
		var names []string
		for _, p := range r.Platforms {
			names = append(names, p.String())
		}
		return nil, fmt.Errorf("%s: release %s is for %s, and not for %s", file, r.Version, strings.Join(names, ", "), host)
	}
	return nil, MissingError{"tarball with " + program, dir, isSuite(program)}
}

func isSuite(program string) bool { return program == ClusterSuite || program == NodeSuite }

// short returns the name of an artifact without the platform of nodes.
func short(artifact string) string { return strings.TrimPrefix(artifact, host.String()+"/") }

// sum identifies the release by the SHA-256 of its release.json.
func (b *bundle) sum() string {
	sum := sha256.Sum256(b.description)
	return hex.EncodeToString(sum[:])
}

// verify compares the tarball with its description.
func (b *bundle) verify(ctx context.Context) error {
	report, err := verify.Files(ctx, b.dir, b.release, b.tarball.Name)
	if err != nil || report.OK() {
		return err
	}
	if f := report.Files[0]; f.Status != verify.Missing {
		return fmt.Errorf("%s: not as %s describes it: %s", filepath.Join(b.dir, f.Path), release.File, f.Detail)
	}
	return MissingError{b.tarball.Path, b.dir, b.members[testSuite] != ""}
}

// unpack unpacks artifacts and folders of the tarball. It writes release.json last.
func (b *bundle) unpack(ctx context.Context, dir string, artifacts []string, folders ...string) error {
	if err := b.require(artifacts...); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, name := range artifacts {
		wanted[b.members[name]] = true
	}
	err := unpack.Unpack(ctx, filepath.Join(b.dir, filepath.FromSlash(b.tarball.Path)), dir, func(name string) bool {
		return wanted[name] || slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(name, folder+"/") })
	})
	if err != nil {
		return err
	}
	for name := range wanted {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return fmt.Errorf("%s lacks %s, which %s names: %w", b.tarball.Path, name, release.File, err)
		}
	}
	return atomicfile.WriteFile(filepath.Join(dir, release.File), b.description, 0o644)
}

// require returns an error that names the artifacts that the tarball lacks.
func (b *bundle) require(artifacts ...string) error {
	var lacks []string
	for _, name := range artifacts {
		if b.members[name] == "" {
			lacks = append(lacks, host.String()+"/"+name)
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("%s lacks %s", b.tarball.Path, strings.Join(lacks, ", "))
	}
	return nil
}

// path returns the path of an unpacked artifact.
func (b *bundle) path(name string) (string, error) {
	return filepath.Join(b.dir, filepath.FromSlash(b.members[name])), b.require(name)
}

// foldersInNode returns the folders of unpacked artifacts as a node sees them.
func (b *bundle) foldersInNode(names []string) []string {
	var folders []string
	for _, name := range names {
		if folder := path.Join(releaseInNode, path.Dir(b.members[name])); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// archives returns the names of the tarball's archives of images that Pods may run: not that of a node.
func (b *bundle) archives() []string {
	var names []string
	for _, a := range b.release.Select(release.Archive, host) {
		if name := short(a.Name); b.members[name] != "" && name != nodeImage {
			names = append(names, name)
		}
	}
	return names
}
