package bump

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// unpack writes a txtar archive into a new folder.
func unpack(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := txtar.Write(txtar.Parse([]byte(text)), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Constants count by value, not by how they are written, and packages that cannot be imported do not matter.
func TestVersionsAreReadFromCode(t *testing.T) {
	t.Parallel()
	dir := unpack(t, `
-- cmd/kubeadm/app/constants/constants.go --
package constants

import version "k8s.io/apimachinery/pkg/util/version"

const (
	// PauseVersion = "0.1" is not it.
	PauseVersion = "3." + minor
	minor        = "10"
	DefaultEtcdVersion = `+"`3.7.0-0`"+`
)

const CoreDNSVersion string = "v1.14.6"

var Minimum = version.MustParse(DefaultEtcdVersion).Major()
-- cmd/kubeadm/app/constants/constants_windows.go --
package constants

const PauseVersion = "windows"
-- cmd/kubeadm/app/constants/constants_test.go --
package constants

const PauseVersion = "test"
-- test/utils/image/manifest.go --
package image

import "gopkg.in/yaml"

type RegistryList struct { PromoterE2eRegistry, GcRegistry string }

const agnhost = "agn" + "host"

func initImageConfigs(list RegistryList) (map[ImageID]Config, error) {
	configs := map[ImageID]Config{}
	configs[Agnhost] = Config{list.PromoterE2eRegistry, agnhost, "2.66.1"}
	configs[Pause] = Config{list.GcRegistry, "pause", "3.10"}
	configs[Odd] = Config{list.GcRegistry, yaml.Name, "3.10"}
	other, more := 1, 2
	return configs, nil
}

var registry = RegistryList{PromoterE2eRegistry: "registry.k8s.io/e2e-test-images", GcRegistry: "registry.k8s.io"}
-- build/dependencies.yaml --
dependencies:
- name: cni
  version: 1.9.1
  refPaths:
  - path: cluster/gce/config-common.sh
    match: WINDOWS_CNI_VERSION=
`)
	versions, err := namedVersions(dir)
	if err != nil {
		t.Fatal(err)
	}
	const kubeadm = "kubeadm names it"
	if diff := cmp.Diff(map[string]named{"pause": {"3.10", kubeadm}, "etcd": {"3.7.0-0", kubeadm}, "coredns": {"v1.14.6", kubeadm},
		"cni-plugins": {"v1.9.1", "Kubernetes names it"}}, versions, cmp.AllowUnexported(named{})); diff != "" {
		t.Error(diff)
	}
	images, err := testImages(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]testImage{"Agnhost": {"e2e-test-images/agnhost", "2.66.1"}, "Pause": {"pause", "3.10"}}
	if diff := cmp.Diff(want, images); diff != "" {
		t.Error(diff)
	}
}

func TestMissingVersionsAreNamed(t *testing.T) {
	t.Parallel()
	dir := unpack(t, `
-- cmd/kubeadm/app/constants/constants.go --
package constants

const (
	PauseVersion       = "3.10"
	CoreDNSVersion     = "v1.14.6"
)

var DefaultEtcdVersion = "3.7.0-0"
-- test/utils/image/manifest.go --
package image
`)
	if _, err := namedVersions(dir); err == nil || !strings.Contains(err.Error(), "has no constant DefaultEtcdVersion") {
		t.Error(err)
	}
	if _, err := testImages(dir); err == nil || !strings.Contains(err.Error(), "test/utils/image has no line like") {
		t.Error(err)
	}
	if _, err := namedVersions(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("no error for a module without kubeadm")
	}
}
