// Package patching edits the patches of a tree.
//
// A project's patches (package tree/patch) are files. To change them, a maintainer wants upstream's repository with each patch as a
// commit: [Desk.Edit] lays that out in a folder, the copy, and [Desk.Save] writes the copy's commits back as files. [Desk.Add],
// [Desk.Drop] and [Desk.List] work on the files alone.
//
// The copy is a git repository. Its first commit, with a tag that is named after the version, is upstream's code (package
// build/upstream); after it, there is a commit for each commit of each patch, as package tree/patch applies it. IDs of commits depend
// on the code and the patches alone. A record in the copy's .git says which commit came of which patch. By it Save recognizes the
// commits that nobody changed, and leaves their files as they are, to the byte, whatever wrote them. A patch that upstream has already
// is an empty commit, which keeps its place.
//
// If a patch does not apply, Edit stops there, as git am does: in the copy, git am is in progress. It tries a three-way merge, with the
// version that the patch was made for, if that is in the module cache. Otherwise hunks that do not apply are between conflict markers.
// After `git am --continue`, Edit goes on with the next patch.
//
// Work is never lost. Edit and Save stop if what they would overwrite is in no patch or in no commit, and say so. The copy appears under
// its name when it is whole, and the folder of patches is replaced in one step, so a kill or a full disk leaves the old one or the
// new one.
//
// # What must never be in here
//
// How patches apply (package tree/patch), how patched code is compiled, and flags and advice for users.
package patching
