package controlplane

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestProgramsFindOneAnotherAndTheirFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	programs, err := Prepare(dir, "c", kubeconfig, "10.96.0.0/12")
	if err != nil {
		t.Fatal(err)
	}
	flags, addresses := map[string][]string{}, map[string]string{}
	for _, p := range programs {
		flags[p.Name], addresses[p.Name] = p.Flags, p.Address
		for _, flag := range p.Flags {
			name, file, _ := strings.Cut(flag, "=")
			if !strings.HasSuffix(name, "file") && !strings.HasSuffix(name, "kubeconfig") {
				continue
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s %s: %v", p.Name, flag, err)
			}
		}
	}
	if !slices.Contains(flags["kube-apiserver"], "--etcd-servers="+addresses["etcd"]) {
		t.Errorf("the API server does not know etcd, which listens on %s: %q", addresses["etcd"], flags["kube-apiserver"])
	}
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Clusters []struct{ Cluster struct{ Server string } }
	}
	if err := json.Unmarshal(text, &config); err != nil || config.Clusters[0].Cluster.Server != addresses["kube-apiserver"] {
		t.Errorf("the administrator asks %+v, %v; want %s", config, err, addresses["kube-apiserver"])
	}
}
