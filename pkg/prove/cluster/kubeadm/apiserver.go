package kubeadm

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"

	"slipway.build/pkg/mechanism/atomicfile"
)

// What API servers write down: Secrets only encrypted, and who has changed what in an audit log. kubeadm does neither by itself.
const (
	kubernetesFolder = "/etc/kubernetes" // in a node with a control plane
	apiServerFolder  = "slipway"
	auditFolder      = "/var/log/audit"

	encryptionFile = "encryption.yaml"
	auditFile      = "audit.yaml"
)

// apiServerSettings returns the part of kubeadm's configuration that is about API servers.
func apiServerSettings() object {
	const folder = kubernetesFolder + "/" + apiServerFolder
	return object{
		"extraArgs": arguments(
			"encryption-provider-config", folder+"/"+encryptionFile,
			"audit-policy-file", folder+"/"+auditFile,
			"audit-log-path", auditFolder+"/audit.log", "audit-log-maxsize", "50", "audit-log-maxbackup", "1",
		),
		"extraVolumes": []object{
			{"name": "slipway", "hostPath": folder, "mountPath": folder, "readOnly": true, "pathType": "Directory"},
			{"name": "audit", "hostPath": auditFolder, "mountPath": auditFolder, "pathType": "DirectoryOrCreate"},
		},
	}
}

// NewSecret returns a key for Secrets, which all API servers of a cluster share.
func NewSecret() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return key
}

// WriteControlPlaneFiles writes the files that the control plane of a node reads to the folder, on this machine, that is the node's
// /etc/kubernetes.
func WriteControlPlaneFiles(kubernetes string, secret []byte, settings Settings) error {
	dir := filepath.Join(kubernetes, apiServerFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	encryption := object{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
		"resources": []object{{
			"resources": []string{"secrets"},
			"providers": []object{{"secretbox": object{"keys": []object{{"name": "up", "secret": secret}}}}, {"identity": object{}}},
		}},
	}
	audit := object{
		"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": []string{"RequestReceived"},
		"rules": []object{
			{"level": "None", "verbs": []string{"get", "list", "watch"}},
			{"level": "None", "resources": []object{{"group": "coordination.k8s.io", "resources": []string{"leases"}},
				{"group": "", "resources": []string{"events"}}, {"group": "events.k8s.io"}}},
			{"level": "None", "nonResourceURLs": []string{"*"}},
			{"level": "Metadata"},
		},
	}
	return errors.Join(
		writeDocument(filepath.Join(dir, encryptionFile), encryption),
		writeDocument(filepath.Join(dir, auditFile), audit),
		settings.WriteFiles(dir, kubernetesFolder+"/scheduler.conf"),
	)
}

// writeDocument writes an object as a file that only root reads.
func writeDocument(file string, o object) error {
	text, err := documents(o)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(file, text, 0o600)
}
