package verify

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// A node may read what its own Pods use, and nothing of others.
func nodeAuthorization(ctx context.Context, e *env) error {
	for _, name := range []string{"own", "other"} {
		if _, err := e.kubectl(ctx, "create", "secret", "generic", name); err != nil {
			return err
		}
	}
	err := e.apply(ctx, pod("web", "wait", spec("{nodeName: "+e.lastNode()+", volumes: [{name: own, secret: {secretName: own}}]}")))
	if err != nil {
		return err
	}
	as := func(node string, args ...string) (string, error) {
		return e.kubectl(ctx, append(args, "--as=system:node:"+node, "--as-group=system:nodes")...)
	}
	err = until(ctx, func() error { // the authorizer learns of the Pod a moment later
		_, err := as(e.lastNode(), "get", "secret", "own")
		return err
	})
	if err != nil {
		return err
	}
	for _, attempt := range [][2]string{{e.lastNode(), "other"}, {"nobody-" + e.namespace, "own"}} {
		if err := isRefused("no relationship found between node")(as(attempt[0], "get", "secret", attempt[1])); err != nil {
			return err
		}
	}
	return isRefused("(Forbidden)")(as("nobody-"+e.namespace, "label", "node", e.lastNode(), e.label()+"=taken"))
}

// A policy in the API refuses objects of the namespaces that it is bound to.
func admissionPolicy(ctx context.Context, e *env) error {
	e.cleanup(func(ctx context.Context) error {
		_, err := e.kubectl(ctx, "delete", "validatingadmissionpolicybinding/"+e.namespace,
			"validatingadmissionpolicy/"+e.namespace, "--ignore-not-found")
		return err
	})
	err := e.apply(ctx, `
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
	if err != nil {
		return err
	}
	err = until(ctx, func() error {
		return e.refused(ctx, "this name is bad", "", "create", "configmap", "bad", "--dry-run=server")
	})
	if err != nil {
		return err
	}
	_, err = e.kubectl(ctx, "create", "configmap", "good")
	return err
}

// The API server asks webhooks, which change objects and refuse others.
func webhooks(ctx context.Context, e *env) error {
	address, ca, stop, err := e.serveWebhook()
	if err != nil {
		return err
	}
	defer stop()
	e.cleanup(func(ctx context.Context) error {
		_, err := e.kubectl(ctx, "delete", "mutatingwebhookconfiguration/"+e.namespace,
			"validatingwebhookconfiguration/"+e.namespace, "--ignore-not-found")
		return err
	})
	for kind, path := range map[string]string{"MutatingWebhookConfiguration": "/mutate", "ValidatingWebhookConfiguration": "/validate"} {
		err := e.apply(ctx, `
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
		if err != nil {
			return err
		}
	}
	err = until(ctx, func() error {
		return e.refused(ctx, "the webhook says no", "", "create", "configmap", "bad", "--dry-run=server")
	})
	if err != nil {
		return err
	}
	return until(ctx, func() error { // the other one may be known a moment later
		said, err := e.kubectl(ctx, "create", "configmap", "good", "--dry-run=server", "-o", "jsonpath={.data.added}")
		if err == nil && said != "by the webhook" {
			err = fmt.Errorf("the webhook has added %q", said)
		}
		return err
	})
}

