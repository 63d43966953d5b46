// Package kubecross sees to it that an engine has the build image, in which the container road compiles.
//
// The image is made from a folder of the repository, images/kube-cross, and the pinned Go. It is named by the hash of all that,
// so an engine that has it need not be asked for more:
//
//	slipway/kube-cross:OWNER-HASH        one tag for each tree that uses it; the image goes with the last one
//	slipway/kube-cross-base:OWNER-HASH   the base, where it was made here
//
// The images themselves carry only the hash, as a label, and nothing of a tree: two trees with the same definition share one.
//
// # Base
//
// The Dockerfile starts from debian:bookworm-slim, or from what the user names (KUBE_CROSS_BASE). Where the engine neither has
// nor can pull that, mmdebstrap makes a base of Debian packages on this machine, with all that the image needs, and its tar is
// streamed to the engine; the build then needs no network.
//
// # Go
//
// The Go in the image is the engine's platform's, fetched by the Go on this machine and checked against the sum in release.yaml.
// It travels in the build context. In the image it is an installed Go as any other, and package toolchain knows it by its sum.
//
// # What must never be in here
//
// Anything that the engine would have to read from this machine's file system: it may be on another one. Anything of the
// user's in an image or its history: names of mirrors, credentials, certificates, proxies. What containers do with the image is
// package road/container's to say.
package kubecross
