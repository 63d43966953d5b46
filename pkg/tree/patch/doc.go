// Package patch reads patches to upstream's code, and applies them.
//
// A distribution is upstream plus patches. They are data: the files of `git format-patch`, or a pull request's .patch, unchanged, with
// one commit or several. [Load] finds them: patches/*.patch in the tree are for Kubernetes, and images/NAME/patches/*.patch are for
// another project. Folders below are named as modules that these link, and hold patches of them. They apply in the order of their names.
//
// Their paths are those of upstream's repository. A [Repository] says which Go module a path belongs to: staging/src/k8s.io/api is the
// module k8s.io/api, and what is in no other folder with a module is k8s.io/kubernetes. Some files are in no module: documents, symbolic
// links. Changes to them are passed over, and named. If [Repository.Link] was called, files below vendor are of the modules there.
//
// An [Overlay] applies patches to a [Tree], in memory. Hunks may have moved: a hunk applies where `git apply` would apply it, and nowhere
// else. There is no fuzz: all context must match. The [Report] of a patch says whether it applies and how far its hunks have moved,
// whether upstream has it already, or which hunk conflicts, and why. [Overlay.Merge] prepares a patch that conflicts for a three-way merge
// by git.
//
// What must never be in here: how patched code is compiled, the network, and the go command.
package patch
