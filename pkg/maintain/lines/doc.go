// Package lines knows the lines of a distribution: the minor versions of Kubernetes that it maintains at the same time, each in a branch
// of the tree's repository or in a tree of its own.
//
// [Read] reads which there are. [Line.Open] makes a work tree of a line, below [Folder], in which a command can work as in any tree:
// a user's own checkouts are never touched.
//
// A commit of [Work.Commit] is on a branch of its own, lines/NAME, and not on the line's branch. That may be checked out somewhere, where
// a moved branch would look like edits that nobody made; and whoever maintains the line decides when to take the commit, by a merge or a
// pull request. Until then, the next command goes on from that commit. Once the line's branch has it, the next one begins at the line's
// branch again. Nothing is pushed.
//
// While a command changes a work tree, a mark says so. If it is killed, the mark stays, and the next [Line.Open] throws away what the
// command had not committed. Without a mark, what is not committed is somebody's work, and stays. So does what is
// below _output in a work tree, such as a copy in which somebody edits patches: only half a work tree, whose making was killed, is removed.
//
// A work tree is not beside what the tree is beside. Links stand for folders outside of the tree by which a go.mod replaces modules.
//
// # What must never be in here
//
// What is done on a line, and how results are shown.
package lines
