// Package patched makes patched modules. The patches of a Go module of the tree (see package patch) apply to modules that it requires.
// Each module that they change becomes another version of itself, which a module proxy in a folder has, and a generated go.mod replaces
// the module by that version. Every road takes both: a compile with -modfile links the patched code, and nothing is compiled again but
// what depends on it.
//
// A version is named by the patches and by what they change, as in v1.37.1-patched.p6f9619ff8b86.cd011c8e1f7ac. The build information of
// a binary has the version and its sum.
//
// [Action] makes the proxy and the go.mod. [Check] finds a patch that does not apply before anything runs. If patches change what other
// code is generated from, a [Generator] generates it again.
//
// What must never be in here: how the patched code is compiled, and what generators there are.
package patched
