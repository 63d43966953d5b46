package kubeadm

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// decode reads documents by their kind.
func decode(t *testing.T, text []byte) map[string]map[string]any {
	t.Helper()
	kinds := map[string]map[string]any{}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var doc map[string]any
		if err := d.Decode(&doc); err == io.EOF {
			return kinds
		} else if err != nil {
			t.Fatal(err)
		}
		kinds[doc["kind"].(string)] = doc
	}
}

func TestKubeadmConfigurationHasTheFullVersion(t *testing.T) {
	t.Parallel()
	c := Config{Cluster: "c", Version: "v1.36.3+acme.1", Registry: "registry.example", Token: NewToken(), Wait: 5 * time.Minute,
		Node: Node{Name: "c-1", Address: "198.18.0.2", CgroupRoot: "slipway-x/c-1"}}
	text, err := c.Init()
	if err != nil {
		t.Fatal(err)
	}
	docs := decode(t, text)
	cluster := docs["ClusterConfiguration"]
	if cluster["kubernetesVersion"] != c.Version || cluster["imageRepository"] != c.Registry {
		t.Errorf("the cluster is %v", cluster)
	}
	own := c
	own.Version, own.Registry = "", ""
	if text, err := own.Init(); err != nil || decode(t, text)["ClusterConfiguration"]["imageRepository"] != nil ||
		decode(t, text)["ClusterConfiguration"]["kubernetesVersion"] != nil {
		t.Errorf("kubeadm is not left to its defaults: %s, %v", text, err)
	}
	if timeouts, _ := docs["InitConfiguration"]["timeouts"].(map[string]any); timeouts["kubernetesAPICall"] != "10m0s" {
		t.Errorf("kubeadm waits for %v", timeouts)
	}
	for _, kind := range []string{"InitConfiguration", "KubeletConfiguration", "KubeProxyConfiguration"} {
		if docs[kind] == nil {
			t.Errorf("there is no %s", kind)
		}
	}
	if text, err = c.Join(false); err != nil || decode(t, text)["JoinConfiguration"] == nil ||
		decode(t, text)["JoinConfiguration"]["controlPlane"] != nil {
		t.Errorf("a node joins by %s, %v", text, err)
	}
}

func TestOtherControlPlanesJoinByTheBalancersAddress(t *testing.T) {
	t.Parallel()
	const endpoint = "198.18.3.253:6443"
	c := Config{Cluster: "c", Version: "v1.36.3", Token: NewToken(), Endpoint: endpoint, Key: NewKey(),
		Node: Node{Name: "c-2", Address: "198.18.3.3"}}
	text, err := c.Init()
	if err != nil {
		t.Fatal(err)
	}
	docs := decode(t, text)
	if docs["ClusterConfiguration"]["controlPlaneEndpoint"] != endpoint || docs["InitConfiguration"]["certificateKey"] != c.Key {
		t.Errorf("the first one is made by %s", text)
	}
	if text, err = c.Join(true); err != nil {
		t.Fatal(err)
	}
	controlPlane, _ := decode(t, text)["JoinConfiguration"]["controlPlane"].(map[string]any)
	if controlPlane["certificateKey"] != c.Key || !strings.Contains(string(text), `"advertiseAddress": "198.18.3.3"`) {
		t.Errorf("another one joins by %s", text)
	}

	discovery, err := c.Discovery([]byte("certificate"))
	if err != nil || !strings.Contains(string(discovery), `"certificate-authority-data": "Y2VydGlmaWNhdGU="`) ||
		!strings.Contains(string(discovery), `"server": "https://198.18.3.253:6443"`) {
		t.Errorf("a node that joins knows %s, %v", discovery, err)
	}
}

func TestTokensHaveTheFormOfKubeadm(t *testing.T) {
	t.Parallel()
	if token := NewToken(); !regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`).MatchString(token) || token == NewToken() {
		t.Error(token)
	}
}

func TestAPIServersEncryptAndAudit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := WriteControlPlaneFiles(dir, NewSecret(), Settings{}); err != nil {
		t.Fatal(err)
	}
	for file, kind := range map[string]string{encryptionFile: "EncryptionConfiguration", auditFile: "Policy"} {
		text, err := os.ReadFile(filepath.Join(dir, "slipway", file))
		if err != nil || decode(t, text)[kind] == nil {
			t.Errorf("%s is %s, %v", file, text, err)
		}
	}
	text, err := Config{}.Init()
	if err != nil {
		t.Fatal(err)
	}
	server, _ := decode(t, text)["ClusterConfiguration"]["apiServer"].(map[string]any)
	if args := fmt.Sprint(server["extraArgs"]); !strings.Contains(args, "/etc/kubernetes/slipway/"+encryptionFile) ||
		!strings.Contains(args, "/etc/kubernetes/slipway/"+auditFile) {
		t.Errorf("API servers have %s", args)
	}
}

func TestUpgradeConfigurationHasTheFullVersion(t *testing.T) {
	t.Parallel()
	text, err := Config{Version: "v1.37.2+acme.1", Wait: time.Minute}.Upgrade()
	if err != nil {
		t.Fatal(err)
	}
	c := decode(t, text)["UpgradeConfiguration"]
	if apply, _ := c["apply"].(map[string]any); apply["kubernetesVersion"] != "v1.37.2+acme.1" {
		t.Errorf("kubeadm upgrades to %v", apply)
	}
	if timeouts, _ := c["timeouts"].(map[string]any); timeouts["upgradeManifests"] != "5m0s" {
		t.Errorf("kubeadm waits for %v", timeouts)
	}
}

func TestRegistryOfKubeadmChangesAlone(t *testing.T) {
	t.Parallel()
	const config = "apiVersion: kubeadm.k8s.io/v1beta4\nimageRepository: old.example\nkubernetesVersion: v1.37.1\n"
	if got, err := WithRegistry(config, "old.example"); err != nil || got != config {
		t.Errorf("%s, %v", got, err)
	}
	got, err := WithRegistry(config, "new.example")
	if want := strings.ReplaceAll(config, "old", "new"); err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
}
