package cluster

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// addons are components that kubeadm does not install, by the names of their images. Their manifests, in folders of the server tarball,
// are no artifacts.
var addons = []string{"metrics-server", "cloud-controller-manager", "traefik"}

const addonsFolder = "kubernetes/addons"

// runtimeDefaults is the folder with the release's configuration of containerd. Releases may lack it.
const runtimeDefaults = addonsFolder + "/containerd"

func addonFolder(name string) string { return addonsFolder + "/" + name }

// optional are addons that Add installs and that there are checks of.
var optional = []string{"storage"}

// LacksAddons returns the names of the addons that the cluster does not have: because its release does not, or because nobody has added
// them.
func (s *State) LacksAddons() []string {
	lacks := slices.DeleteFunc(slices.Clone(addons), func(name string) bool {
		_, err := os.Stat(filepath.Join(s.releaseDir(), filepath.FromSlash(addonFolder(name))))
		return !errors.Is(err, fs.ErrNotExist)
	})
	return append(lacks, slices.DeleteFunc(slices.Clone(optional), func(name string) bool { return slices.Contains(s.Addons, name) })...)
}
