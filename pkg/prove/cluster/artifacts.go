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

func addonFolder(name string) string { return "kubernetes/addons/" + name }

// LacksAddons returns the names of the addons that the cluster's release does not have.
func (s *State) LacksAddons() []string {
	return slices.DeleteFunc(slices.Clone(addons), func(name string) bool {
		_, err := os.Stat(filepath.Join(s.releaseDir(), filepath.FromSlash(addonFolder(name))))
		return !errors.Is(err, fs.ErrNotExist)
	})
}