// serveWebhook answers admission reviews at an address of this machine that the nodes reach. It returns the certificate of the server's
// authority in base64.
func (e *env) serveWebhook() (address, ca string, stop func(), err error) {
	host := netip.AddrFrom4([4]byte{127, 0, 0, 1}) // of a control plane that is processes of this machine
	if e.Subnet != "" {
		subnet, err := netip.ParsePrefix(e.Subnet)
		if err != nil {
			return "", "", nil, err
		}
		host = subnet.Masked().Addr().Next()
	}
	server, err := selfSigned(host.String())
	if err != nil {
		return "", "", nil, err
	}
	pair, err := tls.X509KeyPair(server.certificate, server.key)
	if err != nil {
		return "", "", nil, err
	}
	listener, err := tls.Listen("tcp", netip.AddrPortFrom(host, 0).String(), &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		return "", "", nil, err
	}
	webhook := &http.Server{Handler: http.HandlerFunc(reviewed), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = webhook.Serve(listener) }() // until it is closed
	ca = base64.StdEncoding.EncodeToString(server.certificate)
	return listener.Addr().String(), ca, func() { _ = webhook.Close() }, nil
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

// Two managers of the same field conflict when they apply different values, unless one insists.
func applyConflict(ctx context.Context, e *env) error {
	apply := func(manager, color string, flags ...string) (string, error) {
		text := e.expand("{apiVersion: v1, kind: ConfigMap, metadata: {name: shared}, data: {color: $color}}", "color", color)
		return e.feed(ctx, text, append([]string{"apply", "--server-side", "--field-manager=" + manager, "-f", "-"}, flags...)...)
	}
	if _, err := apply("first", "green"); err != nil {
		return err
	}
	if _, err := apply("second", "green"); err != nil {
		return fmt.Errorf("the same value: %w", err)
	}
	if err := isRefused(`conflict with "first"`)(apply("second", "blue")); err != nil {
		return err
	}
	if err := e.is(ctx, "configmap/shared", "{.data.color}", "green"); err != nil {
		return err
	}
	if _, err := apply("second", "blue", "--force-conflicts"); err != nil {
		return err
	}
	if err := e.is(ctx, "configmap/shared", "{.data.color}", "blue"); err != nil {
		return err
	}
	return isRefused(`conflict with "second"`)(apply("first", "green"))
}

// The API describes itself: an index of groups, each with a document whose address has its digest, which kubectl explains.
func openAPI(ctx context.Context, e *env) error {
	text, err := e.kubectl(ctx, "get", "--raw", "/openapi/v3")
	if err != nil {
		return err
	}
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal([]byte(text), &index); err != nil {
		return err
	}
	at := index.Paths["apis/apps/v1"].ServerRelativeURL
	if !strings.Contains(at, "?hash=") {
		return fmt.Errorf("the document of apps/v1 is at %q", at)
	}
	if text, err = e.kubectl(ctx, "get", "--raw", at); err != nil {
		return err
	}
	var document struct {
		OpenAPI    string
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		return err
	}
	if !strings.HasPrefix(document.OpenAPI, "3.") || document.Components.Schemas["io.k8s.api.apps.v1.Deployment"] == nil {
		return fmt.Errorf("the document of apps/v1, of OpenAPI %q, has no Deployment among %d schemas", document.OpenAPI,
			len(document.Components.Schemas))
	}
	said, err := e.kubectl(ctx, "explain", "deployment.spec.replicas")
	if err == nil && !strings.Contains(said, "FIELD: replicas <integer>") {
		err = fmt.Errorf("kubectl explain says %q", said)
	}
	return err
}

// A watch that asks for them gets bookmarks, from which another one can go on. One from a version that is not known any more is told so.
func bookmarks(ctx context.Context, e *env) error {
	path := "/api/v1/namespaces/" + e.namespace + "/configmaps"
	version, err := e.version(ctx, path)
	if err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "create", "configmap", "before"); err != nil {
		return err
	}
	var bookmark string
	err = until(ctx, func() (err error) { // the API server sends one two seconds before the end, if it has the time
		bookmark, err = e.bookmark(ctx, path, version)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "create", "configmap", "after"); err != nil {
		return err
	}
	changes, err := e.since(ctx, path, bookmark)
	if err != nil {
		return err
	}
	if len(changes) != 1 || changes[0].Object.Metadata.Name != "after" {
		return fmt.Errorf("after the bookmark there were %d changes, want one", len(changes))
	}
	return e.expires(ctx)
}

// bookmark returns the version of the last bookmark of a watch.
func (e *env) bookmark(ctx context.Context, path, version string) (string, error) {
	text, err := e.kubectl(ctx, "get", "--raw", path+"?watch=1&allowWatchBookmarks=true&timeoutSeconds=6&resourceVersion="+version)
	if err != nil {
		return "", err
	}
	last := ""
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		var c change
		if err := d.Decode(&c); err != nil {
			return "", fmt.Errorf("watch %s: %w", path, err)
		}
		if c.Type == "BOOKMARK" {
			last = c.Object.Metadata.ResourceVersion
		}
	}
	if last == "" {
		return "", errors.New("the watch has ended without a bookmark")
	}
	return last, nil
}

// expires requires that a watch from a version before the API server knew the resource is refused, and that one goes on after a list.
func (e *env) expires(ctx context.Context) error {
	e.cleanup(func(ctx context.Context) error {
		_, err := e.kubectl(ctx, "delete", "crd/things."+e.namespace+".example.com", "--ignore-not-found", "--wait=false")
		return err
	})
	err := e.apply(ctx, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.$namespace.example.com}
spec:
  group: $namespace.example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`)
	if err != nil {
		return err
	}
	if err := e.wait(ctx, "condition=Established", "crd/things."+e.namespace+".example.com"); err != nil {
		return err
	}
	path := "/apis/" + e.namespace + ".example.com/v1/namespaces/" + e.namespace + "/things"
	var version string
	err = until(ctx, func() (err error) { // it is served a moment later
		version, err = e.version(ctx, path)
		return err
	})
	if err != nil {
		return err
	}
	text, err := e.kubectl(ctx, "get", "--raw", path+"?watch=1&timeoutSeconds=1&resourceVersion=1")
	if err == nil && !strings.Contains(text, `"code":410`) {
		err = fmt.Errorf("a watch from version 1 of a new resource is not refused as too old: %q", text)
	}
	if err != nil && !strings.Contains(err.Error(), "too old resource version") {
		return err
	}
	_, err = e.since(ctx, path, version)
	return err
}
