// Package folder reads what is in the folder of a tree, whatever git says of it.
//
// It has the rules about names: some files at the top are never sources ([Excluded]), and some are what an editor leaves beside the file
// that it edits ([Leaving]). [List] lists a folder, [Read] reads files, and [Digest] is one value for the content of all of them. The
// digest of a tree, of the tarball of its sources and of the folder where that was unpacked are equal.
//
// What must never be in here: git, and conclusions from a digest.
package folder
