// Package release describes a release as one value: everything that was made from one commit, by content.
//
// A [Release] names every artifact (tarballs, the binaries in them, container images, files of sums) with its digests, and every
// input (sources, Go modules, toolchains, Debian packages) that the artifacts were made from. It is stored as release.json beside
// the tarballs, and connects the parts of slipway: code that makes artifacts adds entries, and code that checks, boots, compares or
// publishes them reads entries. No reader needs to know file names.
//
// The file depends on the release alone: the same commit, settings and platforms give the same bytes in every folder, on every
// machine, and by every road.
//
// # References
//
// Names of artifacts are unique, so that [Artifact.Of] can refer to them:
//
//	kubernetes-server-linux-amd64.tar.gz             a file of the release's folder
//	linux/amd64/kubelet                              a binary
//	linux/amd64/kube-apiserver.tar                   an image as an archive for docker load
//	registry.k8s.io/kube-apiserver-amd64:v1.37.0     an image of one platform
//	registry.k8s.io/kube-apiserver:v1.37.0           an image index over all platforms
//
// What must never be in here: how artifacts are made, and what is done with them.
package release
