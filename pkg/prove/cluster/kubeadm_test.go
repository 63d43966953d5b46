package cluster

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
	c := setup{cluster: "c", version: "v1.36.3+acme.1", registry: "registry.example", token: newToken(), name: "c-1", address: "198.18.0.2",
		cgroupRoot: "slipway-x/c-1", wait: 5 * time.Minute}
	text, err := c.config()
	if err != nil {
		t.Fatal(err)
	}
	docs := decode(t, text)
	cluster := docs["ClusterConfiguration"]
	if cluster["kubernetesVersion"] != c.version || cluster["imageRepository"] != c.registry {
		t.Errorf("the cluster is %v", cluster)
	}
	if timeouts, _ := docs["InitConfiguration"]["timeouts"].(map[string]any); timeouts["kubernetesAPICall"] != "10m0s" {
		t.Errorf("kubeadm waits for %v", timeouts)
	}
	for _, kind := range []string{"InitConfiguration", "KubeletConfiguration", "KubeProxyConfiguration"} {
		if docs[kind] == nil {
			t.Errorf("there is no %s", kind)
		}
	}
	if text, err = c.joinConfig(false); err != nil || decode(t, text)["JoinConfiguration"] == nil ||
		decode(t, text)["JoinConfiguration"]["controlPlane"] != nil {
		t.Errorf("a node joins by %s, %v", text, err)
	}
}

func TestOtherControlPlanesJoinByTheBalancersAddress(t *testing.T) {
	t.Parallel()
	s := &State{Name: "c", Subnet: "198.18.3.0/24", ControlPlanes: 3}
	endpoint, err := s.endpoint()
	if err != nil || endpoint != "198.18.3.253:6443" {
		t.Fatalf("the API is at %s, %v", endpoint, err)
	}
	c := setup{cluster: "c", version: "v1.36.3", token: newToken(), name: "c-2", address: "198.18.3.3", endpoint: endpoint, key: newKey()}
	text, err := c.config()
	if err != nil {
		t.Fatal(err)
	}
	docs := decode(t, text)
	if docs["ClusterConfiguration"]["controlPlaneEndpoint"] != endpoint || docs["InitConfiguration"]["certificateKey"] != c.key {
		t.Errorf("the first one is made by %s", text)
	}
	if text, err = c.joinConfig(true); err != nil {
		t.Fatal(err)
	}
	controlPlane, _ := decode(t, text)["JoinConfiguration"]["controlPlane"].(map[string]any)
	if controlPlane["certificateKey"] != c.key || !strings.Contains(string(text), `"advertiseAddress": "198.18.3.3"`) {
		t.Errorf("another one joins by %s", text)
	}

	discovery, err := c.discovery([]byte("certificate"))
	if err != nil || !strings.Contains(string(discovery), `"certificate-authority-data": "Y2VydGlmaWNhdGU="`) ||
		!strings.Contains(string(discovery), `"server": "https://198.18.3.253:6443"`) {
		t.Errorf("a node that joins knows %s, %v", discovery, err)
	}

	s.ControlPlanes = 1
	if endpoint, err := s.endpoint(); err != nil || endpoint != "198.18.3.2:6443" {
		t.Errorf("without a load balancer, the API is at %s, %v", endpoint, err)
	}
}

func TestTokensHaveTheFormOfKubeadm(t *testing.T) {
	t.Parallel()
	if token := newToken(); !regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`).MatchString(token) || token == newToken() {
		t.Error(token)
	}
}

func TestAPIServersEncryptAndAudit(t *testing.T) {
	t.Parallel()
	s := &State{Name: "c", dir: t.TempDir()}
	if err := s.protect(s.node(1), newSecret()); err != nil {
		t.Fatal(err)
	}
	for file, kind := range map[string]string{encryptionFile: "EncryptionConfiguration", auditFile: "Policy"} {
		text, err := os.ReadFile(filepath.Join(s.nodeDir(s.node(1)), "kubernetes", "slipway", file))
		if err != nil || decode(t, text)[kind] == nil {
			t.Errorf("%s is %s, %v", file, text, err)
		}
	}
	text, err := setup{}.config()
	if err != nil {
		t.Fatal(err)
	}
	server, _ := decode(t, text)["ClusterConfiguration"]["apiServer"].(map[string]any)
	if args := fmt.Sprint(server["extraArgs"]); !strings.Contains(args, protectFolder+"/"+encryptionFile) ||
		!strings.Contains(args, protectFolder+"/"+auditFile) {
		t.Errorf("API servers have %s", args)
	}
}
