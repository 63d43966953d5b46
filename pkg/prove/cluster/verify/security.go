package verify

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// A node may read what its own Pods use, and nothing of others.
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
	refused("(Forbidden)", func() string { return as(nobody, "label", "node", e.lastNode(), e.label()+"=taken") })
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

// The API server asks webhooks, which change objects and refuse others.
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
	e.until(func() { // the other one may be known a moment later
		said := e.kubectl("create", "configmap", "good", "--dry-run=server", "-o", "jsonpath={.data.added}")
		if said != "by the webhook" {
			fail("the webhook has added %q", said)
		}
	})
}

// serveWebhook answers admission reviews until the check ends. It returns the server's address, which the nodes reach, and the certificate
// of its authority in base64.
func (e *env) serveWebhook() (address, ca string) {
	host := netip.AddrFrom4([4]byte{127, 0, 0, 1}) // of a control plane that is processes of this machine
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

// Two managers of the same field conflict when they apply different values, unless one insists.
func applyConflict(e *env) {
	apply := func(manager, color string, flags ...string) string {
		text := e.expand("{apiVersion: v1, kind: ConfigMap, metadata: {name: shared}, data: {color: $color}}", "color", color)
		return e.feed(text, append([]string{"apply", "--server-side", "--field-manager=" + manager, "-f", "-"}, flags...)...)
	}
	apply("first", "green")
	during("the same value", func() { apply("second", "green") })
	refused(`conflict with "first"`, func() string { return apply("second", "blue") })
	e.is("configmap/shared", "{.data.color}", "green")
	apply("second", "blue", "--force-conflicts")
	e.is("configmap/shared", "{.data.color}", "blue")
	refused(`conflict with "second"`, func() string { return apply("first", "green") })
}

// The API describes itself: an index of groups, each with a document whose address has its digest, which kubectl explains.
func openAPI(e *env) {
	type index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	at := getJSON[index](e, "/openapi/v3").Paths["apis/apps/v1"].ServerRelativeURL
	if !strings.Contains(at, "?hash=") {
		fail("the document of apps/v1 is at %q", at)
	}
	type document struct {
		OpenAPI    string
		Components struct{ Schemas map[string]json.RawMessage }
	}
	apps := getJSON[document](e, at)
	if !strings.HasPrefix(apps.OpenAPI, "3.") || apps.Components.Schemas["io.k8s.api.apps.v1.Deployment"] == nil {
		fail("the document of apps/v1, of OpenAPI %q, has no Deployment among %d schemas", apps.OpenAPI, len(apps.Components.Schemas))
	}
	said := e.kubectl("explain", "deployment.spec.replicas")
	if !strings.Contains(said, "FIELD: replicas <integer>") {
		fail("kubectl explain says %q", said)
	}
}

// A watch that asks for bookmarks gets them, and another watch can go on from one. A watch from a version that is too old is refused.
func bookmarks(e *env) {
	configMaps := e.watch("/api/v1", "configmaps")
	e.kubectl("create", "configmap", "before")
	var bookmark string
	e.until(func() { // the API server sends one two seconds before the end, if it has the time
		for _, c := range configMaps.read("allowWatchBookmarks=true&timeoutSeconds=6") {
			if c.Type == "BOOKMARK" {
				bookmark = c.Object.Metadata.ResourceVersion
			}
		}
		if bookmark == "" {
			fail("the watch has ended without a bookmark")
		}
	})
	e.kubectl("create", "configmap", "after")
	configMaps.version = bookmark
	if changes := configMaps.changes(); len(changes) != 1 || changes[0].Object.Metadata.Name != "after" {
		fail("after the bookmark there were %d changes, want one", len(changes))
	}
	e.expires()
}

// expires requires that a watch from a version before the API server knew the resource is refused, and that one goes on after a list.
func (e *env) expires() {
	definition := "crd/things." + e.namespace + ".example.com"
	e.cleanup(func() { e.kubectl("delete", definition, "--ignore-not-found", "--wait=false") })
	e.apply(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.$namespace.example.com}
spec:
  group: $namespace.example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`)
	e.wait("condition=Established", definition)
	var things watcher
	e.until(func() { things = e.watch("/apis/"+e.namespace+".example.com/v1", "things") }) // it is served a moment later
	old := things
	old.version = "1"
	said := ""
	if err := attempt(func() { said = old.text("timeoutSeconds=1") }); err != nil {
		said = err.Error()
	}
	if !strings.Contains(said, `"code":410`) && !strings.Contains(said, "too old resource version") {
		fail("a watch from version 1 of a new resource is not refused as too old: %q", said)
	}
	things.changes()
}
