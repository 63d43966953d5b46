// Package api writes what the API of a kube-apiserver is, as files: OpenAPI documents, from which clients are generated, and discovery
// documents. They have the names and the form of those in api/ of Kubernetes' repository, which its hack/update-openapi-spec.sh writes: the
// same flags for the API server, with all APIs and all alpha and beta features, and the same sorted JSON. So from unpatched sources come
// the same bytes.
//
// The API server and an empty etcd run for some seconds, on loopback.
//
// What must never be in here: how these programs are made, and for which platforms.
package api
