// Package patching edits the patches of a tree.
//
// A project's patches (package tree/patch) are files. To change them, a maintainer wants upstream's repository with each patch as a
// commit: [Workspace.Edit] writes that to a folder, the copy, and [Workspace.Save] writes the copy's commits back as files.
// [Workspace.Add], [Workspace.Drop] and [Workspace.List] work on the files alone.
//
// The copy is a git repository. Its first commit, with a tag that is named after the version, is upstream's code (package
// make/upstream). git am commits the patches on top of it, all in one run. A patch that upstream already has is an empty commit,
// which keeps its place. If a patch does not apply, git am stops there, with conflict markers. A person resolves the conflict and
// continues git am, which goes on with the patches after it. It merges three ways: with the version that the patch was made for, if the
// module cache has that, or with a merge base that package tree/patch guesses.
//
// Save compares the commits with the patches that the copy was laid out with, which are in the copy's .git. If git makes the same commit
// of a patch as the one that is there, the patch's file stays as it is, to the byte. All other commits are written by git format-patch.
//
// Work is never lost. Edit and Save return an error if they would overwrite what is in no patch or in no commit. The copy appears under
// its name when it is complete, and the folder of patches is replaced in one step. A run that ends early leaves the old copy, or none if
// nothing in it was unsaved, and the old patches or the new ones.
//
// # What must never be in here
//
// How patches apply (package tree/patch), how patched code is compiled, and flags and advice for users.
package patching
