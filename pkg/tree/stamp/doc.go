// Package stamp finds out which version a source tree is.
//
// A version consists of the version of Kubernetes that cmd/go.mod requires, and of build metadata that names the commit:
//
//	v1.36.3+slipway.20261120235300.0123456789ab
//	v1.36.3+slipway.20261120235300.0123456789ab.dirty
//	|       |       |              |
//	|       |       |              the first 12 digits of the commit
//	|       |       time of the commit, UTC
//	|       the project
//	the base
//
// It names its commit, sorts by time (as text: semver does not order metadata), and is the same in a shallow clone, in a
// full one and in an unpacked source tarball.
//
// # Where it comes from
//
// Each field is taken from the first of these sources that has it:
//
//  1. The environment: KUBE_GIT_VERSION, KUBE_GIT_COMMIT, KUBE_GIT_TREE_STATE (clean, dirty or archive),
//     KUBE_GIT_MAJOR, KUBE_GIT_MINOR, and SOURCE_DATE_EPOCH for the date. An empty variable counts as unset.
//  2. The file named by KUBE_GIT_VERSION_FILE, if that is set. A relative name is relative to the tree's root.
//  3. Git, if the tree's root is the top of a git work tree. A folder that is not what the commit has makes the tree dirty,
//     whatever git ignores: see package worktree. So does a folder outside of it that slipway is compiled from.
//  4. The file named version in the tree's root, which a source tarball contains. It has a digest of the sources, and
//     makes the tree dirty if theirs differs.
//
// Git runs only if 1 and 2 leave a field open. If neither 3 nor 4 exists, the error names the variables to set.
//
// If the version comes from git and a tag on HEAD begins with the base and a '+' (v1.36.3+acme.1), the tag is the version;
// of several tags, the newest by Compare. A dirty tree appends ".dirty" to it, too. A clone without tags cannot know
// about the tag, so a release by tag needs a clone with tags. Tags v0.… are versions of slipway, and do not count.
// KUBE_GIT_COMMIT and KUBE_GIT_TREE_STATE are parts of a version from git: with a commit other than HEAD, no tag counts. The time
// in it is always the commit's; SOURCE_DATE_EPOCH changes the date only.
//
// Major and minor are the version's first two numbers unless they are set. As in upstream, minor ends in "+" for a
// pre-release ("37+"). It does not for build metadata, so that tools can read it as a number.
//
// # What is refused
//
// A version must be a semantic version with a leading v and all three numbers. It may add build metadata to a release, but not a
// pre-release (v1.36.3-acme.1) unless the base is that pre-release: a pre-release comes before its release, and kubeadm would ask for the
// images of the patch before. A version of another base is refused, and so is a candidate that Compare would put after its release
// (v1.36.3+acme.1.rc.1). This holds for tags on HEAD as well. As a container image's tag, with '_' in place of '+', the version must fit
// into 128 characters.
//
// What must never be in here: what a stamp is used for (the flags of a compile, the name of an image), or a list of
// components.
package stamp
