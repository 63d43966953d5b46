package verify

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// as runs kubectl with a token and no other credentials, in a kubeconfig that only root can read.
func (e *env) as(token string, args ...string) string {
	found := e.kubectl("config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster}")
	text := document(manifest{
		"apiVersion": "v1", "kind": "Config", "current-context": "it",
		"clusters": []any{manifest{"name": "it", "cluster": json.RawMessage(found)}},
		"users":    []any{manifest{"name": "it", "user": manifest{"token": token}}},
		"contexts": []any{manifest{"name": "it", "context": manifest{"cluster": "it", "user": "it"}}},
	})
	dir := must(os.MkdirTemp("", "slipway-verify-"))
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "kubeconfig")
	noError(os.WriteFile(file, []byte(text), 0o600))
	return must(e.runKubectl(e.ctx, file, "", args...))
}

// token returns a token of the namespace's service account.
func (e *env) token() string { return strings.TrimSpace(e.kubectl("create", "token", "default")) }

// A service account's token authenticates it, and a token with one letter changed does not.
func authentication(e *env) {
	token := e.token()
	who := e.as(token, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	if want := "system:serviceaccount:" + e.namespace + ":default"; who != want {
		fail("the token belongs to %q, want %q", who, want)
	}
	refused("must be logged in", func() string { return e.as(flip(token), "get", "configmaps") })
}

// flip changes a letter in the signature of a token.
func flip(token string) string {
	at := strings.LastIndexByte(token, '.') + 10
	letter := "A"
	if token[at] == 'A' {
		letter = "B"
	}
	return token[:at] + letter + token[at+1:]
}

// A service account may read nothing until a role binding allows it, and then no more than that.
func authorization(e *env) {
	token := e.token()
	refused("is forbidden", func() string { return e.as(token, "get", "configmaps") })
	e.kubectl("create", "rolebinding", "viewer", "--clusterrole=view", "--serviceaccount="+e.namespace+":default")
	e.until(func() { e.as(token, "get", "configmaps") })
	refused("is forbidden", func() string { return e.as(token, "get", "secrets") })
}

// A node may read what its own Pods use, and nothing else. It may change itself, but for labels that are not its own to give.
func nodeAuthorization(e *env) {
	e.kubectl("create", "secret", "generic", "own")
	e.kubectl("create", "secret", "generic", "other")
	e.apply(pod("web", "wait", spec("{nodeName: "+e.lastNode()+", volumes: [{name: own, secret: {secretName: own}}]}")))
	as := func(node string, args ...string) string {
		return e.kubectl(append(args, "--as=system:node:"+node, "--as-group=system:nodes")...)
	}
	nobody := "nobody-" + e.namespace
	e.until(func() { as(e.lastNode(), "get", "secret", "own") }) // the authorizer learns of the Pod a moment later
	refused("no relationship found between node", func() string { return as(e.lastNode(), "get", "secret", "other") })
	refused("no relationship found between node", func() string { return as(nobody, "get", "secret", "own") })
	// kubectl label would read the node first.
	labeled := func(node, label string) string {
		path := "/api/v1/nodes/" + e.lastNode()
		m := getJSON[manifest](e, path)
		meta := m["metadata"].(manifest)
		meta["labels"].(manifest)[label] = "taken"
		delete(meta, "resourceVersion") // the kubelet goes on writing
		return e.feed(string(must(json.Marshal(m))), "replace", "--raw", path, "-f", "-", "--as=system:node:"+node, "--as-group=system:nodes")
	}
	refused("is not allowed to modify node", func() string { return labeled(nobody, e.label()) })
	refused("is not allowed to modify labels", func() string { return labeled(e.lastNode(), "node-restriction.kubernetes.io/verify") })
}

// The audit log says who asked for what and with what result, and never what is in a Secret.
func audit(e *env) {
	const word = "open-sesame"
	e.kubectl("create", "secret", "generic", "seen", "--from-literal=word="+word)
	nobody := "system:serviceaccount:" + e.namespace + ":default"
	e.refused("orbidden", "delete", "secret", "seen", "--as="+nobody)
	want := []string{"create by kubernetes-admin: 201", "delete by " + nobody + ": 403"}
	e.until(func() {
		got := map[string]bool{}
		for _, n := range e.nodes {
			text, err := os.ReadFile(e.NodeFile(n.Name, "var-log", "audit", "audit.log"))
			if errors.Is(err, os.ErrNotExist) {
				continue // it has no API server
			}
			noError(err)
			if reveals(text, word) {
				fail("the audit log has the content of a Secret")
			}
			audited(text, e.namespace, "seen", got)
		}
		for _, event := range want {
			if !got[event] {
				fail("the audit log has %v for the Secret, and not %q", got, event)
			}
		}
	})
}

// reveals reports whether a text contains a word as it is or in base64, as the API has the content of Secrets.
func reveals(text []byte, word string) bool {
	return bytes.Contains(text, []byte(word)) || bytes.Contains(text, []byte(base64.StdEncoding.EncodeToString([]byte(word))))
}

// audited adds what an audit log says about an object.
func audited(log []byte, namespace, name string, to map[string]bool) {
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb                   string
			User, ImpersonatedUser struct{ Username string }
			ObjectRef              struct{ Namespace, Name string }
			ResponseStatus         struct{ Code int }
		}
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.ObjectRef.Namespace != namespace || event.ObjectRef.Name != name {
			continue // the last line may not be whole
		}
		user := event.User.Username
		if event.ImpersonatedUser.Username != "" {
			user = event.ImpersonatedUser.Username
		}
		to[fmt.Sprintf("%s by %s: %d", event.Verb, user, event.ResponseStatus.Code)] = true
	}
}

