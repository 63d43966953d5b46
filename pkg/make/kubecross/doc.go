// Package kubecross makes the build image, in which the container road compiles, in a container engine.
//
// The image is built from a folder of the repository, images/kube-cross, and the pinned Go. Its tag holds the hash of all that,
// so an engine that has the image is asked for nothing more:
//
//	slipway/kube-cross:OWNER-HASH        one tag for each tree that uses it; the image is removed with the last one
//	slipway/kube-cross-base:OWNER-HASH   the base, if it was built here
//
// The image itself carries only the hash, as a label, and nothing of a tree: trees with the same definition share it.
//
// # Base
//
// The Dockerfile starts from debian:bookworm-slim, or from the image that the user names. If the engine neither has nor can pull
// that, mmdebstrap makes a base of Debian packages on this machine, with all that the image needs, and its tar is streamed to the
// engine; the build then needs no network.
//
// # Go
//
// The Go in the image is for the engine's platform. The Go on this machine fetches it, and its sum must be the one in
// release.yaml. It is sent with the build context. In the image it is an ordinary installed Go, and package toolchain recognizes
// it by its sum.
//
// # What must never be in here
//
// Anything that the engine would have to read from this machine's file system, as that may be on another machine. Anything of the user
// in an image or its history: names of mirrors, credentials, certificates, proxies. What containers do with the image is the
// subject of package road/container.
package kubecross
