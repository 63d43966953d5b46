// Package module is the inventory of Go modules: what go.mod and go.sum in a folder of the tree say, which sources a
// package is compiled from, and which modules a binary links. It is the only package that parses go.mod, go.sum and
// build information for a release; everybody else asks it.
//
//   - [Load] reads a module of the tree. [Module.Version] finds the required module that provides a package,
//     [Module.Summed] lists what go.sum has sums of.
//   - [Module.Inputs], [Module.Closure] and [Module.Heads] say what a compile, or a list of packages, depends on.
//   - [ReadBinary] reads which modules one binary links, [WriteList] writes those of several to a file, and [ReadLists]
//     joins such files: every module that a release links, by version, sum and replacement.
//
// A [Dependency] describes a module in the same way whether a go.mod requires it or a binary links it, so the two can be
// compared.
//
// # What must never be in here
//
// Running the Go command. The network. Knowledge of Kubernetes or of release.yaml: which modules there are is the
// catalog's to say.
package module
