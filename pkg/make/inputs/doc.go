// Package inputs packs a tree with everything that its release needs, [input.Tarball], in two actions.
//
// [ModulesAction] makes a folder in the layout of a module proxy (`go help goproxy`), with toolchains among the modules. It takes them
// from the module cache, after the pinned Go has fetched what is missing there, and checks each by its sum. Module proxies
// pack the same module in different ways, so each is packed again: the bytes depend on the contents alone.
//
// [Action] packs that folder, the tree, and the Debian packages, and adds the sums of all members. Nothing in it is compressed
// once more: modules and packages are compressed already.
//
// What must never be in here: which modules, packages and toolchains a release needs.
package inputs