// A LimitRange sets the limit of containers that have none, and refuses higher ones.
func admission(e *env) {
	e.apply(`
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec:
  limits:
  - {type: Container, default: {memory: 32Mi}, max: {memory: 64Mi}}
`)
	e.until(func() {
		got := e.feed(e.expand(pod("web", "wait")), "create", "--dry-run=server", "-f", "-", "-o",
			"jsonpath={.spec.containers[0].resources.limits.memory}")
		if got != "32Mi" {
			fail("the container's limit is %q, want the LimitRange's 32Mi", got)
		}
	})
	large := pod("web", "wait", container("resources: {limits: {memory: 65Mi}}"))
	refused("maximum memory usage per Container is 64Mi", func() string {
		return e.feed(e.expand(large), "create", "--dry-run=server", "-f", "-")
	})
}

// A policy in the API refuses objects of the namespaces that it is bound to.
func admissionPolicy(e *env) {
	e.cleanup(func() {
		e.kubectl("delete", "validatingadmissionpolicybinding/"+e.namespace,
			"validatingadmissionpolicy/"+e.namespace, "--ignore-not-found")
	})
	e.apply(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: $namespace}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "object.metadata.name != 'bad'", message: this name is bad}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: $namespace}
spec:
  policyName: $namespace
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $namespace}}}
`)
	e.until(func() { e.refused("this name is bad", "create", "configmap", "bad", "--dry-run=server") })
	e.kubectl("create", "configmap", "good")
}

// The API server asks webhooks, one of which changes objects and one of which refuses them.
func webhooks(e *env) {
	address, ca := e.serveWebhook()
	e.cleanup(func() {
		e.kubectl("delete", "mutatingwebhookconfiguration/"+e.namespace,
			"validatingwebhookconfiguration/"+e.namespace, "--ignore-not-found")
	})
	for kind, path := range map[string]string{"MutatingWebhookConfiguration": "/mutate", "ValidatingWebhookConfiguration": "/validate"} {
		e.apply(`
apiVersion: admissionregistration.k8s.io/v1
kind: $kind
metadata: {name: $namespace}
webhooks:
- name: verify.slipway.build
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 5
  clientConfig: {url: "https://$address$path", caBundle: $ca}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $namespace}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
`, "kind", kind, "address", address, "path", path, "ca", ca)
	}
	e.until(func() {
		e.refused("the webhook says no", "create", "configmap", "bad", "--dry-run=server")
	})
	e.until(func() { // the API server may learn of this one a moment later
		said := e.kubectl("create", "configmap", "good", "--dry-run=server", "-o", "jsonpath={.data.added}")
		if said != "by the webhook" {
			fail("the webhook has added %q", said)
		}
	})
}

// serveWebhook answers admission reviews until the check ends. It returns the server's address, which the nodes reach, and the certificate
// of its authority in base64.
func (e *env) serveWebhook() (address, ca string) {
	host := netip.AddrFrom4([4]byte{127, 0, 0, 1}) // if the control plane runs as processes of this machine
	if e.Subnet != "" {
		host = must(netip.ParsePrefix(e.Subnet)).Masked().Addr().Next()
	}
	server := selfSigned(host.String())
	pair := must(tls.X509KeyPair(server.certificate, server.key))
	listener := must(tls.Listen("tcp", netip.AddrPortFrom(host, 0).String(), &tls.Config{Certificates: []tls.Certificate{pair}}))
	webhook := &http.Server{Handler: http.HandlerFunc(reviewed), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = webhook.Serve(listener) }() // until it is closed
	e.cleanup(func() { _ = webhook.Close() })
	return listener.Addr().String(), base64.StdEncoding.EncodeToString(server.certificate)
}

// reviewed adds data to objects at /mutate, and refuses those with the name bad at /validate.
func reviewed(w http.ResponseWriter, r *http.Request) {
	var review struct{ Request struct{ UID, Name string } }
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := manifest{"uid": review.Request.UID, "allowed": true}
	switch {
	case r.URL.Path == "/mutate":
		answer["patchType"], answer["patch"] = "JSONPatch", []byte(`[{"op": "add", "path": "/data", "value": {"added": "by the webhook"}}]`)
	case review.Request.Name == "bad":
		answer["allowed"], answer["status"] = false, manifest{"message": "the webhook says no"}
	}
	_ = json.NewEncoder(w).Encode(manifest{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer})
}
