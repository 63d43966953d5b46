// Package upstream puts the repository of another project together again from the modules that a tree takes of it.
//
// Kubernetes is one repository, and more than thirty modules: k8s.io/kubernetes without the folders below staging/src/k8s.io, and
// each of these as a module of its own. Patches, code generators and many of Kubernetes' tests want the repository. [Open] finds
// the modules at the versions that the tree selects, fetches those that are not in the module cache (go.sum is checked), and
// [Repository.Copy] puts a copy of each where the repository has it. The project of an image, such as etcd, is found in the same
// way: its modules are those of the folder's go.mod that belong to one repository, see [Open].
//
// A copy differs from the repository at the version's tag:
//
//   - Modules hold no symbolic links, no submodules, and no folders with a go.mod of their own that were not released, such as
//     hack/tools.
//   - There is no vendor folder: a module holds only parts of it, and Go would believe them.
//   - Modules hold no executable bits. A file that begins with #! gets them.
//   - go.mod and go.sum of a staging module are the published ones. In k8s.io/kubernetes' go.work they work as well.
//   - A module that cannot be fetched is left out, and so is its line of go.work, if nothing is compiled from it. See
//     [Repository.Missing].
//
// [Repository.Keep] keeps a copy for the next use, and writes to it only the files in which another [Change] differs. Files have the times
// that they have in the module cache, so that results of tests that read them stay in Go's cache when the repository is copied again.
//
// # What must never be in here
//
// What a copy is for. Patches: the caller's [Change] applies them. Anything that writes to the module cache or to the tree.
package upstream
