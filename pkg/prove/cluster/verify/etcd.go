package verify

import (
	"os"
	"path/filepath"
	"strings"
)

// etcdctl runs a command of etcdctl in the Pod of the first node's etcd, as an administrator of etcd does.
func (e *env) etcdctl(args ...string) string {
	const pki = "/etc/kubernetes/pki/etcd/"
	command := []string{"--namespace=kube-system", "exec", "etcd-" + e.nodes[0].Name, "--", "etcdctl", "--endpoints=https://127.0.0.1:2379",
		"--cacert=" + pki + "ca.crt", "--cert=" + pki + "server.crt", "--key=" + pki + "server.key"}
	return e.kubectl(append(command, args...)...)
}

// etcd has Secrets encrypted, and other objects as they are.
func encryption(e *env) {
	const word = "open-sesame"
	e.kubectl("create", "secret", "generic", "word", "--from-literal=word="+word)
	e.kubectl("create", "configmap", "word", "--from-literal=word="+word)
	stored := func(kind string) string {
		return e.etcdctl("get", "--print-value-only", "/registry/"+kind+"/"+e.namespace+"/word")
	}
	if secret := stored("secrets"); !strings.HasPrefix(secret, "k8s:enc:secretbox:v1:") || strings.Contains(secret, word) {
		fail("etcd has the Secret as %.40q", secret)
	}
	if plain := stored("configmaps"); !strings.Contains(plain, word) {
		fail("etcd has the ConfigMap as %.40q", plain)
	}
}

// A snapshot of etcd, restored beside it, has the objects of its time and no later ones.
func snapshot(e *env) {
	// etcd's folder is the only one that its Pod shares with the node.
	folder := "/var/lib/etcd/" + e.namespace
	e.cleanup(func() {
		here := e.InNode(e.nodes[0].Name, folder)
		for _, name := range []string{here + ".db", here + ".db.part", here} {
			noError(os.RemoveAll(name))
		}
	})
	e.kubectl("create", "configmap", "before")
	e.etcdctl("snapshot", "save", folder+".db")
	e.kubectl("create", "configmap", "after")
	pod := "etcd-" + e.nodes[0].Name
	e.kubectl("--namespace=kube-system", "exec", pod, "--", "etcdutl", "snapshot", "restore", folder+".db", "--data-dir="+folder)
	image := e.get("pod/"+pod, "{.spec.containers[0].image}", "--namespace=kube-system")
	e.apply(`
apiVersion: v1
kind: Pod
metadata: {name: restored}
spec:
  nodeName: $node
  containers:
  - name: etcd
    image: $etcd
    command: [etcd, --data-dir=/data]
    volumeMounts: [{name: data, mountPath: /data}]
    readinessProbe: {exec: {command: [etcdctl, endpoint, health]}, periodSeconds: 1, timeoutSeconds: 5}
  volumes: [{name: data, hostPath: {path: $folder, type: Directory}}]
`, "node", e.nodes[0].Name, "etcd", image, "folder", folder)
	e.ready("restored")
	keys := e.kubectl("exec", "restored", "--", "etcdctl", "get", "--keys-only", "--prefix", "/registry/configmaps/"+e.namespace+"/")
	var names []string
	for key := range strings.FieldsSeq(keys) {
		if name := filepath.Base(key); name != "kube-root-ca.crt" {
			names = append(names, name)
		}
	}
	if len(names) != 1 || names[0] != "before" {
		fail("the snapshot has ConfigMaps %q, want before", names)
	}
}
