package verify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// etcdctl runs a command of etcdctl in the Pod of the first node's etcd, as an administrator of etcd does.
func (e *env) etcdctl(ctx context.Context, args ...string) (string, error) {
	const pki = "/etc/kubernetes/pki/etcd/"
	command := []string{"--namespace=kube-system", "exec", "etcd-" + e.nodes[0].Name, "--", "etcdctl", "--endpoints=https://127.0.0.1:2379",
		"--cacert=" + pki + "ca.crt", "--cert=" + pki + "server.crt", "--key=" + pki + "server.key"}
	return e.kubectl(ctx, append(command, args...)...)
}

// A snapshot of etcd, restored beside it, has the objects of that time and not those since.
func snapshot(ctx context.Context, e *env) error {
	// etcd's folder is the only one that its Pod shares with the node.
	folder := "/var/lib/etcd/" + e.namespace
	e.cleanup(func(context.Context) error {
		here := e.InNode(e.nodes[0].Name, folder)
		for _, name := range []string{here + ".db", here + ".db.part", here} {
			if err := os.RemoveAll(name); err != nil {
				return err
			}
		}
		return nil
	})
	if _, err := e.kubectl(ctx, "create", "configmap", "before"); err != nil {
		return err
	}
	if _, err := e.etcdctl(ctx, "snapshot", "save", folder+".db"); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "create", "configmap", "after"); err != nil {
		return err
	}
	pod := "etcd-" + e.nodes[0].Name
	if _, err := e.kubectl(ctx, "--namespace=kube-system", "exec", pod, "--", "etcdutl", "snapshot", "restore", folder+".db",
		"--data-dir="+folder); err != nil {
		return err
	}
	image, err := e.get(ctx, "pod/"+pod, "{.spec.containers[0].image}", "--namespace=kube-system")
	if err != nil {
		return err
	}
	err = e.apply(ctx, `
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
	if err != nil {
		return err
	}
	if err := e.ready(ctx, "restored"); err != nil {
		return err
	}
	keys, err := e.kubectl(ctx, "exec", "restored", "--", "etcdctl", "get", "--keys-only", "--prefix", "/registry/configmaps/"+e.namespace+"/")
	if err != nil {
		return err
	}
	var names []string
	for key := range strings.FieldsSeq(keys) {
		if name := filepath.Base(key); name != "kube-root-ca.crt" {
			names = append(names, name)
		}
	}
	if len(names) != 1 || names[0] != "before" {
		return fmt.Errorf("the snapshot has ConfigMaps %q, want before", names)
	}
	return nil
}
