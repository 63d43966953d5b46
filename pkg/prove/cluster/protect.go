package cluster

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"

	"slipway.build/pkg/mechanism/atomicfile"
)

// What API servers write down: Secrets only encrypted, and who has changed what in an audit log. kubeadm does neither by itself.
const (
	protectFolder = "/etc/kubernetes/slipway" // in a node with a control plane
	auditFolder   = "/var/log/audit"

	encryptionFile = "encryption.yaml"
	auditFile      = "audit.yaml"
)

// apiServerSettings returns the part of kubeadm's configuration that is about API servers.
func apiServerSettings() object {
	return object{
		"extraArgs": arguments(
			"encryption-provider-config", protectFolder+"/"+encryptionFile,
			"audit-policy-file", protectFolder+"/"+auditFile,
			"audit-log-path", auditFolder+"/audit.log", "audit-log-maxsize", "50", "audit-log-maxbackup", "1",
		),
		"extraVolumes": []object{
			{"name": "slipway", "hostPath": protectFolder, "mountPath": protectFolder, "readOnly": true, "pathType": "Directory"},
			{"name": "audit", "hostPath": auditFolder, "mountPath": auditFolder, "pathType": "DirectoryOrCreate"},
		},
	}
}

// newSecret returns a key for Secrets, which all API servers of a cluster share.
func newSecret() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return key
}

// protect writes the files that the API server of a node reads.
func (s *State) protect(n node, secret []byte) error {
	encryption, noEncryption := documents(object{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
		"resources": []object{{
			"resources": []string{"secrets"},
			"providers": []object{{"secretbox": object{"keys": []object{{"name": "up", "secret": secret}}}}, {"identity": object{}}},
		}},
	})
	audit, noAudit := documents(object{
		"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": []string{"RequestReceived"},
		"rules": []object{
			{"level": "None", "verbs": []string{"get", "list", "watch"}},
			{"level": "None", "resources": []object{{"group": "coordination.k8s.io", "resources": []string{"leases"}},
				{"group": "", "resources": []string{"events"}}, {"group": "events.k8s.io"}}},
			{"level": "None", "nonResourceURLs": []string{"*"}},
			{"level": "Metadata"},
		},
	})
	if err := errors.Join(noEncryption, noAudit); err != nil {
		return err
	}
	dir := filepath.Join(s.nodeDir(n), "kubernetes", filepath.Base(protectFolder))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(
		atomicfile.WriteFile(filepath.Join(dir, encryptionFile), encryption, 0o600),
		atomicfile.WriteFile(filepath.Join(dir, auditFile), audit, 0o600),
	)
}
