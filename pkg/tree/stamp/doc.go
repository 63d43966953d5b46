// Package stamp answers: what version is this?
//
// A version is the version of Kubernetes that cmd/go.mod requires, and build metadata that says which commit
// of this repository made it:
//
//	v1.36.3+slipway.20261120235300.0123456789ab
//	v1.36.3+slipway.20261120235300.0123456789ab.dirty
//	|       |       |              |
//	|       |       |              the first 12 digits of the commit
//	|       |       when it was committed, UTC
//	|       the project
//	the base
//
// It names its commit, sorts by time (as text: to semver, metadata has no order), and comes out the
// same in a shallow clone, in a full one and in an unpacked source tarball.
//
// # Where it comes from
//
// Each field is taken from the first of these that has it:
//
//  1. The environment: KUBE_GIT_VERSION, KUBE_GIT_COMMIT, KUBE_GIT_TREE_STATE (clean, dirty or archive),
//     KUBE_GIT_MAJOR, KUBE_GIT_MINOR, and SOURCE_DATE_EPOCH for the date. An empty variable counts as unset.
//  2. The file that KUBE_GIT_VERSION_FILE names, if it is set. A relative name is relative to the tree's root.
//  3. Git, if the tree's root is the top of a git work tree. Files that are neither committed nor ignored make
//     the tree dirty as well as changed ones do.
//  4. The file named version in the tree's root, which a source tarball brings along.
//
// Git is asked only if 1 and 2 leave something open. Where neither 3 nor 4 exists, the error names the variables
// that are still to be set.
//
// If git has to tell the version and a tag on HEAD begins with the base and a '+' (v1.36.3+acme.1), the tag is
// the version; of several, the last in the order of their bytes. A dirty tree appends ".dirty" to it
// too. A clone made without tags cannot know of one, so whoever releases by tag has to fetch it.
// KUBE_GIT_COMMIT and KUBE_GIT_TREE_STATE take part in the version that is put together: with another commit than
// HEAD, no tag counts. The time in it is always the commit's; SOURCE_DATE_EPOCH changes the date alone.
//
// Major and minor are the version's first two numbers unless set; as upstream has it, minor ends in "+"
// for a pre-release ("37+"), and not for build metadata: tools that read it as a number go on working.
//
// # What is refused
//
// A version must be a semantic version with a leading v and all three numbers. It may add build metadata to a
// release, but not a pre-release (v1.36.3-acme.1) that the base isn't itself: a pre-release comes before its
// release, and kubeadm then asks for the images of the patch before. As a container image's tag, with '_' for
// '+', it must fit into 128 characters.
//
// What a stamp is used for (which flags a compile has, what an image is called) must never be in here, nor a
// list of components.
package stamp
