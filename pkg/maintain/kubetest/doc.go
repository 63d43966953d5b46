// Package kubetest runs Kubernetes' own tests with the tree's versions, patches and Go.
//
// # Where tests run
//
// Many of Kubernetes' tests read files beside their package, or write there. The module cache has modules apart from each other, and is
// read-only. So [Open] keeps a copy of upstream's repository, which package upstream puts together. It writes a go.mod that replaces
// Kubernetes' modules by the folders of the copy, and is otherwise the components' own. A test sees upstream's repository around it,
// and links the versions that a release links.
//
// # How tests are compiled
//
// With a release's flags, a test shares all compiled packages with the release: with -trimpath, a package in the copy has the same
// name in the Go cache as the one in the module cache. Two kinds of tests need upstream's flags (see [Sources.Select]): those that fill
// API types with random values, which a build tag of releases leaves out, and a few that read the path of their source.
// The first run of such a test compiles Kubernetes again.
//
// # What is tested
//
// [Sources.Find] reads words as users of Kubernetes' make know them: import paths, folders of the tree or of upstream's repository, and
// patterns with "...". It returns groups, each for one run of go test.
//
// # What must never be in here
//
// How a release is made, and how results are shown (package gotest). A list of packages that are expected to fail.
package kubetest
